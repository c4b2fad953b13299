// The graph that differentiation builds. That the gradients of the ops are right is tested beside the ops.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/gradients.h>

namespace kolo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

const RegisterOp source_op(OpSchema("GradTestSource")
                               .attr("dtype", DType::f32)
                               .attr("shape", Shape({2}))
                               .output("y", "dtype")
                               .shape([](ShapeContext& c) { c.set_output(0, c.attr<Shape>("shape")); }));
const RegisterOp add_op(OpSchema("GradTestAdd")
                            .input("a", {DType::f32})
                            .input("b", "a")
                            .output("sum")
                            .gradient([](Scope&, const Node&, Output dy) {
                              return Outputs{dy, dy};
                            }));
const RegisterOp scale_op(
    OpSchema("GradTestScale").input("x").output("y").gradient([](Scope& s, const Node&, Output dy) {
      return Outputs{s.add("GradTestScale", {dy})};
    }));
const RegisterOp scalar_op(
    OpSchema("GradTestScalar").input("x").output("y").gradient([](Scope& s, const Node&, Output) {
      return Outputs{s.add("GradTestSource", {}, {{"shape", Shape({})}})};
    }));
const RegisterOp opaque_op(OpSchema("GradTestOpaque").input("x").output("y"));
const RegisterOp stop_op(OpSchema("GradTestStop").input("x").output("y").no_gradient());
// Two halves; the gradient joins what came back for each, and a zero-like source for one that nobody used.
const RegisterOp join_op(
    OpSchema("GradTestJoin").input("a").input("b").output("y").gradient([](Scope&, const Node&, Output dy) {
      return Outputs{dy, dy};
    }));
const RegisterOp split_op(OpSchema("GradTestSplit")
                              .input("x")
                              .output("low")
                              .output("high")
                              .gradient([](Scope& s, const Node&, const Outputs& dy) {
                                const auto or_zero = [&](Output half) {
                                  return half ? half : Output(s.add("GradTestSource", {}, {}, "zero"));
                                };
                                return Outputs{s.add("GradTestJoin", {or_zero(dy.at(0)), or_zero(dy.at(1))})};
                              }));
// Only its first output can be differentiated.
const RegisterOp first_only_op(OpSchema("GradTestFirstOnly")
                                   .input("x")
                                   .output("loss")
                                   .output("by_product")
                                   .gradient([](Scope& s, const Node&, Output dy) {
                                     return Outputs{s.add("GradTestScale", {dy})};
                                   }));
const RegisterOp wrong_count_op(
    OpSchema("GradTestWrongCount").input("x").output("y").gradient([](Scope&, const Node&, Output dy) {
      return Outputs{dy, dy};
    }));

struct GradientsTest : ::testing::Test {
  Output source(const std::string& name, DType dtype = DType::f32) {
    return s.add("GradTestSource", {}, {{"dtype", dtype}}, name);
  }
  Output apply(const std::string& op, const Outputs& inputs) { return s.add(op, inputs); }
  Output add(Output a, Output b) { return apply("GradTestAdd", {a, b}); }
  static std::vector<std::string> input_names(Output of) {
    std::vector<std::string> names;
    for (const Output& in : of.node->inputs()) names.push_back(in.name());
    return names;
  }

  Graph graph;
  Scope s{graph};
};

using Gradients = GradientsTest;

TEST_F(Gradients, OfAValueByItselfAreOnes) {
  const Output x = source("x");
  const Output dx = gradients(s, {x}, {x}).at(0);
  EXPECT_EQ(dx.node->op(), "OnesLike");
  EXPECT_THAT(input_names(dx), ElementsAre("x:0"));
  EXPECT_EQ(dx.shape(), x.shape());
}

TEST_F(Gradients, StartFromTheGivenGradients) {
  const Output x = source("x"), dy = source("dy");
  EXPECT_EQ(gradients(s, {add(x, source("b"))}, {x}, {dy}).at(0), dy);
}

TEST_F(Gradients, StartFromOnesWhereAGivenGradientIsEmpty) {
  const Output x = source("x");
  EXPECT_EQ(gradients(s, {x}, {x}, {Output()}).at(0).node->op(), "OnesLike");
}

TEST_F(Gradients, OfAValueUsedKTimesAreAddedByOneNode) {
  const Output x = source("x"), dy = source("dy");
  const Output y = add(add(x, x), x);
  const Output dx = gradients(s, {y}, {x}, {dy}).at(0);
  EXPECT_EQ(dx.node->op(), "AddN");
  EXPECT_THAT(input_names(dx), ElementsAre("dy:0", "dy:0", "dy:0"));
}

