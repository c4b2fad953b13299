#include <kolo/core/ops/partitioned_variables.h>

#include <gmock/gmock.h>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/gradients.h>
#include <kolo/core/ops/math.h>

#include "tests/core/gradient_check.h"
#include "tests/core/run_op.h"
#include "tests/core/shape_check.h"

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

const Tensor kRows = Tensor::of<float>({4, 2}, {0, 1, 10, 11, 20, 21, 30, 31});

Tensor numbers(std::initializer_list<std::int32_t> values) {
  return Tensor::of<std::int32_t>({static_cast<std::int64_t>(values.size())}, values);
}

Tensor partitioned(const Tensor& x, const Tensor& partitions, int parts, int part, bool known_shapes = true) {
  return run_op(
      {x, partitions},
      [=](Scope& s, const Outputs& in) { return dynamic_partition(s, in[0], in[1], parts)[part]; },
      known_shapes);
}

// xs and their indices in turn.
Tensor stitched(const std::vector<Tensor>& xs, const std::vector<Tensor>& indices) {
  std::vector<Tensor> inputs = xs;
  inputs.insert(inputs.end(), indices.begin(), indices.end());
  return run_op(inputs, [&](Scope& s, const Outputs& in) {
    const auto middle = in.begin() + static_cast<std::ptrdiff_t>(xs.size());
    return dynamic_stitch(s, Outputs(middle, in.end()), Outputs(in.begin(), middle));
  });
}

TEST(DynamicPartition, SortsRowsByTheirNumbers) {
  for (const bool known_shapes : {true, false}) {
    const Tensor first = partitioned(kRows, numbers({1, 0, 1, 2}), 3, 0, known_shapes);
    EXPECT_EQ(first.shape(), (Shape{1, 2}));
    EXPECT_THAT(first.span<float>(), ElementsAre(10, 11));
    EXPECT_THAT(partitioned(kRows, numbers({1, 0, 1, 2}), 3, 1, known_shapes).span<float>(),
                ElementsAre(0, 1, 20, 21));
  }
}

TEST(DynamicPartition, MayLeaveAPartEmpty) {
  EXPECT_EQ(partitioned(kRows, numbers({2, 2, 2, 2}), 3, 1).shape(), (Shape{0, 2}));
  EXPECT_EQ(partitioned(Tensor(DType::f32, {0, 2}), numbers({}), 2, 1).shape(), (Shape{0, 2}));
  EXPECT_EQ(partitioned(Tensor(DType::f32, {4, 0}), numbers({0, 1, 1, 0}), 2, 1).shape(), (Shape{2, 0}));
}

TEST(DynamicPartition, TakesNumbersOfAnyShape) {
  const Tensor partitions = Tensor::of<std::int64_t>({2, 2}, {0, 1, 1, 0});
  EXPECT_THAT(partitioned(kRows.reshaped({2, 2, 2}), partitions, 2, 1).span<float>(),
              ElementsAre(10, 11, 20, 21));
  EXPECT_THAT(partitioned(Tensor::of<std::uint8_t>({4}, {5, 6, 7, 8}).reshaped({2, 2}), partitions, 2, 0)
                  .span<std::uint8_t>(),
              ElementsAre(5, 8));
  EXPECT_THAT(partitioned(kRows, Tensor::scalar<std::int32_t>(1), 2, 1).shape(), (Shape{1, 4, 2}));
}

TEST(DynamicPartition, NamesANumberThatIsNoPart) {
  for (const std::int32_t wrong : {-1, 2})
    EXPECT_THAT(
        [&] {
          partitioned(kRows, numbers({0, 1, wrong, 0}), 2, 0);
        },
        ThrowsMessage<InvalidArgumentError>(
            HasSubstr(fmt::format("partitions[2] = {} is not in [0, 2)", wrong))));
}

TEST(DynamicPartition, NamesShapesThatDoNotFit) {
  EXPECT_THAT(
      [] {
        partitioned(kRows, numbers({0, 1, 1}), 2, 0);
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr(
          "data.shape must start with partitions.shape, got data.shape = [4,2], partitions.shape = [3]")));
  EXPECT_THAT(
      [] {
        partitioned(kRows, numbers({0, 1, 1}), 2, 0, false);
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("data.shape must start with partitions.shape")));
  EXPECT_THROW(partitioned(kRows, numbers({0, 0, 0, 0}), 0, 0), InvalidArgumentError);
}

TEST(DynamicPartition, KnowsTheShapeOfARow) {
  const auto first = [](Scope& s, const Outputs& x) { return dynamic_partition(s, x[0], x[1], 2)[0]; };
  expect_shape({{5, 3}, {{5}, DType::i32}}, first, {-1, 3});
  expect_shape({{5, -1, 3}, {{-1, 2}, DType::i64}}, first, {-1, 3});
  expect_shape({Shape::unknown_rank(), {{2}, DType::i64}}, first, Shape::unknown_rank());
}

TEST(DynamicPartition, GradientGoesBackToEachRow) {
  for (const bool known_shapes : {true, false})
    for (const int part : {0, 1, 2})
      expect_gradients(
          {test_numbers({5, 2})},
          [&](Scope& s, const Outputs& x) {
            return dynamic_partition(s, square(s, x[0]), constant(s, numbers({1, 0, 1, 1, 0})), 3)[part];
          },
          {.known_shapes = known_shapes});
}

