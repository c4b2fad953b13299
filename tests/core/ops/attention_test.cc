#include <kolo/core/ops/attention.h>

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/gradients.h>
#include <kolo/core/ops/activations.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/linalg.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/shapes.h>

#include "tests/core/ops/compare_tensors.h"
#include "tests/core/shape_check.h"

namespace kolo {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr double kNone = -std::numeric_limits<double>::infinity();

struct Case {
  std::int64_t batch, places, heads, size;
  bool causal;
  Shape qkv() const { return {batch, places, 3 * heads * size}; }
  SelfAttentionOptions options() const { return {.heads = heads, .causal = causal}; }
};

// The definition out of other ops: transposes, a product for each head, all scores at once.
Output composed(Scope& s, Output qkv, const Case& of) {
  const Output parted = reshape(s, qkv, {of.batch, of.places, 3, of.heads, of.size});
  const Outputs parts = split(s, transpose(s, parted, {2, 0, 3, 1, 4}), 3);
  const auto part = [&](std::size_t i) {
    return reshape(s, parts[i], {of.batch, of.heads, of.places, of.size});
  };
  Tensor mask = Tensor::zeros(DType::f64, {of.places, of.places});
  for (std::int64_t i = 0; of.causal && i < of.places; ++i)
    for (std::int64_t j = i + 1; j < of.places; ++j) mask.data<double>()[i * of.places + j] = kNone;
  const Output scale = fill(s, DType::f64, Shape(), 1 / std::sqrt(static_cast<double>(of.size)));
  const Output scores = mul(s, batch_matmul(s, part(0), part(1), {.transpose_b = true}), scale);
  const Output y = batch_matmul(s, softmax(s, add(s, scores, constant(s, mask))), part(2));
  return reshape(s, transpose(s, y, {0, 2, 1, 3}), {of.batch, of.places, of.heads * of.size});
}

class SelfAttention : public testing::TestWithParam<Case> {
 protected:
  // Numbers up to 3: softmax is neither flat nor a single place.
  SelfAttention() : in_{test_numbers(GetParam().qkv())} {
    for (double& x : in_[0].span<double>()) x *= 3;
  }
  Output attend(Scope& s, const Outputs& in) const { return self_attention(s, in[0], GetParam().options()); }
  std::vector<Tensor> in_;
};

TEST_P(SelfAttention, IsTheSoftmaxOfScaledProductsTimesTheValues) {
  const Tensor expected =
      run_op(in_, [](Scope& s, const Outputs& in) { return composed(s, in[0], GetParam()); });
  expect_both_types(in_, expected, 1e-5, [&](Scope& s, const Outputs& in) { return attend(s, in); });
}

TEST_P(SelfAttention, HasTheGradientOfItsValues) {
  if (in_[0].elements() > 300) GTEST_SKIP() << "central differences of short sequences are enough";
  for (const bool known : {true, false})
    expect_gradients(in_, [&](Scope& s, const Outputs& in) { return attend(s, in); },
                     {.known_shapes = known});
}

TEST_P(SelfAttention, HasTheSameGradientInBothTypes) {
  expect_same_gradients(in_, 5e-5, [&](Scope& s, const Outputs& in) { return attend(s, in); });
}

// Places: one, a block of queries, several with a rest, more than a block's scores may have.
INSTANTIATE_TEST_SUITE_P(Shapes, SelfAttention,
                         testing::Values(Case{1, 1, 1, 1, false}, Case{2, 5, 3, 2, false},
                                         Case{2, 5, 3, 2, true}, Case{1, 64, 2, 16, true},
                                         Case{2, 150, 2, 17, true}, Case{1, 150, 1, 64, false},
                                         Case{1, 2100, 1, 4, true}, Case{1, 2100, 1, 4, false}));

TEST(SelfAttentionOfNothing, IsEmpty) {
  for (const Shape& qkv : {Shape{0, 4, 12}, Shape{2, 0, 12}})
    expect_both_types({Tensor(DType::f64, qkv)}, Tensor(DType::f64, {qkv.dim(0), qkv.dim(1), 4}), 0,
                      [](Scope& s, const Outputs& in) { return self_attention(s, in[0], {.heads = 2}); });
}

TEST(SelfAttentionOfLargeScores, StaysFinite) {
  Tensor qkv = test_numbers({1, 3, 6});
  for (double& x : qkv.span<double>()) x *= 1e4;
  const Case of{1, 3, 1, 2, false};
  const Tensor expected = run_op({qkv}, [&](Scope& s, const Outputs& in) { return composed(s, in[0], of); });
  expect_both_types({qkv}, expected, 1e-5,
                    [&](Scope& s, const Outputs& in) { return self_attention(s, in[0], of.options()); });
}

// Which places of y are not numbers when one element of qkv is none.
std::vector<bool> nan_places(std::int64_t place, std::int64_t column, bool causal, bool of_gradient) {
  constexpr std::int64_t kPlaces = 70, kWidth = 4;
  Tensor qkv = to_f32(test_numbers({1, kPlaces, 3 * kWidth}));
  qkv.data<float>()[place * 3 * kWidth + column] = std::numeric_limits<float>::quiet_NaN();
  const Tensor y = run_op({qkv}, [&](Scope& s, const Outputs& in) {
    const Output attended = self_attention(s, in[0], {.heads = 1, .causal = causal});
    return of_gradient ? gradients(s, {attended}, {in[0]})[0] : attended;
  });
  std::vector<bool> found;
  const std::int64_t width = y.shape().dim(2);
  for (std::int64_t i = 0; i < kPlaces; ++i) {
    bool is_nan = false;
    for (std::int64_t c = 0; c < width; ++c) is_nan = is_nan || std::isnan(y.data<float>()[i * width + c]);
    found.push_back(is_nan);
  }
  return found;
}

TEST(SelfAttentionOfNaN, ReachesAllThatLookAtItAndNoEarlierBlock) {
  constexpr std::int64_t kKey = 4, kValue = 8, kPlace = 66;
  for (const std::int64_t column : {kKey, kValue}) {
    const auto all = nan_places(kPlace, column, false, false),
               later = nan_places(kPlace, column, true, false);
    for (std::size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(all[i]) << i;
    for (std::size_t i = kPlace; i < later.size(); ++i) EXPECT_TRUE(later[i]) << i;
    EXPECT_FALSE(later[0]);
  }
  const auto of_query = nan_places(kPlace, 0, false, false);
  for (std::size_t i = 0; i < of_query.size(); ++i) EXPECT_EQ(of_query[i], i == kPlace) << i;
}

TEST(SelfAttentionOfNaN, ReachesTheGradientsOfAllThatItMixedWith) {
  for (const bool place : nan_places(66, 0, false, true)) EXPECT_TRUE(place);
}

TEST(SelfAttentionShape, HasAThirdOfTheColumns) {
  const auto attend = [](Scope& s, const Outputs& in) { return self_attention(s, in[0], {.heads = 2}); };
  expect_shape({{-1, 7, 12}}, attend, {-1, 7, 4});
  expect_shape({{2, 7, -1}}, attend, {2, 7, -1});
  expect_shape({Shape::unknown_rank()}, attend, {-1, -1, -1});
  const auto gradient = [&](Scope& s, const Outputs& in) {
    return gradients(s, {attend(s, in)}, {in[0]})[0];
  };
  expect_shape({{-1, 7, 12}}, gradient, {-1, 7, 12});
}

TEST(SelfAttentionShape, RefusesWhatHasNoHeads) {
  Graph graph;
  Scope s(graph);
  const auto refused = [&](const Shape& qkv, std::int64_t heads, const char* words) {
    EXPECT_THAT([&] { self_attention(s, placeholder(s, DType::f32, qkv), {.heads = heads}); },
                ThrowsMessage<InvalidArgumentError>(HasSubstr(words)));
  };
  refused({2, 5, 12}, 0, "heads is 0; it must be at least 1");
  refused({2, 5, 12}, 8, "qkv is [2,5,12] and there are 8 heads");
  refused({5, 12}, 1, "it must be [N,T,3·width]");
}

}  // namespace
}  // namespace kolo
