// cuDNN plans convolutions for GPUs that are not there, from their properties.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include <kolo/core/kernels/cuda/cudnn_graph.h>
#include <tests/support/paths.h>

namespace kolo::cuda {
namespace {

using ::testing::IsEmpty;

constexpr std::int64_t kMib = std::int64_t{1} << 20;

// "same" padding, unless the images have their zeros already.
struct Layer {
  std::int64_t channels, filters, kernel, side, stride = 1;
  bool is_padded = false;
};
constexpr Layer kZoo[] = {
    {1, 32, 5, 28},     {32, 64, 5, 14},                                       // LeNet
    {1, 16, 3, 28},     {16, 16, 3, 28}, {16, 32, 3, 28, 2}, {32, 32, 3, 14},  // ResNet-20 on digits
    {32, 64, 3, 14, 2}, {64, 64, 3, 7},  {16, 32, 1, 28, 2}, {32, 64, 1, 14, 2},
    {3, 16, 3, 32},     {16, 16, 3, 32}, {16, 32, 3, 32, 2}, {32, 32, 3, 16},  // and on CIFAR
    {32, 64, 3, 16, 2}, {64, 64, 3, 8},  {16, 32, 1, 32, 2}, {32, 64, 1, 16, 2},
};

// On photographs.
constexpr Layer kLarge[] = {
    {3, 64, 7, 230, 2, true},   {64, 64, 1, 56},    {64, 64, 3, 56},  // ResNet-50
    {64, 256, 1, 56},           {256, 64, 1, 56},   {256, 128, 1, 56},
    {128, 128, 3, 58, 2, true}, {128, 512, 1, 28},  {256, 512, 1, 56, 2, true},
    {512, 128, 1, 28},          {128, 128, 3, 28},  {512, 256, 1, 28},
    {256, 256, 3, 30, 2, true}, {256, 1024, 1, 14}, {512, 1024, 1, 28, 2, true},
    {1024, 256, 1, 14},         {256, 256, 3, 14},  {1024, 512, 1, 14},
    {512, 512, 3, 16, 2, true}, {512, 2048, 1, 7},  {1024, 2048, 1, 14, 2, true},
    {2048, 512, 1, 7},          {512, 512, 3, 7},   {3, 64, 3, 224},  // VGG-16
    {64, 64, 3, 224},           {64, 128, 3, 112},  {128, 128, 3, 112},
    {128, 256, 3, 56},          {256, 256, 3, 56},  {256, 512, 3, 28},
    {512, 512, 3, 28},          {512, 512, 3, 14},
};

ConvolutionQuestion question_of(ConvolutionPass pass, const Layer& layer, std::int64_t batch = 64) {
  const std::int64_t covered = layer.is_padded ? layer.side - layer.kernel + 1 : layer.side;
  const std::int64_t results = (covered + layer.stride - 1) / layer.stride;
  // TensorFlow's rule: the odd zero goes behind the image.
  const std::int64_t padding =
      std::max<std::int64_t>(0, (results - 1) * layer.stride + layer.kernel - layer.side);
  return {.pass = pass,
          .images = {batch, layer.channels, layer.side, layer.side},
          .weights = {layer.filters, layer.channels, layer.kernel, layer.kernel},
          .results = {batch, layer.filters, results, results},
          .strides = {layer.stride, layer.stride},
          .pad_before = {padding / 2, padding / 2},
          .pad_after = {padding - padding / 2, padding - padding / 2}};
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
    return DnnPlan::make(*api_, {.properties = properties_->get()}, question, most_workspace, nullptr, why);
  }
  // The layers for which there is none, so that kolo's own kernel computes them.
  std::vector<std::string> layers_without_plan(ConvolutionPass pass, bool allow_tf32 = false) {
    std::vector<std::string> without;
    for (const Layer& layer : kZoo) {
      const std::string name = fmt::format("{}_to_{}_of_{}x{}_on_{}_by_{}", layer.channels, layer.filters,
                                           layer.kernel, layer.kernel, layer.side, layer.stride);
      std::string why;
      ConvolutionQuestion question = question_of(pass, layer);
      question.allow_tf32 = allow_tf32;
      const auto made = plan(question, 256 * kMib, why);
      if (!made) {
        without.push_back(name);
        continue;
      }
      EXPECT_LE(made->workspace_bytes(), 256 * kMib) << name;
      RecordProperty(name, fmt::format("engine {}, workspace {}", made->engine(), made->workspace_bytes()));
    }
    return without;
  }

