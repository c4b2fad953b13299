#include <kolo/core/device/stream.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <utility>

#include <kolo/core/base/env.h>
#include <kolo/core/base/thread_pool.h>
#include <kolo/core/device/order_log.h>

namespace kolo {
namespace {

std::uint64_t next_number() {
  static std::atomic<std::uint64_t> numbers{0};
  return ++numbers;
}

std::string token_of(const StreamEvent& event) {
  return fmt::format("event:{}", fmt::ptr(static_cast<const void*>(&event)));
}

std::uint64_t records_of(const std::map<std::uint64_t, std::uint64_t>& behind, std::uint64_t stream) {
  const auto found = behind.find(stream);
  return found == behind.end() ? 0 : found->second;
}

// Counts its records, so that who waits for one waits for no other.
class ThreadEvent final : public StreamEvent {
 public:
  std::uint64_t record() {
    MutexLock lock(mutex_);
    return ++recorded_;
  }
  std::uint64_t recorded() {
    MutexLock lock(mutex_);
    return recorded_;
  }
  void pass(std::uint64_t record) {
    MutexLock lock(mutex_);
    passed_ = record;
    changed_.notify_all();
  }
  bool has_passed() {
    MutexLock lock(mutex_);
    return passed_ == recorded_;
  }
  // The record stands in a stream already: it passes without this one.
  void await(std::uint64_t record) {
    MutexLock lock(mutex_);
    while (passed_ < record) changed_.wait(mutex_);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::uint64_t recorded_ KOLO_GUARDED_BY(mutex_) = 0;
  std::uint64_t passed_ KOLO_GUARDED_BY(mutex_) = 0;
};

class ThreadStream final : public Stream {
 public:
  ThreadStream(const std::string& name, const std::string& thread, std::uint64_t delay_seed)
      : Stream(name), delays_(delay_seed != 0), random_(delay_seed), thread_(thread, 1) {}
  void enqueue(std::function<void()> work) override {
    if (!delays_) return thread_.schedule(std::move(work));
    thread_.schedule([this, work = std::move(work)] {
      if (random_() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random_() % 200));
      work();
    });
  }
  std::unique_ptr<StreamEvent> make_event() override { return std::make_unique<ThreadEvent>(); }
  std::unique_ptr<StreamGraph> capture(std::function<void(void* native)> put) override {
    return std::make_unique<ThreadGraph>(*this, std::move(put));
  }

 private:
  class ThreadGraph final : public StreamGraph {
   public:
    ThreadGraph(ThreadStream& stream, std::function<void(void*)> put)
        : stream_(stream), put_(std::move(put)) {}
    void launch() override {
      stream_.enqueue([this] { put_(nullptr); });
    }
    int nodes() const override { return 0; }

   private:
    ThreadStream& stream_;
    const std::function<void(void*)> put_;
  };

  void put_end(Done done) override {
    thread_.schedule([done = std::move(done)] { done(nullptr); });
  }
  void put_record(StreamEvent& event) override {
    auto& ours = static_cast<ThreadEvent&>(event);
    thread_.schedule([&ours, record = ours.record()] { ours.pass(record); });
  }
  void put_wait(StreamEvent& event) override {
    auto& other = static_cast<ThreadEvent&>(event);
    thread_.schedule([&other, record = other.recorded()] { other.await(record); });
  }
  bool try_done(StreamEvent& event) override { return static_cast<ThreadEvent&>(event).has_passed(); }

  const bool delays_;
  std::minstd_rand random_;  // the thread's
  ThreadPool thread_;        // the last member: joined while the rest is alive
};

}  // namespace

Stream::Stream(std::string name) : name_(std::move(name)), number_(next_number()) {}

void Stream::when_done(Done done) {
  OrderLog* const log = OrderLog::active();
  if (log == nullptr) return put_end(std::move(done));
  static std::atomic<int> ends{0};
  const std::string token = fmt::format("end:{}", ++ends);
  log->record(name_, token);
  put_end([log, token, done = std::move(done)](std::exception_ptr error) {
    log->begin(token);
    done(std::move(error));
  });
}

void Stream::record(StreamEvent& event) {
  MutexLock lock(order_mutex_);
  ++behind_[number_];
  event.stream_ = number_;
  event.behind_ = behind_;
  put_record(event);
  if (OrderLog* const log = OrderLog::active()) log->record(name_, token_of(event));
}

bool Stream::has_passed(StreamEvent& event) { return try_done(event); }

void Stream::comes_behind(const StreamEvent& event) {
  for (const auto& [stream, records] : event.behind_) behind_[stream] = std::max(behind_[stream], records);
}

void Stream::wait_for(std::span<StreamEvent* const> events, std::span<StreamEvent* const> passed) {
  if (events.empty()) return;
  MutexLock lock(order_mutex_);
  for (const StreamEvent* const event : passed) comes_behind(*event);
  for (StreamEvent* const event : events) {
    const auto comes_before = [&](const std::map<std::uint64_t, std::uint64_t>& behind) {
      return records_of(behind, event->stream_) >= records_of(event->behind_, event->stream_);
    };
    const bool follows =
        comes_before(behind_) || std::any_of(events.begin(), events.end(), [&](const StreamEvent* other) {
          return other != event && comes_before(other->behind_);
        });
    if (follows) continue;
    put_wait(*event);
    if (OrderLog* const log = OrderLog::active()) log->wait(name_, token_of(*event));
    comes_behind(*event);
  }
}

bool waits_after_each_piece() {
  static const bool waits = env_choice("KOLO_CUDA_SYNC", "0", {"0", "1"}) == "1";
  return waits;
}

std::unique_ptr<Stream> make_thread_stream(const std::string& name, const std::string& thread,
                                           std::uint64_t delay_seed) {
  return std::make_unique<ThreadStream>(name, thread, delay_seed);
}

}  // namespace kolo
