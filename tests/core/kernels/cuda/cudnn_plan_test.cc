// cuDNN plans convolutions for GPUs that are not there, from their properties.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include <kolo/core/kernels/cuda/cudnn_graph.h>
#include <tests/support/paths.h>

namespace kolo::cuda {
namespace {

constexpr std::int64_t kMib = std::int64_t{1} << 20;

// "same" padding and stride 1, as LeNet has them.
ConvolutionQuestion same(ConvolutionPass pass, std::int64_t channels, std::int64_t filters,
                         std::int64_t side) {
  return {.pass = pass,
          .images = {64, channels, side, side},
          .weights = {filters, channels, 5, 5},
          .results = {64, filters, side, side},
          .strides = {1, 1},
          .pad_before = {2, 2},
          .pad_after = {2, 2}};
}

// By the name of a file of properties.
class CudnnPlan : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::string why;
    api_ = dnn_api(&why);
    if (api_ == nullptr) GTEST_SKIP() << why;
    std::ifstream file(source_path(std::string("tests/core/kernels/cuda/devices/") + GetParam()));
    const std::string json{std::istreambuf_iterator<char>(file), {}};
    ASSERT_FALSE(json.empty());
    properties_.emplace(DnnTarget::of_json(*api_, json));
  }

  std::optional<DnnPlan> plan(const ConvolutionQuestion& question, std::int64_t most_workspace,
                              std::string& why) const {
    return DnnPlan::make(*api_, {.properties = properties_->get()}, question, most_workspace, why);
  }
  void expect_plan(const ConvolutionQuestion& question) const {
    std::string why;
    const auto made = plan(question, 256 * kMib, why);
    ASSERT_TRUE(made.has_value()) << why;
    EXPECT_LE(made->workspace_bytes(), 256 * kMib);
  }

  const DnnApi* api_ = nullptr;
  std::optional<DnnDescriptor> properties_;
};

TEST_P(CudnnPlan, IsFoundForTheResultsOfLenet) {
  expect_plan(same(ConvolutionPass::results, 1, 32, 28));
  expect_plan(same(ConvolutionPass::results, 32, 64, 14));
}

TEST_P(CudnnPlan, IsFoundForTheImagesGradientOfLenet) {
  expect_plan(same(ConvolutionPass::images, 1, 32, 28));
  expect_plan(same(ConvolutionPass::images, 32, 64, 14));
}

TEST_P(CudnnPlan, IsFoundForTheWeightsGradientOfLenet) {
  expect_plan(same(ConvolutionPass::weights, 1, 32, 28));
  expect_plan(same(ConvolutionPass::weights, 32, 64, 14));
}

// ResNet's steps between stages: TensorFlow's rule puts the odd zero behind the image.
TEST_P(CudnnPlan, IsFoundForPaddingThatDiffersAtBothEnds) {
  ConvolutionQuestion question = same(ConvolutionPass::results, 16, 32, 32);
  question.weights = {32, 16, 3, 3};
  question.results = {64, 32, 16, 16};
  question.strides = {2, 2};
  question.pad_before = {0, 0};
  question.pad_after = {1, 1};
  expect_plan(question);
  question.pass = ConvolutionPass::weights;
  expect_plan(question);
}

TEST_P(CudnnPlan, SaysWhatDoesNotFitTogether) {
  ConvolutionQuestion question = same(ConvolutionPass::results, 32, 64, 14);
  question.results[2] = 15;
  std::string why;
  EXPECT_FALSE(plan(question, 256 * kMib, why).has_value());
  EXPECT_THAT(why, ::testing::HasSubstr("cuDNN"));
}

INSTANTIATE_TEST_SUITE_P(Of, CudnnPlan, ::testing::Values("sm_80.json", "sm_90.json", "sm_100.json"),
                         [](const auto& info) {
                           const std::string file = info.param;
                           return file.substr(0, file.find('.'));
                         });

}  // namespace
}  // namespace kolo::cuda
