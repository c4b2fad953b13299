#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <kolo/core/graph/gradients.h>
#include <kolo/core/kernels/cpu/onednn/native_bf16.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/convolution.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/normalization.h>
#include <kolo/core/ops/pooling.h>
#include <kolo/core/ops/slicing.h>

#include "tests/core/gradient_check.h"
#include "tests/core/kernels_of.h"
#include "tests/core/passes/placed_step.h"

namespace kolo {
namespace {

using ::testing::Contains;
using ::testing::Not;

struct Net {
  // In f32, or in f64 for what is expected: the same numbers.
  Tensor numbers(const Shape& shape) {
    const Tensor values = test_numbers(shape, ++salt);
    return type == DType::f64 ? values : detail::converted<double>(values, type);
  }
  Output conv(Output x, std::int64_t channels, const char* name) {
    weights = constant(s, numbers({channels, x.shape().dim(1), 3, 3}));
    return conv2d(s.named(name), x, weights);
  }
  Output norm(Output x, const char* name) {
    const Shape channels{x.shape().dim(1)};
    const auto given = [&] { return constant(s, numbers(channels)); };
    return batch_norm(s.named(name), x, given(), given(), given(), given()).y;
  }
  Output images(const Shape& shape = {3, 48, 6, 5}) {
    const Output x = placeholder(s, type, shape);
    feeds.emplace_back(x, numbers(shape));
    return x;
  }
  // The end of a residual block, its loss with a weight for each element, and the gradients to the images
  // and to the weights of the last convolution.
  std::vector<Fetch> residual_block() {
    const Output x = images(), first = relu(s, norm(conv(x, 32, "conv1"), "norm1")),
                 sum = add(s, norm(conv(first, 32, "conv2"), "norm2"), first), y = relu(s, sum),
                 loss_weights = constant(s, numbers(y.shape()));
    const Outputs to = gradients(s, {y}, {x, weights}, {loss_weights});
    return {y, to[0], to[1]};
  }

  // Behind the pass and those that it needs.
  StepGraph narrowed(const std::vector<Fetch>& fetches) {
    std::vector<std::pair<Output, Shape>> fed;
    for (const auto& [output, tensor] : feeds) fed.emplace_back(output, tensor.shape());
    StepGraph step = placed_step(fetches, fed);
    lower_precision(step, Precision::bf16);
    GraphOptions options = only("narrow_images");
    std::erase(options.disabled_passes, "layout");
    std::erase(options.disabled_passes, "fuse_norms");
    rewrite(step, options);
    return step;
  }
  std::vector<Tensor> run(const std::vector<Fetch>& fetches, const GraphOptions& options) {
    return Session(graph, {.graph_options = options}).run(fetches, feeds);
  }

