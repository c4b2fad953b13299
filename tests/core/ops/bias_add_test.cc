#include <gmock/gmock.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/bias_add.h>

#include "tests/core/ops/compare_tensors.h"

namespace kolo {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

struct Case {
  Shape x;
  DataFormat format;
  std::int64_t channels;
  std::int64_t inner;  // elements between one channel and the next
};

class BiasAdd : public testing::TestWithParam<Case> {
 protected:
  const Tensor x_ = test_numbers(GetParam().x, 1);
  const Tensor bias_ = test_numbers({GetParam().channels}, 2);
  static Output build(Scope& s, const Outputs& in) { return bias_add(s, in[0], in[1], GetParam().format); }
};

TEST_P(BiasAdd, AddsEachChannelsNumber) {
  Tensor expected = x_.clone();
  for (std::int64_t i = 0; i < x_.elements(); ++i)
    expected.data<double>()[i] += bias_.data<double>()[i / GetParam().inner % GetParam().channels];
  expect_both_types({x_, bias_}, expected, 1e-6, build);
}

TEST_P(BiasAdd, HasTheGradientOfItsValues) { expect_gradients({x_, bias_}, build); }
TEST_P(BiasAdd, HasTheSameGradientInBothTypes) { expect_same_gradients({x_, bias_}, 1e-5, build); }

INSTANTIATE_TEST_SUITE_P(
    Shapes, BiasAdd,
    testing::Values(Case{{3, 5}, DataFormat::nchw, 5, 1}, Case{{4, 35}, DataFormat::nchw, 35, 1},
                    Case{{2, 3, 4}, DataFormat::nchw, 4, 1}, Case{{2, 3, 5, 7}, DataFormat::nchw, 3, 35},
                    Case{{2, 3, 5, 7}, DataFormat::nhwc, 7, 1}, Case{{0, 3, 2, 2}, DataFormat::nchw, 3, 4}));

TEST(BiasAddErrors, NamesBothShapesWhenChannelsDiffer) {
  Graph graph;
  Scope s(graph);
  const auto x = zeros(s, DType::f32, {2, 4}), bias = zeros(s, DType::f32, {3}),
             matrix = zeros(s, DType::f32, {4, 1});
  EXPECT_THAT([&] { bias_add(s, x, bias); }, ThrowsMessage<InvalidArgumentError>(AllOf(
                                                 HasSubstr("x is [2,4] and bias is [3]"), HasSubstr("(4)"))));
  EXPECT_THAT([&] { bias_add(s, x, matrix); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("bias is [4,1]")));
  EXPECT_THAT([&] { bias_add(s, bias, bias); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("at least 2 dimensions")));
}

}  // namespace
}  // namespace kolo
