#include <gmock/gmock.h>

#include <algorithm>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/op_schema.h>

namespace kolo {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const RegisterOp schema_test_op(
    OpSchema("SchemaTestOp").input("x").variadic("rest", {DType::f32}).attr("n", 3).output("y"));

TEST(OpRegistry, FindsWhatWasRegistered) {
  const OpSchema& schema = find_op("SchemaTestOp");
  EXPECT_EQ(schema.name(), "SchemaTestOp");
  EXPECT_EQ(schema.inputs().size(), 2u);
  EXPECT_EQ(schema.attrs().at("n").value.get<int>(), 3);
  EXPECT_THAT(registered_ops(), Contains("SchemaTestOp"));
}

TEST(OpRegistry, ListsItsOpsInOrder) {
  const auto ops = registered_ops();
  EXPECT_TRUE(std::is_sorted(ops.begin(), ops.end()));
}

TEST(OpRegistry, NamesTheNearestOfAnOpItLacks) {
  EXPECT_THAT([] { find_op("SchemaTestOpp"); },
              ThrowsMessage<NotFoundError>(
                  AllOf(HasSubstr("\"SchemaTestOpp\""), HasSubstr("did you mean \"SchemaTestOp\"?"))));
}

TEST(OpRegistry, RefusesASecondOpOfOneNameAndKeepsTheFirst) {
  EXPECT_THAT([] { const RegisterOp second(OpSchema("SchemaTestOp")); },
              ThrowsMessage<InternalError>(HasSubstr("op \"SchemaTestOp\" is registered twice")));
  EXPECT_EQ(find_op("SchemaTestOp").inputs().size(), 2u);
}

TEST(OpSchema, GivesTheVariadicSpecToEveryFurtherInput) {
  const OpSchema& schema = find_op("SchemaTestOp");
  EXPECT_EQ(schema.input_spec(0).name, "x");
  EXPECT_EQ(schema.input_spec(1).name, "rest");
  EXPECT_EQ(schema.input_spec(9).name, "rest");
}

TEST(OpSchema, HasNoInputBeyondItsListUnlessVariadic) {
  const OpSchema schema = OpSchema("Two").input("a").input("b");
  EXPECT_THROW(schema.input_spec(2), InternalError);
}

TEST(OpSchema, CountsNoGradientAsOneThatIsDefined) {
  EXPECT_FALSE(OpSchema("Plain").has_gradient());
  EXPECT_TRUE(OpSchema("Stop").no_gradient().has_gradient());
}

TEST(OpSchema, IsStatefulWhereItHoldsOrUpdatesAVariable) {
  EXPECT_TRUE(OpSchema("Storage").variable_storage().is_stateful());
  EXPECT_TRUE(OpSchema("Update").input("variable").updates().is_stateful());
  EXPECT_FALSE(OpSchema("Plain").is_stateful());
}

TEST(InferShapes, GivesEveryOutputTheFirstInputsShapeByDefault) {
  const OpSchema schema = OpSchema("Pair").input("a").input("b").output("x").output("y");
  const AttrMap no_attrs;
  ShapeContext context({{2, 3}, {4}}, {DType::f32, DType::f32}, no_attrs, 2);
  infer_shapes(schema, context);
  EXPECT_EQ(context.outputs()[0], Shape({2, 3}));
  EXPECT_EQ(context.outputs()[1], Shape({2, 3}));
}

TEST(InferShapes, GivesEachOutputOfAVariadicOpItsOwnInputsShape) {
  const OpSchema schema = OpSchema("Each").input("first").variadic("rest").output_per_input();
  const AttrMap no_attrs;
  ShapeContext context({{9}, {2, 3}, {4}}, {DType::f32, DType::f32, DType::f32}, no_attrs, 2);
  infer_shapes(schema, context);
  EXPECT_EQ(context.outputs()[0], Shape({2, 3}));
  EXPECT_EQ(context.outputs()[1], Shape({4}));
}

TEST(InferShapes, KnowsNothingOfASourceWithoutAShapeFunction) {
  const AttrMap no_attrs;
  ShapeContext context({}, {}, no_attrs, 1);
  infer_shapes(OpSchema("Source").output("y", DType::f32), context);
  EXPECT_EQ(context.outputs()[0], Shape::unknown_rank());
}

}  // namespace
}  // namespace kolo