TEST_F(Gradients, AreJoinedBeforeTheyFlowOn) {
  const Output x = source("x"), dy = source("dy");
  const Output middle = apply("GradTestScale", {x});
  const Output dx = gradients(s, {add(middle, middle)}, {x}, {dy}).at(0);
  ASSERT_EQ(dx.node->op(), "GradTestScale") << "one backward op for the join, not one for each use";
  EXPECT_EQ(dx.node->input(0).node->op(), "AddN");
}

TEST_F(Gradients, OfSeveralYsAreThoseOfTheirSum) {
  const Output x = source("x"), dy = source("dy"), dz = source("dz");
  const Output dx = gradients(s, {add(x, source("b")), x}, {x}, {dy, dz}).at(0);
  EXPECT_EQ(dx.node->op(), "AddN");
  EXPECT_EQ(dx.node->num_inputs(), 2);
}

TEST_F(Gradients, AreEmptyWhereNothingDependsOnX) {
  const Output x = source("x"), other = source("other");
  const Outputs found = gradients(s, {add(x, x)}, {other, x});
  EXPECT_FALSE(found.at(0));
  EXPECT_TRUE(found.at(1));
}

TEST_F(Gradients, DoNotPassAnOpThatStopsThem) {
  const Output x = source("x");
  EXPECT_FALSE(gradients(s, {apply("GradTestStop", {x})}, {x}).at(0));
}

TEST_F(Gradients, NeedNoGradientOfOpsThatLieBesideThePath) {
  const Output x = source("x"), beside = apply("GradTestOpaque", {source("b")});
  EXPECT_TRUE(gradients(s, {add(x, beside)}, {x}).at(0));
}

TEST_F(Gradients, StopAtX) {
  const Output input = source("input");
  const Output x = apply("GradTestOpaque", {input});  // would be an error, were it differentiated
  const Output dx = gradients(s, {add(x, x)}, {x}).at(0);
  EXPECT_EQ(dx.node->op(), "AddN");
}

TEST_F(Gradients, FlowThroughOneXToAnother) {
  const Output x = source("x"), dy = source("dy");
  const Output middle = apply("GradTestScale", {x});
  const Outputs found = gradients(s, {add(middle, source("b"))}, {x, middle}, {dy});
  EXPECT_EQ(found.at(1), dy);
  EXPECT_EQ(found.at(0).node->op(), "GradTestScale");
  EXPECT_EQ(found.at(0).node->input(0), dy);
}

TEST_F(Gradients, NameTheOpWithoutAGradient) {
  const Output x = source("x");
  const Output y = s.add("GradTestOpaque", {x}, {}, "opaque");
  EXPECT_THAT([&] { gradients(s, {y}, {x}); },
              ThrowsMessage<NotFoundError>(
                  HasSubstr("No gradient defined for operation 'opaque' (op type: GradTestOpaque)")));
}

TEST_F(Gradients, NameTheOpWhoseGradientHasAnotherShape) {
  const Output x = source("x");
  EXPECT_THAT([&] { gradients(s, {apply("GradTestScalar", {x})}, {x}); },
              ThrowsMessage<InternalError>(HasSubstr(
                  "the gradient of op GradTestScalar for its input 0 is f32 [], but the input is f32 [2]")));
}

TEST_F(Gradients, AreZerosWhereNothingDependsOnXIfAskedFor) {
  const Output x = source("x"), other = source("other");
  const Output zero = gradients(s, {x}, {other}, {}, {.zeros_where_unreached = true}).at(0);
  EXPECT_EQ(zero.node->op(), "ZerosLike");
  EXPECT_THAT(input_names(zero), ElementsAre("other:0"));
}

TEST_F(Gradients, DoNotFlowBeyondATensorThatIsTakenAsConstant) {
  const Output x = source("x"), dy = source("dy");
  const Output middle = apply("GradTestOpaque", {x});  // would be an error, were it differentiated
  const Outputs found = gradients(s, {add(x, middle)}, {x, middle}, {dy}, {.stop_gradients = {middle}});
  EXPECT_EQ(found.at(0), dy);
  EXPECT_EQ(found.at(1), dy);
}

TEST_F(Gradients, OfWholeNumbersAreEmpty) {
  const Output x = source("x", DType::i32);
  const Output y = s.add("GradTestJoin", {source("b"), x});
  EXPECT_FALSE(gradients(s, {y}, {x}).at(0));
}

