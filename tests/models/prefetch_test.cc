#include <atomic>
#include <set>

#include <gmock/gmock.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/runtime/session.h>
#include <kolo/models/prefetch.h>

#include "tests/models/numbered_dataset.h"
#include "tests/support/thread_names.h"

namespace kolo::models {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

std::unique_ptr<Batches> batches(std::int64_t samples, std::int64_t batch_size) {
  return std::make_unique<Batches>(numbered_dataset(samples), BatchOptions{.batch_size = batch_size});
}

// Fails at batch `fail_at` of epoch 0, and tells how many batches were asked of it.
class FailingSource : public BatchSource {
 public:
  FailingSource(std::int64_t fail_at, std::atomic<int>& asked)
      : source_(batches(100, 5)), fail_at_(fail_at), asked_(asked) {}
  void next(Batch& batch) override {
    ++asked_;
    if (source_->position().epoch == 0 && source_->position().sample == fail_at_ * 5)
      throw UnavailableError("the disk is gone");
    source_->next(batch);
  }
  BatchPosition position() const override { return source_->position(); }
  void seek(const BatchPosition& position) override { source_->seek(position); }

 private:
  std::unique_ptr<Batches> source_;
  std::int64_t fail_at_;
  std::atomic<int>& asked_;
};

TEST(Prefetcher, HandsOutTheSameBatchesInTheSameOrder) {
  const auto plain = batches(50, 7);
  Prefetcher ahead(batches(50, 7));
  for (int step = 0; step < 40; ++step)
    EXPECT_EQ(next_numbers(ahead), next_numbers(*plain)) << "step " << step;
}

TEST(Prefetcher, TellsThePositionOfBatchesHandedOut) {
  const auto plain = batches(50, 7);
  Prefetcher ahead(batches(50, 7), 5);
  EXPECT_EQ(ahead.position(), plain->position());
  for (int step = 0; step < 20; ++step) {
    next_numbers(ahead);
    next_numbers(*plain);
    EXPECT_EQ(ahead.position(), plain->position()) << "step " << step;
  }
}

TEST(Prefetcher, GoesOnFromAnyPositionWhateverWasReadAhead) {
  for (int before = 0; before < 6; ++before) {
    Prefetcher ahead(batches(60, 6), 3);
    for (int step = 0; step < before; ++step) next_numbers(ahead);
    ahead.seek({4, 48});
    EXPECT_EQ(ahead.position(), (BatchPosition{4, 48, 1, 60}));
    const auto plain = batches(60, 6);
    plain->seek({4, 48});
    for (int step = 0; step < 10; ++step)
      EXPECT_EQ(next_numbers(ahead), next_numbers(*plain)) << "step " << step;
  }
}

TEST(Prefetcher, RefusesWhatIsNoPositionAndGoesOn) {
  const auto plain = batches(60, 6);
  Prefetcher ahead(batches(60, 6), 3);
  EXPECT_EQ(next_numbers(ahead), next_numbers(*plain));
  EXPECT_THROW(ahead.seek({-1, 0}), InvalidArgumentError);
  for (int step = 0; step < 5; ++step) EXPECT_EQ(next_numbers(ahead), next_numbers(*plain));
}

TEST(Prefetcher, HandsErrorOfItsThreadToTheConsumerAfterTheBatchesBefore) {
  std::atomic<int> asked = 0;
  Prefetcher ahead(std::make_unique<FailingSource>(3, asked), 2);
  for (int step = 0; step < 3; ++step) EXPECT_EQ(next_numbers(ahead).size(), 5u);
  for (int again = 0; again < 2; ++again)
    EXPECT_THAT([&] { next_numbers(ahead); }, ThrowsMessage<UnavailableError>(HasSubstr("the disk is gone")));
  EXPECT_EQ(ahead.position(), (BatchPosition{0, 15, 1, 100}));
  EXPECT_EQ(asked, 4);
  ahead.seek({1, 0});
  EXPECT_EQ(next_numbers(ahead).size(), 5u);
}

TEST(Prefetcher, RecyclesTensorsWithoutTouchingThoseThatAreShared) {
  Prefetcher ahead(batches(500, 5), 2);
  std::set<const std::byte*> memory;
  Batch batch;
  for (int step = 0; step < 30; ++step) {
    ahead.next(batch);
    memory.insert(batch.samples.raw());
  }
  EXPECT_LE(memory.size(), 4u);  // two in the ring, the consumer's, and the one that it began with
  const Batch kept = batch;
  const auto before = numbers(kept);
  for (int step = 0; step < 10; ++step) ahead.next(batch);
  EXPECT_EQ(numbers(kept), before);
}

// A session with so many virtual GPUs that computes what it is fed with, on the first of them.
class Reader {
 public:
  explicit Reader(int gpus) : session_(graph_, config(gpus)) {}
  Session& session() { return session_; }
  std::vector<int> numbers(const Batch& batch) {
    return models::numbers({.samples = session_.run(read_samples_, {{samples_, batch.samples}}),
                            .labels = session_.run(read_labels_, {{labels_, batch.labels}})});
  }

