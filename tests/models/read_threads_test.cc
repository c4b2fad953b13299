#include <kolo/models/read_ahead.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include <kolo/core/base/error.h>

namespace kolo::models {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(ReadThreads, DoEachPieceOfWorkOnceInEveryRun) {
  for (const int count : {1, 2, 5}) {
    ReadThreads threads(count);
    std::vector<std::atomic<int>> done(100);
    for (int run = 1; run <= 20; ++run) {
      threads.run(100, [&](std::int64_t i) { ++done[static_cast<std::size_t>(i)]; });
      for (const auto& times : done) EXPECT_EQ(times, run);
    }
  }
}

TEST(ReadThreads, HaveNothingToDoWithoutWork) {
  ReadThreads threads(3);
  threads.run(0, [](std::int64_t) { FAIL(); });
}

TEST(ReadThreads, ThrowTheErrorOfTheLeastNumberAndGoOnWithTheNextRun) {
  ReadThreads threads(4);
  for (int run = 0; run < 20; ++run) {
    EXPECT_THAT(
        [&] {
          threads.run(50, [](std::int64_t i) {
            if (i % 10 == 7) throw UnavailableError("piece {}", i);
          });
        },
        ThrowsMessage<UnavailableError>(HasSubstr("piece 7")));
    std::atomic<int> done = 0;
    threads.run(50, [&](std::int64_t) { ++done; });
    EXPECT_EQ(done, 50);
  }
}

}  // namespace
}  // namespace kolo::models