TEST_F(Gradients, ArePlacedWithTheirOpsIfAskedFor) {
  const Output x = source("x");
  const Output y = s.device("/cpu:3").add("GradTestScale", {x}, {}, "far");
  const Output dx = gradients(s, {y}, {x}, {}, {.colocate_with_ops = true}).at(0);
  EXPECT_THAT(dx.node->colocation_groups(), ElementsAre("loc:@far"));
  EXPECT_EQ(dx.node->requested_device(), "/device:CPU:3");
  EXPECT_EQ(gradients(s, {y}, {x}).at(0).node->requested_device(), "");
}

TEST_F(Gradients, OfBothOutputsAreGivenTogether) {
  const Output x = source("x"), d_low = source("d_low"), d_high = source("d_high");
  const Node* split = apply("GradTestSplit", {x}).node;
  const Output dx = gradients(s, {split->output(0), split->output(1)}, {x}, {d_low, d_high}).at(0);
  EXPECT_EQ(dx.node->op(), "GradTestJoin");
  EXPECT_THAT(input_names(dx), ElementsAre("d_low:0", "d_high:0"));
}

TEST_F(Gradients, OfAnOutputThatNobodyUsedAreEmptyForItsOp) {
  const Output x = source("x"), d_high = source("d_high");
  const Node* split = apply("GradTestSplit", {x}).node;
  const Output dx = gradients(s, {split->output(1)}, {x}, {d_high}).at(0);
  EXPECT_THAT(dx.node->input(0).name(), HasSubstr("zero"));
  EXPECT_EQ(dx.node->input(1), d_high);
}

TEST_F(Gradients, TellTheOutputsOfOneNodeApart) {
  const Node* split = apply("GradTestSplit", {source("x")}).node;
  const Outputs found =
      gradients(s, {add(split->output(1), split->output(1))}, {split->output(0), split->output(1)});
  EXPECT_FALSE(found.at(0));
  EXPECT_EQ(found.at(1).node->op(), "AddN");
}

TEST_F(Gradients, DoNotFlowBackFromABesideOutputOfAnOpWhoseFirstAloneMatters) {
  const Output x = source("x"), dy = source("dy");
  const Node* node = apply("GradTestFirstOnly", {x}).node;
  EXPECT_FALSE(gradients(s, {node->output(1)}, {x}).at(0));
  const Output dx = gradients(s, {node->output(0), node->output(1)}, {x}, {dy, {}}).at(0);
  EXPECT_EQ(dx.node->input(0), dy);
}

TEST_F(Gradients, AreNamedUnderGradientsAndTheirOp) {
  const Output x = source("x");
  const Output y = s.name_scope("fc").add("GradTestScale", {x}, {}, "scale");
  EXPECT_EQ(gradients(s, {y}, {x}).at(0).name(), "gradients/fc/scale_grad/GradTestScale:0");
  EXPECT_THAT(gradients(s, {y}, {x}).at(0).name(), StartsWith("gradients_1/"));
}

TEST_F(Gradients, AreMadeFromTheLastOpBackToTheFirst) {
  const Output x = source("x");
  const Output first = apply("GradTestScale", {x}), last = apply("GradTestScale", {first});
  const Outputs found = gradients(s, {last}, {x, first});
  EXPECT_LT(found.at(1).node->id(), found.at(0).node->id());
}

TEST_F(Gradients, AreRefusedBeforeAnythingIsAddedWhereAnArgumentIsWrong) {
  const Output x = source("x"), whole = source("whole", DType::i32), wide = source("wide", DType::f64);
  const int nodes = graph.num_nodes();
  EXPECT_THAT(
      [&] {
        gradients(s, {x, whole}, {x});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("whole:0 is i32")));
  EXPECT_THROW(gradients(s, {Output()}, {x}), InvalidArgumentError);
  EXPECT_THROW(gradients(s, {x}, {Output()}), InvalidArgumentError);
  EXPECT_THROW(gradients(s, {x}, {x}, {x, x}), InvalidArgumentError);
  EXPECT_THAT([&] { gradients(s, {x}, {x}, {wide}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("wide:0, is f64 [2]")));
  EXPECT_EQ(graph.num_nodes(), nodes);
  EXPECT_EQ(graph.unique_name("gradients"), "gradients");
}

TEST_F(Gradients, AreRefusedFromAnOpThatGivesAWrongNumber) {
  const Output x = source("x");
  const Output y = apply("GradTestWrongCount", {x});
  EXPECT_THAT(
      [&] { gradients(s, {y}, {x}); },
      ThrowsMessage<InternalError>(HasSubstr("the gradient of op GradTestWrongCount gives 2 tensors for 1")));
}

}  // namespace
}  // namespace kolo
