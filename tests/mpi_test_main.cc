// main() of the test programs that run under mpirun. Rank 0 prints GoogleTest's report; the others speak up
// only about what fails on them. A failure on any rank makes mpirun's exit code non-zero.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <exception>

#include <kolo/collectives/job/init.h>

namespace {

class FailuresOnly : public testing::EmptyTestEventListener {
 public:
  explicit FailuresOnly(int rank) : rank_(rank) {}

  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "[rank %d] %s:%d: Failure\n%s\n", rank_,
                 result.file_name() ? result.file_name() : "?", result.line_number(), result.summary());
  }
  void OnTestEnd(const testing::TestInfo& test) override {
    if (test.result()->Failed())
      std::fprintf(stderr, "[rank %d] FAILED %s.%s\n", rank_, test.test_suite_name(), test.name());
  }

 private:
  const int rank_;
};

void print_failures_only(int rank) {
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new FailuresOnly(rank));
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  try {
    kolo::init(&argc, &argv);
    if (kolo::rank() != 0) print_failures_only(kolo::rank());
    const int failed = RUN_ALL_TESTS();
    kolo::shutdown();
    return failed;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "init or shutdown failed: %s\n", error.what());
    return 1;
  }
}