  // A line of the table: of each large layer the engine and its workspace in MiB, "-" where there is none.
  std::string line_of(ConvolutionPass pass, std::int64_t batch, bool allow_tf32) const {
    const char* const passes[] = {"results", "images", "weights"};
    const std::string gpu = GetParam();
    std::string line = fmt::format("{} {} batch {} {}:", gpu.substr(0, gpu.find('.')),
                                   allow_tf32 ? "tf32" : "f32", batch, passes[static_cast<int>(pass)]);
    for (const Layer& layer : kLarge) {
      ConvolutionQuestion question = question_of(pass, layer, batch);
      question.allow_tf32 = allow_tf32;
      std::string why;
      const auto made = plan(question, kMostWorkspace, why);
      line +=
          made ? fmt::format(" {}/{}", made->engine(), (made->workspace_bytes() + kMib - 1) / kMib) : " -";
    }
    return line;
  }
  static constexpr std::int64_t kMostWorkspace = 4096 * kMib;  // as on a GPU of 40 GiB or more

  const DnnApi* api_ = nullptr;
  std::optional<DnnDescriptor> properties_;
};

// In f32, without tensor cores.
TEST_P(CudnnPlan, IsFoundForTheResultsOfAllLayersOfTheZoo) {
  EXPECT_THAT(layers_without_plan(ConvolutionPass::results), IsEmpty());
}
TEST_P(CudnnPlan, IsFoundForTheImagesGradientsOfAllLayersOfTheZoo) {
  // But for these, of which cuDNN 9.19 has exact engines that repeat for sm_90 alone: kolo's own kernel.
  EXPECT_THAT(layers_without_plan(ConvolutionPass::images),
              ::testing::IsSubsetOf({"16_to_32_of_3x3_on_28_by_2", "32_to_64_of_3x3_on_14_by_2",
                                     "16_to_32_of_3x3_on_32_by_2", "32_to_64_of_3x3_on_16_by_2"}));
}
TEST_P(CudnnPlan, IsFoundForTheWeightsGradientsOfAllLayersOfTheZoo) {
  EXPECT_THAT(layers_without_plan(ConvolutionPass::weights), IsEmpty());
}

// Which is what convolutions compute in by default.
TEST_P(CudnnPlan, IsFoundInTf32ForAllLayersOfTheZooInEachDirection) {
  for (const auto pass : {ConvolutionPass::results, ConvolutionPass::images, ConvolutionPass::weights})
    EXPECT_THAT(layers_without_plan(pass, true), IsEmpty());
}

// plans.txt has what cuDNN 9.19 answers. KOLO_WRITE_PLANS=FILE appends this cuDNN's answers there.
TEST_P(CudnnPlan, OfPhotographsAreThoseThatAreWrittenDown) {
  std::vector<std::string> lines;
  for (const bool allow_tf32 : {false, true})
    for (const std::int64_t batch : {8, 256})
      for (const auto pass : {ConvolutionPass::results, ConvolutionPass::images, ConvolutionPass::weights}) {
        lines.push_back(line_of(pass, batch, allow_tf32));
        if (allow_tf32) {
          EXPECT_THAT(lines.back(), ::testing::Not(::testing::HasSubstr(" -")));
        }
      }
  if (const char* const path = std::getenv("KOLO_WRITE_PLANS")) {
    std::ofstream file(path, std::ios::app);
    for (const std::string& line : lines) file << line << '\n';
  }
  if (api_->get_version() / 100 != 919) GTEST_SKIP() << "plans.txt is of cuDNN 9.19";
  std::ifstream file(source_path("tests/core/kernels/cuda/plans.txt"));
  std::vector<std::string> expected;
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(lines[0].substr(0, lines[0].find(' ') + 1))) expected.push_back(line);
  EXPECT_EQ(lines, expected);
}

TEST_P(CudnnPlan, TakesAnEngineForTensorCoresWhereTf32IsAllowed) {
  ConvolutionQuestion question = question_of(ConvolutionPass::results, {64, 64, 3, 8});
  std::string why;
  const auto exact = plan(question, 256 * kMib, why);
  question.allow_tf32 = true;
  const auto fast = plan(question, 256 * kMib, why);
  ASSERT_TRUE(exact.has_value() && fast.has_value()) << why;
  EXPECT_NE(exact->engine(), fast->engine());
}

TEST_P(CudnnPlan, SaysWhatDoesNotFitTogether) {
  ConvolutionQuestion question = question_of(ConvolutionPass::results, {32, 64, 5, 14});
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
