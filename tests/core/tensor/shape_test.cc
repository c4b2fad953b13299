#include <gmock/gmock.h>

#include <kolo/core/base/error.h>
#include <kolo/core/tensor/shape.h>

namespace kolo {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::int64_t kBig = std::int64_t{1} << 32;

TEST(Shape, PrintsUnknownDimensionsScalarsAndUnknownRanks) {
  EXPECT_EQ(Shape({2, 3}).to_string(), "[2,3]");
  EXPECT_EQ(Shape({-1, 784}).to_string(), "[?,784]");
  EXPECT_EQ(Shape().to_string(), "[]");
  EXPECT_EQ(Shape::unknown_rank().to_string(), "<unknown>");
}

TEST(Shape, RefusesADimensionBelowMinusOne) {
  EXPECT_THAT([] { Shape({2, -2}); }, ThrowsMessage<InvalidArgumentError>(HasSubstr("-2")));
}

TEST(Shape, CountsAxesFromEitherEnd) {
  const Shape shape({2, 3, 5});
  EXPECT_EQ(shape.dim(0), 2);
  EXPECT_EQ(shape.dim(-1), 5);
  EXPECT_EQ(shape.dim(-3), 2);
  for (const int axis : {3, -4})
    EXPECT_THAT([&] { shape.dim(axis); },
                ThrowsMessage<OutOfRangeError>(AllOf(HasSubstr(std::to_string(axis)), HasSubstr("[2,3,5]"))));
}

TEST(Shape, OfUnknownRankHasNoRankToAskFor) {
  EXPECT_THROW(Shape::unknown_rank().rank(), FailedPreconditionError);
  EXPECT_THROW(Shape::unknown_rank().dim(0), FailedPreconditionError);
  EXPECT_THROW(Shape::unknown_rank().elements(), FailedPreconditionError);
}

TEST(Shape, OfUnknownRankIsNoScalar) { EXPECT_NE(Shape::unknown_rank(), Shape()); }

TEST(ShapeElements, AreTheProductOfTheDimensions) {
  EXPECT_EQ(Shape().elements(), 1);
  EXPECT_EQ(Shape({2, 3, 5}).elements(), 30);
  EXPECT_EQ(Shape({2, 0, 5}).elements(), 0);
}

TEST(ShapeElements, AreUnknownWhereADimensionIs) {
  EXPECT_THAT([] { Shape({-1, 3}).elements(); }, ThrowsMessage<FailedPreconditionError>(HasSubstr("[?,3]")));
}

TEST(ShapeElements, DoNotWrapAround) {
  EXPECT_EQ(Shape({kBig, kBig / 4}).elements(), kBig * (kBig / 4));
  EXPECT_THAT(
      [] {
        Shape({kBig, kBig}).elements();
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("[4294967296,4294967296]")));
  EXPECT_EQ(Shape({kBig, kBig, 0}).elements(), 0);
}

TEST(ShapeWithDim, ReplacesOneDimension) {
  EXPECT_EQ(Shape({2, 3}).with_dim(-1, -1), Shape({2, -1}));
  EXPECT_THROW(Shape({2, 3}).with_dim(2, 1), OutOfRangeError);
  EXPECT_THROW(Shape({2, 3}).with_dim(0, -2), InvalidArgumentError);
}

TEST(ShapeMerge, KnowsWhatEitherKnows) {
  EXPECT_EQ(Shape({-1, 3}).merged_with({2, -1}), Shape({2, 3}));
  EXPECT_EQ(Shape::unknown_rank().merged_with({2, -1}), Shape({2, -1}));
  EXPECT_EQ(Shape({2, -1}).merged_with(Shape::unknown_rank()), Shape({2, -1}));
}

TEST(ShapeMerge, NamesBothWhereTheyContradict) {
  for (const Shape& other : {Shape({2, 4}), Shape({2}), Shape()}) {
    EXPECT_FALSE(Shape({-1, 3}).is_compatible_with(other)) << other.to_string();
    EXPECT_THAT(
        [&] {
          Shape({-1, 3}).merged_with(other);
        },
        ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("[?,3]"), HasSubstr(other.to_string()))));
  }
}

TEST(BroadcastShapes, StretchesOnesAndMissingDimensions) {
  EXPECT_EQ(broadcast_shapes({2, 3}, {2, 3}), Shape({2, 3}));
  EXPECT_EQ(broadcast_shapes({2, 1}, {3}), Shape({2, 3}));
  EXPECT_EQ(broadcast_shapes({4, 1, 3}, {2, 1}), Shape({4, 2, 3}));
  EXPECT_EQ(broadcast_shapes({2, 3}, {}), Shape({2, 3}));
}

TEST(BroadcastShapes, KeepsEmptyDimensions) {
  EXPECT_EQ(broadcast_shapes({0, 3}, {1, 3}), Shape({0, 3}));
  EXPECT_THROW(broadcast_shapes({0, 3}, {2, 3}), InvalidArgumentError);
}

TEST(BroadcastShapes, TakesTheKnownUnlessItIsOne) {
  EXPECT_EQ(broadcast_shapes({-1, 3}, {5, 3}), Shape({5, 3}));
  EXPECT_EQ(broadcast_shapes({0, 3}, {-1, 3}), Shape({0, 3}));
  EXPECT_EQ(broadcast_shapes({-1, 3}, {1, 3}), Shape({-1, 3}));
  EXPECT_EQ(broadcast_shapes({-1}, {-1}), Shape({-1}));
  EXPECT_EQ(broadcast_shapes(Shape::unknown_rank(), {2}), Shape::unknown_rank());
}

TEST(BroadcastShapes, NamesBothWhereTheyDoNotFit) {
  EXPECT_THAT(
      [] {
        broadcast_shapes({2, 3}, {4});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("Incompatible shapes: [2,3] vs. [4]")));
}

}  // namespace
}  // namespace kolo
