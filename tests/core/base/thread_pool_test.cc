#include <gmock/gmock.h>

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <iostream>
#include <latch>
#include <string>
#include <thread>

#include <kolo/core/base/error.h>
#include <kolo/core/base/thread_pool.h>

namespace kolo {
namespace {

using ::testing::AllOf;
using ::testing::ExitedWithCode;
using ::testing::HasSubstr;

TEST(ThreadPool, RunsWhatIsStillQueuedBeforeItEnds) {
  std::atomic<int> runs{0};
  {
    ThreadPool pool("test", 2);
    for (int i = 0; i < 1000; ++i) pool.schedule([&] { ++runs; });
  }
  EXPECT_EQ(runs, 1000);
}

TEST(ThreadPool, RunsWhatItsOwnWorkSchedules) {
  std::atomic<int> runs{0};
  {
    ThreadPool pool("test", 1);
    pool.schedule([&] {
      ++runs;
      pool.schedule([&] { ++runs; });
    });
  }
  EXPECT_EQ(runs, 2);
}

TEST(ThreadPool, OfOneThreadKeepsTheOrder) {
  std::string order;
  {
    ThreadPool pool("test", 1);
    for (const char letter : {'a', 'b', 'c'}) pool.schedule([&order, letter] { order += letter; });
  }
  EXPECT_EQ(order, "abc");
}

TEST(ThreadPool, RunsAsManyAtOnceAsItHasThreads) {
  std::latch all_run(4);  // three workers and this thread: were one missing, nobody would pass
  ThreadPool pool("test", 3);
  for (int i = 0; i < 3; ++i) pool.schedule([&] { all_run.arrive_and_wait(); });
  all_run.arrive_and_wait();
  EXPECT_EQ(pool.size(), 3);
}

// Pieces of work that count themselves.
class Pieces final : public WorkSource {
 public:
  explicit Pieces(int count) : left_(count) {}
  bool has_work() const override { return left_ > 0; }
  void take_part(int worker) override {
    EXPECT_GE(worker, 0);
    while (left_.fetch_sub(1) > 0) ++done;
  }
  std::atomic<int> done{0};

 private:
  std::atomic<int> left_;
};

TEST(ThreadPool, WorksOnAllSourcesThatItIsOffered) {
  ThreadPool pool("test", 2);
  for (int round = 0; round < 100; ++round) {
    Pieces first(50), second(50);
    pool.offer(first);
    pool.offer(second);
    pool.wake();
    pool.wake();
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (first.done + second.done < 100 && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
    pool.withdraw(first);
    pool.withdraw(second);
    EXPECT_EQ(first.done, 50);
    EXPECT_EQ(second.done, 50);
  }
}

TEST(ThreadPool, LetsASourceGoWhenNoWorkerIsInIt) {
  class Slow final : public WorkSource {
   public:
    bool has_work() const override { return !entered; }
    void take_part(int) override {
      entered = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      left = true;
    }
    std::atomic<bool> entered{false}, left{false};
  } source;
  ThreadPool pool("test", 1);
  pool.offer(source);
  pool.wake();
  while (!source.entered) std::this_thread::yield();
  pool.withdraw(source);
  EXPECT_TRUE(source.left);
}

TEST(ThreadPool, NamesItsThreadsCutToWhatTheSystemShows) {
  char name[16] = "";
  {
    ThreadPool pool("kolo-inter-op-of-test", 1);
    pool.schedule([&] { pthread_getname_np(pthread_self(), name, sizeof name); });
  }
  EXPECT_STREQ(name, "kolo-inter-op-o");
}

TEST(ThreadPool, HasOneThreadPerCoreOfTheAffinityMaskUnlessTold) {
  cpu_set_t before, first;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&first);
  for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&first) == 0; ++core)
    if (CPU_ISSET(core, &before)) CPU_SET(core, &first);
  EXPECT_EQ(ThreadPool("test", 0).size(), CPU_COUNT(&before));
  ASSERT_EQ(sched_setaffinity(0, sizeof first, &first), 0);
  EXPECT_EQ(available_cores(), 1);
  EXPECT_EQ(ThreadPool("test", -1).size(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(KOLO_THREAD_SANITIZER)  // their shadow needs the address space
void limit_address_space_to_some_stacks() {
  std::int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit limit{};
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE) + (std::int64_t{64} << 20));
  setrlimit(RLIMIT_AS, &limit);
}

TEST(ThreadPoolDeathTest, SaysHowManyThreadsItGotWhereTheSystemGivesFewer) {
  EXPECT_EXIT(
      {
        limit_address_space_to_some_stacks();
        try {
          ThreadPool pool("crowd", 10000);
        } catch (const ResourceExhaustedError& error) {
          std::cerr << error.what();
          _exit(0);
        }
      },
      ExitedWithCode(0), AllOf(HasSubstr("\"crowd\""), HasSubstr("of 10000 threads could be started")));
}
#endif

}  // namespace
}  // namespace kolo