  KernelsOf library{detail::KernelSource::library};  // which leaves no convolution in f32
  Graph graph;
  Scope s{graph};
  DType type = DType::f32;
  Feeds feeds;
  Output weights;  // of the last convolution
  int salt = 0;
};

struct NarrowImages : ::testing::Test, Net {
  void SetUp() override {
    if (!detail::has_native_bf16()) GTEST_SKIP() << "this CPU has no instructions for bf16";
  }
};

TEST_F(NarrowImages, StoresImagesAndTheirGradientsInBf16AndAllElseInF32) {
  const StepGraph step = narrowed(residual_block());
  int images = 0;
  for (const StepNode& node : step.nodes) {
    const std::string& op = node.schema->name();
    const bool is_norm = op.starts_with("BlockedBatchNorm");
    const bool makes_images = op == "BlockedConv2D" || is_norm;
    for (std::size_t o = 0; o < node.dtypes.size(); ++o) {
      const bool is_image = makes_images && (o == 0 || (op == "BlockedBatchNormGrad" && o == 3));
      images += is_image;
      const bool is_other = (is_norm && !is_image) || op == "BlockedConv2DBackpropFilter";
      if (is_image || is_other) {
        EXPECT_EQ(node.dtypes[o], is_image ? DType::bf16 : DType::f32) << node.name << " output " << o;
      }
    }
  }
  EXPECT_EQ(images, 7) << "of two convolutions, two norms and their gradients, one of which has two";
  for (const StepValue fetch : step.fetches) EXPECT_EQ(step.dtype(fetch), DType::f32);
  EXPECT_THAT(ops_of(step), Not(Contains("ToBf16"))) << "nothing stands between that cannot read it";
}

TEST_F(NarrowImages, GivesF32ToWhoReadsNothingElse) {
  const Output y = norm(conv(images(), 32, "conv"), "norm"), root = sqrt(s, abs(s, y));
  const StepGraph step = narrowed({root, conv(y, 32, "behind")});
  EXPECT_EQ(input_of(step, "Abs"), "norm/f32");
  EXPECT_EQ(node_named(step, "norm").dtypes[0], DType::bf16);
}

TEST_F(NarrowImages, LeavesF32WhereNoNormalizationGains) {
  const Output y = conv(images(), 32, "conv"), z = conv(relu(s, y), 32, "behind");
  const StepGraph step = narrowed({z});
  EXPECT_EQ(node_named(step, "conv").dtypes[0], DType::f32);
  EXPECT_THAT(ops_of(step), Not(Contains("FromBf16")));
}

TEST_F(NarrowImages, PoolsTheLargestOfImagesInBf16) {
  const Output y = norm(conv(images(), 32, "conv"), "norm"),
               pooled = max_pool(s.named("pool"), y, {.window = {2, 2}, .strides = {2, 2}});
  const StepGraph step = narrowed({conv(pooled, 32, "behind")});
  EXPECT_EQ(node_named(step, "pool").dtypes[0], DType::bf16);
}

TEST_F(NarrowImages, ArePaddedAndCutWhereTheyLie) {
  const Output x = images(), y = relu(s, norm(conv(x, 32, "conv"), "norm")),
               padded = pad(s.named("pad"), y, {{0, 0}, {0, 0}, {1, 2}, {0, 1}}),
               z = norm(conv(padded, 32, "behind"), "end");
  const Outputs to = gradients(s, {z}, {x}, {constant(s, numbers(z.shape()))});
  const StepGraph step = narrowed({z, to[0]});
  EXPECT_EQ(node_named(step, "pad").dtypes[0], DType::bf16);
  EXPECT_THAT(ops_of(step), Contains("BlockedSlice")) << "the gradient of the padding";
  EXPECT_THAT(ops_of(step), Not(Contains("FromBf16")));
}

TEST_F(NarrowImages, DoesNothingInF32) {
  const Output y = norm(conv(images(), 32, "conv"), "norm");
  StepGraph step = placed_step({y}, {{feeds[0].first, feeds[0].second.shape()}});
  rewrite(step, {});
  for (const StepNode& node : step.nodes)
    for (const DType dtype : node.dtypes) EXPECT_NE(dtype, DType::bf16) << node.name;
}

double norm_of_difference(const Tensor& one, const Tensor& other) {
  const Tensor a = detail::as_double(one), b = detail::as_double(other);
  double difference = 0, size = 0;
  for (std::int64_t i = 0; i < a.elements(); ++i) {
    difference += std::pow(a.data<double>()[i] - b.data<double>()[i], 2);
    size += std::pow(b.data<double>()[i], 2);
  }
  return std::sqrt(difference / size);
}

// What rounding the factors of products costs is the measure: images are rounded as often once more.
TEST_F(NarrowImages, AreHardlyFurtherFromF64ThanProductsInBf16) {
  const auto fetches = residual_block();
  const auto narrow = run(fetches, {.precision = Precision::bf16}),
             wide = run(fetches, {.disabled_passes = {"narrow_images"}, .precision = Precision::bf16});
  Net exact;
  exact.type = DType::f64;
  const auto expected = exact.run(exact.residual_block(), {});
  for (std::size_t i = 0; i < narrow.size(); ++i) {
    const double off = norm_of_difference(narrow[i], expected[i]);
    EXPECT_LT(off, 2 * norm_of_difference(wide[i], expected[i])) << "result " << i;
    EXPECT_GT(norm_of_difference(narrow[i], wide[i]), 1e-5) << "result " << i << " was stored in f32";
  }
}

// Element [n, c, row, col] of images.
float at(const Tensor& images, std::int64_t n, std::int64_t c, std::int64_t row, std::int64_t col) {
  const Shape& shape = images.shape();
  return images.data<float>()[((n * shape.dim(1) + c) * shape.dim(2) + row) * shape.dim(3) + col];
}

TEST_F(NarrowImages, KeepTheirElementsWhenPaddedOrCut) {
  constexpr int kBefore = 1, kAfter = 2, kRight = 1;
  const Output y = norm(conv(images(), 32, "conv"), "norm"),
               padded = pad(s, y, {{0, 0}, {0, 0}, {kBefore, kAfter}, {0, kRight}}, 0.5),
               cut = strided_slice(s, y, {0, 0, 1, 4}, {3, 32, 6, 1}, {1, 1, 2, -1}),
               of_some_channels = strided_slice(s, y, {0, 16, 0, 0}, {3, 32, 6, 5});
  const auto values = run({y, padded, cut, of_some_channels}, {.precision = Precision::bf16});
  ASSERT_EQ(values[1].shape(), Shape({3, 32, 6 + kBefore + kAfter, 5 + kRight}));
  ASSERT_EQ(values[2].shape(), Shape({3, 32, 3, 3}));
  for (std::int64_t n = 0; n < 3; ++n)
    for (std::int64_t c = 0; c < 32; ++c) {
      for (std::int64_t row = 0; row < values[1].shape().dim(2); ++row)
        for (std::int64_t col = 0; col < values[1].shape().dim(3); ++col) {
          const bool inside = row >= kBefore && row < 6 + kBefore && col < 5;
          ASSERT_EQ(at(values[1], n, c, row, col), inside ? at(values[0], n, c, row - kBefore, col) : 0.5f);
        }
      for (std::int64_t row = 0; row < 3; ++row)
        for (std::int64_t col = 0; col < 3; ++col)
          ASSERT_EQ(at(values[2], n, c, row, col), at(values[0], n, c, 1 + 2 * row, 4 - col));
    }
  for (std::int64_t n = 0; n < 3; ++n)
    for (std::int64_t c = 0; c < 16; ++c)
      ASSERT_EQ(at(values[3], n, c, 2, 3), at(values[0], n, c + 16, 2, 3));
}

TEST_F(NarrowImages, KeepNaN) {
  const Output x = images();
  feeds[0].second.span<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  const Output y = relu(s, norm(conv(x, 32, "conv"), "norm"));
  const auto values = run({y}, {.precision = Precision::bf16});
  EXPECT_TRUE(std::isnan(values[0].data<float>()[0]));
}

}  // namespace
}  // namespace kolo
