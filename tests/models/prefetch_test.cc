#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>

#include <gmock/gmock.h>

#include <kolo/core/base/error.h>
#include <kolo/core/base/mutex.h>
#include <kolo/models/prefetch.h>

#include "tests/models/numbered_dataset.h"

namespace kolo::models {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

std::unique_ptr<Batches> batches(std::int64_t samples, std::int64_t batch_size) {
  return std::make_unique<Batches>(numbered_dataset(samples), BatchOptions{.batch_size = batch_size});
}

// Names of this process's threads.
std::vector<std::string> thread_names() {
  std::vector<std::string> names;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "comm");
    std::getline(file, names.emplace_back());
  }
  return names;
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

// Counts what is taken of the CPU's memory by it.
class CountedMemory final : public Allocator {
 public:
  std::string name() const override { return "counted memory"; }
  void* allocate(std::size_t bytes) override {
    ++taken;
    void* const block = cpu_allocator().allocate(bytes);
    MutexLock lock(mutex_);
    blocks_.insert(block);
    return block;
  }
  void deallocate(void* block, std::size_t bytes) noexcept override {
    cpu_allocator().deallocate(block, bytes);
  }
  bool has(const std::byte* block) {
    MutexLock lock(mutex_);
    return blocks_.count(block) > 0;
  }
  std::atomic<int> taken{0};

 private:
  Mutex mutex_;
  std::set<const void*> blocks_ KOLO_GUARDED_BY(mutex_);
};

TEST(Prefetcher, ReadsIntoTheMemoryThatItIsGiven) {
  CountedMemory memory;
  const auto expected = batches(500, 5);
  Prefetcher ahead(batches(500, 5), 2);
  Batch batch, wanted;
  for (int step = 0; step < 40; ++step) {
    if (step == 3) ahead.read_into(memory);
    ahead.next(batch);
    expected->next(wanted);
    EXPECT_EQ(numbers(batch), numbers(wanted));
    if (step < 10) continue;  // what was read before has gone round
    EXPECT_TRUE(memory.has(batch.samples.raw()));
    EXPECT_TRUE(memory.has(batch.labels.raw()));
  }
  EXPECT_LE(memory.taken, 8);  // two tensors of each batch that goes round
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