TEST(DynamicStitch, PutsRowsWhereTheirIndicesSay) {
  const Tensor y = stitched({kRows.rows(0, 2), kRows.rows(2, 4)},
                            {numbers({3, 0}), Tensor::of<std::int64_t>({2}, {1, 2})});
  EXPECT_EQ(y.shape(), (Shape{4, 2}));
  EXPECT_THAT(y.span<float>(), ElementsAre(10, 11, 20, 21, 30, 31, 0, 1));
}

TEST(DynamicStitch, LeavesRowsThatNobodyNamesZero) {
  const Tensor y = stitched({kRows.rows(1, 2)}, {numbers({2})});
  EXPECT_THAT(y.span<float>(), ElementsAre(0, 0, 0, 0, 10, 11));
  EXPECT_EQ(stitched({Tensor(DType::f32, {0, 2})}, {numbers({})}).shape(), (Shape{0, 2}));
}

TEST(DynamicStitch, KeepsTheLastOfSeveral) {
  const Tensor y = stitched({kRows, Tensor::of<float>({2}, {7, 8})},
                            {numbers({0, 1, 1, 0}), Tensor::scalar<std::int32_t>(0)});
  EXPECT_THAT(y.span<float>(), ElementsAre(7, 8, 20, 21));
}

TEST(DynamicStitch, NamesAnIndexThatNoTensorHas) {
  EXPECT_THAT([] { stitched({kRows.rows(0, 1)}, {Tensor::of<std::int64_t>({1}, {INT64_MAX})}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("at offset 0 in indices is out of range")));
  EXPECT_THAT(
      [] {
        stitched({kRows.rows(0, 2)}, {numbers({0, -3})});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("Index -3 at offset 1 in indices is out of range")));
}

TEST(DynamicStitch, RefusesWhatDoesNotFit) {
  const auto refuses = [](const std::vector<Tensor>& xs, const std::vector<Tensor>& indices,
                          const char* text) {
    EXPECT_THAT([&] { stitched(xs, indices); }, ThrowsMessage<InvalidArgumentError>(HasSubstr(text)));
  };
  refuses({kRows}, {numbers({0})}, "data.shape must start with indices.shape");
  refuses({kRows, Tensor(DType::f32, {1, 3})}, {numbers({0, 1, 2, 3}), numbers({4})},
          "rows of tensor 1 are [3]");
  refuses({kRows, Tensor(DType::f64, {1, 2})}, {numbers({0, 1, 2, 3}), numbers({4})}, "must have one type");
  refuses({kRows}, {Tensor::of<float>({4}, {0, 1, 2, 3})}, "indices are i32 or i64");
  refuses({kRows}, {}, "1 tensors and indices for 0");
}

TEST(DynamicStitch, KnowsTheShapeOfARow) {
  const auto stitch = [](Scope& s, const Outputs& x) {
    return dynamic_stitch(s, {x[2], x[3]}, {x[0], x[1]});
  };
  expect_shape({Shape::unknown_rank(), {2, 3, 5}, {{2}, DType::i32}, {{2, 3}, DType::i64}}, stitch, {-1, 5});
  expect_shape({{-1, 3}, {2, -1}, {{-1}, DType::i32}, {{2}, DType::i32}}, stitch, {-1, 3});
}

TEST(DynamicStitch, GradientGoesToTheRowThatStayed) {
  for (const bool known_shapes : {true, false})
    expect_gradients({test_numbers({3, 2}), test_numbers({2, 2, 2}, 1)},
                     [&](Scope& s, const Outputs& x) {
                       return dynamic_stitch(s,
                                             {constant(s, numbers({0, 4, 4})),
                                              constant(s, Tensor::of<std::int32_t>({2, 2}, {2, 0, 5, 5}))},
                                             {square(s, x[0]), square(s, x[1])});
                     },
                     {.known_shapes = known_shapes});
}

TEST(DynamicStitch, GradientCanBeDifferentiatedAgain) {
  for (const int part : {0, 1})
    expect_gradients({test_numbers({4, 2})}, [&](Scope& s, const Outputs& x) -> Output {
      const Outputs inputs = {square(s, x[0]), constant(s, numbers({0, 3, 3})), constant(s, numbers({2, 0}))};
      return s.add("DynamicStitchGrad", inputs, {{"parts", 2}}).output(part);
    });
}

TEST(DynamicStitch, GradientKnowsItsShape) {
  expect_shape({{-1, 3}, {{2, -1}, DType::i32}},
               [](Scope& s, const Outputs& x) -> Output {
                 return s.add("DynamicStitchGrad", {x[0], x[1]}, {{"parts", 1}});
               },
               {2, -1, 3});
}

TEST(DynamicStitch, JoinsWhatWasPartitioned) {
  const Tensor partitions = numbers({1, 0, 1, 2}), positions = numbers({0, 1, 2, 3});
  const Tensor y = run_op({kRows, partitions, positions}, [](Scope& s, const Outputs& x) {
    return dynamic_stitch(s, dynamic_partition(s, x[2], x[1], 3), dynamic_partition(s, x[0], x[1], 3));
  });
  EXPECT_THAT(y.span<float>(), ElementsAre(0, 1, 10, 11, 20, 21, 30, 31));
}

}  // namespace
}  // namespace kolo
