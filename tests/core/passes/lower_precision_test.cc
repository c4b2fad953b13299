#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <string>

#include <kolo/core/graph/gradients.h>
#include <kolo/core/kernels/cpu/onednn/native_bf16.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/bf16.h>
#include <kolo/core/ops/convolution.h>
#include <kolo/core/ops/linalg.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/variables.h>

#include "tests/core/kernels_of.h"
#include "tests/core/passes/placed_step.h"

namespace kolo {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class LowerPrecisionTest : public ::testing::Test {
 protected:
  LowerPrecisionTest()
      : x_(placeholder(s_, DType::f32, {4, 3})), w_(s_.named("w"), zeros(s_, DType::f32, {3, 2})) {}
  void SetUp() override {
    if (!detail::has_native_bf16()) GTEST_SKIP() << "this CPU has no instructions for bf16";
  }
  static StepGraph lowered(const std::vector<Fetch>& fetches,
                           const std::vector<std::pair<Output, Shape>>& fed) {
    StepGraph step = placed_step(fetches, fed);
    lower_precision(step, Precision::bf16);
    return step;
  }
  static int count(const StepGraph& step, const std::string& op) {
    return static_cast<int>(std::count_if(step.nodes.begin(), step.nodes.end(),
                                          [&](const StepNode& node) { return node.schema->name() == op; }));
  }

  Graph graph_;
  Scope s_{graph_};
  Output x_;
  Variable w_;
};

TEST_F(LowerPrecisionTest, RoundsWhatSeveralProductsReadOnce) {
  const Output y = matmul(s_, x_, w_), dy = placeholder(s_, DType::f32, {4, 2});
  const Outputs to = gradients(s_, {y}, {x_, w_}, {dy});
  const StepGraph step = lowered({y, to[0], to[1]}, {{x_, {4, 3}}, {dy, {4, 2}}});
  EXPECT_EQ(count(step, kToBf16Op), 2) << "x and dy; not the variable";
  EXPECT_EQ(count(step, kBf16MatMulOp), 3);
}

TEST_F(LowerPrecisionTest, LeavesToTheProductWhatItAloneReads) {
  const StepGraph step = lowered({matmul(s_, x_, w_)}, {{x_, {4, 3}}});
  EXPECT_EQ(count(step, kToBf16Op), 0);
  const auto product = std::find_if(step.nodes.begin(), step.nodes.end(),
                                    [](const StepNode& node) { return node.schema->name() == "MatMul"; });
  ASSERT_NE(product, step.nodes.end());
  EXPECT_EQ(product->attrs.count(kInBf16), 1u);
}

TEST_F(LowerPrecisionTest, LeavesConvolutionsInF32WhereKolosOwnAreFaster) {
  const Output x = placeholder(s_, DType::f32, {2, 16, 8, 8});
  const Output large = conv2d(s_, x, zeros(s_, DType::f32, {32, 16, 3, 3})),
               small = conv2d(s_, x, zeros(s_, DType::f32, {32, 16, 1, 1})), sum = add(s_, large, small);
  const auto in_bf16 = [&](detail::KernelSource source, const Output& of) {
    const KernelsOf chosen(source);
    const StepGraph step = lowered({of}, {{x, {2, 16, 8, 8}}});
    return std::count_if(step.nodes.begin(), step.nodes.end(),
                         [](const StepNode& node) { return node.attrs.count(kInBf16) > 0; });
  };
  using detail::KernelSource;
  EXPECT_EQ(in_bf16(KernelSource::own, sum), 0) << "9 of 10 multiplications are for Winograd's algorithm";
  EXPECT_EQ(in_bf16(KernelSource::own, small), 1);
  EXPECT_EQ(in_bf16(KernelSource::library, sum), 2);
}

TEST_F(LowerPrecisionTest, RoundsNoLargeMatrixForFewRows) {
  const Output x = placeholder(s_, DType::f32, {4, 1024});
  const auto in_bf16 = [&](std::int64_t outputs) {
    const StepGraph step = lowered({matmul(s_, x, zeros(s_, DType::f32, {1024, outputs}))}, {{x, {4, 1024}}});
    return std::count_if(step.nodes.begin(), step.nodes.end(),
                         [](const StepNode& node) { return node.attrs.count(kInBf16) > 0; });
  };
  EXPECT_EQ(in_bf16(1024), 0);
  EXPECT_EQ(in_bf16(512), 1);
}

TEST_F(LowerPrecisionTest, RefusesProductsOnOtherDevices) {
  StepGraph step = placed_step({matmul(s_.named("far"), x_, w_)}, {{x_, {4, 3}}});
  for (StepNode& node : step.nodes) node.device = local_device_name("GPU", 0);
  EXPECT_THAT([&] { lower_precision(step, Precision::bf16); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("far (MatMul) lies on")));
}

// What each precision says of a convolution and of a matrix product.
TEST(LowerPrecision, MarksTf32OnGpusAlone) {
  Graph graph;
  const Scope s(graph);
  const Output x = placeholder(s, DType::f32, {2, 4, 8, 8}), a = placeholder(s, DType::f32, {4, 3});
  const Output image = conv2d(s, x, zeros(s, DType::f32, {3, 4, 3, 3})),
               product = matmul(s, a, zeros(s, DType::f32, {3, 2}));
  const auto marks = [&](Precision precision, const char* device) {
    StepGraph step = placed_step({image, product}, {{x, {2, 4, 8, 8}}, {a, {4, 3}}});
    for (StepNode& node : step.nodes) node.device = local_device_name(device, 0);
    lower_precision(step, precision);
    std::map<std::string, bool> marked;
    for (const StepNode& node : step.nodes)
      if (const auto found = node.attrs.find(kInTf32); found != node.attrs.end())
        marked[node.schema->name()] = found->second.get<bool>();
    return marked;
  };
  using Marks = std::map<std::string, bool>;
  EXPECT_EQ(marks(Precision::automatic, "GPU"), (Marks{{"Conv2D", false}}));
  EXPECT_EQ(marks(Precision::tf32, "GPU"), (Marks{{"Conv2D", true}, {"MatMul", true}}));
  EXPECT_EQ(marks(Precision::f32, "GPU"), Marks());
  for (const Precision precision : {Precision::automatic, Precision::f32, Precision::tf32})
    EXPECT_EQ(marks(precision, "CPU"), Marks());
}

TEST_F(LowerPrecisionTest, SaysWhichProductsStayInF32) {
  const Output few = placeholder(s_, DType::f32, {8, 1024}), more = placeholder(s_, DType::f32, {16, 1024});
  const Variable large(s_.named("large"), zeros(s_, DType::f32, {1024, 1024}));
  ::testing::internal::CaptureStderr();
  const StepGraph step =
      lowered({matmul(s_, few, large), matmul(s_, more, large)}, {{few, {8, 1024}}, {more, {16, 1024}}});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("precision bf16: in f32 1 product of at most 8 rows with a large matrix, since "
                        "rounding the matrix takes longer"));
  for (const StepNode& node : step.nodes) {
    if (node.schema->name() != "MatMul") continue;
    EXPECT_EQ(node.attrs.count(kInBf16) == 1, node.shapes[0].dim(0) == 16);
  }
}

TEST_F(LowerPrecisionTest, ChangesNothingInF32) {
  StepGraph step = placed_step({matmul(s_, x_, w_)}, {{x_, {4, 3}}});
  lower_precision(step, Precision::f32);
  for (const StepNode& node : step.nodes) EXPECT_EQ(node.attrs.count(kInBf16), 0u);
}

}  // namespace
}  // namespace kolo
