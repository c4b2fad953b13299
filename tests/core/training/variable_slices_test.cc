#include <gmock/gmock.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/partitioned_variables.h>
#include <kolo/core/ops/random.h>
#include <kolo/core/runtime/session.h>
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/initial_weights.h>
#include <kolo/core/training/saver.h>

#include "tests/core/training/temporary_directory.h"

namespace kolo {
namespace {

using testing::AllOf;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

// A graph with one variable `e`, in parts or, without a partitioner, whole.
struct Model {
  explicit Model(const Partitioner& partitioner = {}, const Shape& shape = {11, 4}) {
    const PartInitializer random = [](const Scope& scope, const Shape& part) {
      return random_normal(scope, DType::f32, part, 0, 1, 3);
    };
    if (partitioner) e = partitioned_variable(s.named("e"), shape, random, partitioner);
    else whole = Variable(s.named("e"), random(s, shape));
  }
  Tensor value(Session& session) { return session.run(whole ? whole.read() : e.read(s)); }

  Graph graph;
  Scope s{graph};
  PartitionedVariable e;
  Variable whole;
};

class VariableSlices : public testing::Test {
 protected:
  // Saves what `from` starts with; that value.
  Tensor saved(Model& from) {
    Session session(from.graph);
    session.run(global_variables_initializer(from.s));
    Saver(from.graph).save(session, path_);
    return from.value(session);
  }
  static void expect_same(const Tensor& a, const Tensor& b) {
    ASSERT_EQ(a.shape(), b.shape());
    EXPECT_THAT(a.span<float>(), ElementsAreArray(b.span<float>()));
  }
  // A new session of `into`, restored, has the value.
  void expect_restored(Model& into, const Tensor& value) {
    Session session(into.graph);
    Saver(into.graph).restore(session, path_);
    expect_same(into.value(session), value);
  }

  TemporaryDirectory folder_;
  const std::string path_ = folder_ / "model.ckpt";
};

// Row 27 of the worked examples of clusters.
TEST_F(VariableSlices, AreRestoredIntoAnyNumberOfParts) {
  Model three(fixed_size(3)), two(fixed_size(2)), one(fixed_size(1)), whole;
  const Tensor value = saved(three);
  const CheckpointReader reader(path_);
  ASSERT_EQ(reader.index().tensors.size(), 1U);
  EXPECT_EQ(reader.index().tensors.at("e").shape, (Shape{11, 4}));
  EXPECT_EQ(two.e.parts()[0].shape(), (Shape{6, 4}));
  EXPECT_EQ(two.e.parts()[1].shape(), (Shape{5, 4}));
  for (Model* const into : {&three, &two, &one, &whole}) expect_restored(*into, value);
}

TEST_F(VariableSlices, AreRestoredFromAWholeVariable) {
  Model whole, three(fixed_size(3));
  expect_restored(three, saved(whole));
}

TEST_F(VariableSlices, AlongAnyDimensionAreOneTensor) {
  const Shape shape = {3, 5, 2};
  Model columns(fixed_size(3, 1), shape), layers(fixed_size(2, 2), shape), whole({}, shape);
  const Tensor value = saved(columns);
  for (Model* const into : {&columns, &layers, &whole}) expect_restored(*into, value);
}

TEST_F(VariableSlices, AreInitialWeights) {
  Model three(fixed_size(3)), two(fixed_size(2));
  const Tensor value = saved(three);
  Session session(two.graph);
  load_initial_weights(session, {.path = path_});
  expect_same(two.value(session), value);
  load_initial_weights(session, {.path = path_, .names = {{"e", "e"}}});
  EXPECT_THAT(
      [&] {
        load_initial_weights(session, {.path = path_, .names = {{"e/part_0", "e"}}});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("\"e/part_0\" is no weight of the model")));
}

TEST_F(VariableSlices, OfAnotherWholeAreNamedOnce) {
  Model narrow(fixed_size(2), {11, 3}), three(fixed_size(3));
  saved(three);
  Session session(narrow.graph);
  EXPECT_THAT(
      [&] { Saver(narrow.graph).restore(session, path_); },
      ThrowsMessage<InvalidArgumentError>(
          AllOf(HasSubstr("lhs shape= [11,3] rhs shape= [11,4] (\"e\")"), Not(HasSubstr("(\"e\") Assign")))));
  Graph other;
  const Scope s(other);
  partitioned_variable(
      s.named("f"), {4}, [](const Scope& scope, const Shape& part) { return zeros(scope, DType::f32, part); },
      fixed_size(2));
  Session empty(other);
  EXPECT_THAT([&] { Saver(other).restore(empty, path_); },
              ThrowsMessage<NotFoundError>(AllOf(HasSubstr("Key f not found in checkpoint."),
                                                 Not(HasSubstr("found in checkpoint. Key")))));
}

TEST_F(VariableSlices, AreNotSavedWithoutEachOther) {
  Model three(fixed_size(3));
  const auto& parts = three.e.parts();
  const auto refuses = [](const std::vector<Variable>& variables) {
    EXPECT_THAT([&] { Saver{variables}; },
                ThrowsMessage<InvalidArgumentError>(HasSubstr("\"e\" of shape [11,4] is in parts")));
  };
  refuses({parts[0], parts[1]});
  refuses({parts[1], parts[2]});
  refuses({parts[0], parts[2]});
  refuses({parts[0], parts[1], parts[2], parts[0]});
  EXPECT_NO_THROW(Saver({parts[2], parts[0], parts[1]}));
}

TEST_F(VariableSlices, ShareNoNameWithAnotherVariable) {
  Model three(fixed_size(3));
  EXPECT_EQ(Variable(three.s.named("e"), zeros(three.s, DType::f32, {2})).name(), "e_1");
  Graph graph;
  const Scope s(graph);
  const Variable e(s.named("e"), zeros(s, DType::f32, {2})), part(s.named("part"), zeros(s, DType::f32, {2}));
  set_variable_slice(graph, part, {.whole = "e", .shape = {2}, .axis = 0, .first = 0});
  for (const auto& variables : {std::vector<Variable>{e, part}, std::vector<Variable>{part, e}})
    EXPECT_THAT([&] { Saver{variables}; }, ThrowsMessage<InvalidArgumentError>(
                                               HasSubstr("At least two variables have the same name: e")));
}

TEST_F(VariableSlices, ThatHaveNoValueAreNamed) {
  Model three(fixed_size(3));
  Session session(three.graph);
  session.run(three.e.parts()[0].initializer());
  EXPECT_THAT([&] { Saver(three.graph).save(session, path_); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr("uninitialized value e/part_1")));
}

TEST_F(VariableSlices, OfNothingAreSaved) {
  Model empty(fixed_size(3), {0, 4}), whole({}, {0, 4});
  const Tensor value = saved(empty);
  EXPECT_EQ(value.shape(), (Shape{0, 4}));
  expect_restored(whole, value);
  expect_restored(empty, value);
}

}  // namespace
}  // namespace kolo