 private:
  static SessionConfig config(int gpus) {
    SessionConfig made;
    made.virtual_gpus.assign(static_cast<std::size_t>(gpus),
                             {.total_bytes = std::int64_t{1} << 30, .delay_seed = 7});
    return made;
  }

  Graph graph_;
  const Scope s_{graph_};
  const Output samples_ = placeholder(s_, DType::f32, {-1, 1, 28, 28}),
               labels_ = placeholder(s_, DType::i32, {-1});
  const Output read_samples_ = neg(s_, neg(s_, samples_)), read_labels_ = neg(s_, neg(s_, labels_));
  Session session_;
};

TEST(Prefetcher, ReadsForASessionAheadOfItsSteps) {
  for (const int gpus : {0, 1, 2}) {
    Reader reader(gpus);
    const auto expected = batches(500, 5);
    Prefetcher ahead(batches(500, 5), 2);
    Batch batch, wanted, kept;
    std::vector<int> numbers_kept;
    std::set<const std::byte*> memory;
    for (int step = 0; step < 24; ++step) {
      if (step == 3) ahead.read_for(reader.session());
      if (step == 18) ahead.seek({2, 100}), expected->seek({2, 100});
      ahead.next(batch);
      expected->next(wanted);
      EXPECT_EQ(reader.numbers(batch), numbers(wanted)) << "step " << step;
      EXPECT_EQ(ahead.position(), expected->position());
      if (step == 10) kept = batch, numbers_kept = numbers(wanted);
      if (step > 3) memory.insert(batch.samples.raw());
    }
    EXPECT_EQ(reader.numbers(kept), numbers_kept) << "of a batch that somebody holds";
    EXPECT_LE(memory.size(), 8u);  // they go round
  }
}

TEST(Prefetcher, OutlivesTheSessionThatItReadsFor) {
  Prefetcher ahead(batches(500, 5), 2);
  Batch batch;
  {
    Reader reader(1);
    ahead.read_for(reader.session());
    ahead.next(batch);
  }
  ahead.next(batch);
  Reader another(0);
  ahead.read_for(another.session());
  ahead.next(batch);
  EXPECT_EQ(another.numbers(batch), (std::vector<int>(numbers(batch))));
}

TEST(Prefetcher, RunsOneNamedThreadThatIsJoined) {
  {
    Prefetcher ahead(batches(50, 5));
    next_numbers(ahead);
    EXPECT_THAT(thread_names(), Contains("kolo-input"));
  }
  EXPECT_THAT(thread_names(), Not(Contains("kolo-input")));
}

TEST(Prefetcher, CanBeDroppedAtAnyMoment) {
  for (int taken = 0; taken < 50; ++taken) {
    Prefetcher ahead(batches(200, 2), 1 + taken % 4);
    for (int step = 0; step < taken % 5; ++step) EXPECT_EQ(next_numbers(ahead).size(), 2u);
  }
  EXPECT_THAT(thread_names(), Not(Contains("kolo-input")));
}

TEST(Prefetcher, NeedsRoomForOneBatch) {
  EXPECT_THAT([] { Prefetcher(batches(50, 5), 0); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("0 batches")));
}

}  // namespace
}  // namespace kolo::models
