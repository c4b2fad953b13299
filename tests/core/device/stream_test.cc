#include <kolo/core/device/stream.h>

#include <gmock/gmock.h>

#include <algorithm>
#include <future>
#include <memory>
#include <vector>

namespace kolo {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Writes down the waits that it is given.
class CountingStream final : public Stream {
 public:
  CountingStream() : Stream("counting") {}
  void enqueue(std::function<void()>) override {}
  std::unique_ptr<StreamEvent> make_event() override { return std::make_unique<StreamEvent>(); }
  std::unique_ptr<StreamGraph> capture(std::function<void(void*)>) override { return nullptr; }
  void wait(std::vector<StreamEvent*> events, std::vector<StreamEvent*> passed = {}) {
    wait_for(events, passed);
  }
  std::vector<const StreamEvent*> waits;

 private:
  void put_end(Done) override {}
  void put_record(StreamEvent&) override {}
  void put_wait(StreamEvent& event) override { waits.push_back(&event); }
  bool try_done(StreamEvent&) override { return true; }
};

class Waits : public ::testing::Test {
 protected:
  CountingStream in, compute, out;
  StreamEvent first, second;
};

TEST_F(Waits, AreLeftOutForWhatWasNeverRecorded) {
  compute.wait({&first});
  EXPECT_THAT(compute.waits, IsEmpty());
}

TEST_F(Waits, AreLeftOutForWhatALaterOneOfTheSameStreamHasSeenTo) {
  in.record(first);
  in.record(second);
  compute.wait({&second});
  compute.wait({&first});
  EXPECT_THAT(compute.waits, ElementsAre(&second));
}

TEST_F(Waits, AreLeftOutForWhatAnotherOfThemStandsFor) {
  in.record(first);
  compute.wait({&first});
  compute.record(second);
  out.wait({&first, &second});
  EXPECT_THAT(out.waits, ElementsAre(&second));
}

TEST_F(Waits, AreLeftOutForWhatWasWaitedForThroughAnotherStream) {
  in.record(first);
  compute.wait({&first});
  compute.record(second);
  out.wait({&second});
  out.wait({&first});
  EXPECT_THAT(out.waits, ElementsAre(&second));
}

TEST_F(Waits, AreLeftOutForWhatComesBeforeAnEventThatHasPassed) {
  in.record(first);
  compute.wait({&first});
  compute.record(second);
  out.wait({&first}, {&second});
  EXPECT_THAT(out.waits, IsEmpty());
}

TEST_F(Waits, ComeAgainForAnEventThatWasRecordedAgain) {
  in.record(first);
  compute.wait({&first});
  in.record(first);
  compute.wait({&first});
  EXPECT_THAT(compute.waits, ElementsAre(&first, &first));
}

TEST_F(Waits, AreLeftOutForTheOwnStream) {
  in.record(first);
  in.wait({&first});
  EXPECT_THAT(in.waits, IsEmpty());
}

TEST(ThreadStreams, WaitForEachOther) {
  const auto in = make_thread_stream("in", "in"), out = make_thread_stream("out", "out");
  const auto event = in->make_event();
  StreamEvent* const events[] = {event.get()};
  std::promise<void> go, done;
  std::vector<int> order;
  in->enqueue([&] { go.get_future().get(); });
  in->enqueue([&] { order.push_back(1); });
  in->record(*event);
  out->wait_for(events);
  out->enqueue([&] { order.push_back(2); });
  out->when_done([&](std::exception_ptr) { done.set_value(); });
  go.set_value();
  done.get_future().get();
  EXPECT_THAT(order, ElementsAre(1, 2));
}

TEST(ThreadStreams, KeepTheirOrderWhenTheyFallBehind) {
  const auto stream = make_thread_stream("slow", "slow", 1);
  std::vector<int> order;
  for (int i = 0; i < 20; ++i) stream->enqueue([&, i] { order.push_back(i); });
  std::promise<void> done;
  stream->when_done([&](std::exception_ptr) { done.set_value(); });
  done.get_future().get();
  EXPECT_EQ(order.size(), 20u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

}  // namespace
}  // namespace kolo
