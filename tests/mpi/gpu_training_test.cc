// Virtual GPUs run the CPU's kernels: whatever they do beside or behind one another, the bits are the CPU's.
#include <gmock/gmock.h>

#include <string>

#include <tests/core/training/temporary_directory.h>
#include <tests/mpi/gpu_training.h>

namespace kolo {
namespace {

using testing::trained;

class GpuTrainingOf : public ::testing::TestWithParam<const char*> {};

TEST_P(GpuTrainingOf, GivesTheBitsOfTheCpu) {
  const std::string cpu = trained({.model = GetParam(), .towers = {"/cpu:0"}});
  EXPECT_TRUE(trained({.model = GetParam()}) == cpu);
  EXPECT_TRUE(trained({.model = GetParam(), .threads = 2}) == cpu) << "two threads put nodes on the streams";
  EXPECT_TRUE(trained({.model = GetParam(), .variables = "/cpu:0"}) == cpu) << "variables on the CPU";
}

TEST_P(GpuTrainingOf, GivesTheBitsOfTheCpuAsTowers) {
  EXPECT_TRUE(trained({.model = GetParam(), .towers = {"/gpu:0", "/gpu:1"}}) ==
              trained({.model = GetParam(), .towers = {"/cpu:0", "/cpu:0"}}));
}

TEST_P(GpuTrainingOf, GivesTheSameBitsHoweverItsStreamsFallBehind) {
  const std::string expected = trained({.model = GetParam()});
  const std::uint64_t seeds = size() == 1 ? 50 : 3;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed)
    ASSERT_TRUE(trained({.model = GetParam(), .delay_seed = 10 * seed}) == expected) << "seed " << seed;
}

TEST_P(GpuTrainingOf, ResumesAsIfItHadNotStopped) {
  if (size() > 1) GTEST_SKIP() << "checkpoints of several ranks have tests of their own";
  const TemporaryDirectory folder;
  const std::string prefix = folder / "model";
  trained({.model = GetParam(), .steps = 2, .saved = prefix});
  EXPECT_TRUE(trained({.model = GetParam(), .steps = 2, .restored = prefix}) ==
              trained({.model = GetParam(), .steps = 4}));
}

INSTANTIATE_TEST_SUITE_P(Zoo, GpuTrainingOf, ::testing::Values("lenet", "resnet20"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace kolo
