#include <kolo/core/ops/variable_part.h>

#include <gmock/gmock.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/elementwise.h>
#include <kolo/core/runtime/session.h>

#include "tests/core/op_checks.h"

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

class VariablePartTest : public testing::Test {
 protected:
  std::vector<float> values(Output x) {
    const Tensor tensor = session.run(x);
    return {tensor.data<float>(), tensor.data<float>() + tensor.elements()};
  }

  Graph graph;
  Scope s{graph};
  const Variable v{s.named("v"), constant(s, Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6}))};
  Session session{graph};
};

TEST_F(VariablePartTest, IsARangeOfTheVariablesElements) {
  const Variable part = variable_part(s, v, 2, 3);
  EXPECT_EQ(part.name(), "v/shard");
  EXPECT_EQ(part.shape(), Shape({3}));
  EXPECT_EQ(part.dtype(), DType::f32);
  record_op_check("VariablePart", OpCheck::shape);
  session.run(v.initializer());
  EXPECT_THAT(values(part.read()), ElementsAre(3, 4, 5));
  EXPECT_EQ(values(variable_part(s, v, 6, 0).read()).size(), 0u);
}

TEST_F(VariablePartTest, ChangesWithTheVariableAndTheVariableWithIt) {
  const Variable part = variable_part(s, v, 2, 3);
  const Output add = assign_add(s, part, constant(s, Tensor::of<float>({3}, {10, 20, 30})));
  const Output twice = assign(s, v, mul(s, v, constant(s, 2.0f)));
  session.run(v.initializer());
  EXPECT_THAT(values(add), ElementsAre(13, 24, 35));
  EXPECT_THAT(values(v.read()), ElementsAre(1, 2, 13, 24, 35, 6));
  session.run(twice);
  EXPECT_THAT(values(part.read()), ElementsAre(26, 48, 70));
}

// Reads and updates of the whole and of the part take effect in the order of their creation.
TEST_F(VariablePartTest, IsUpdatedInTheOrderOfTheGraph) {
  const Variable part = variable_part(s, v, 0, 2);
  const Output before = mul(s, v, constant(s, 1.0f));
  const Output changed = assign(s, part, zeros(s, DType::f32, {2}));
  const Output between = mul(s, v, constant(s, 10.0f));
  const Output again = assign_add(s, v, ones(s, DType::f32, {2, 3}));
  const Output after = mul(s, part, constant(s, 10.0f));
  session.run(v.initializer());
  const auto seen = session.run({before, changed, between, again, after});
  EXPECT_THAT(seen[0].span<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(seen[2].span<float>(), ElementsAre(0, 0, 30, 40, 50, 60));
  EXPECT_THAT(seen[4].span<float>(), ElementsAre(10, 10));
}

TEST_F(VariablePartTest, HasAValueOnceItsWholeHasOne) {
  const Variable part = variable_part(s, v, 0, 2);
  EXPECT_THAT([&] { session.run(part.read()); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr("uninitialized value v")));
  session.run(v.initializer());
  session.run(part.read());
  EXPECT_EQ(global_variables(graph).size(), 1u) << "a part is saved with its whole";
}

TEST_F(VariablePartTest, IsTheSameVariableWhenAskedForAgain) {
  const Variable part = variable_part(s, v, 1, 2);
  EXPECT_EQ(variable_part(s, v, 1, 2), part);
  EXPECT_NE(variable_part(s, v, 0, 2), part);
  EXPECT_EQ(whole_variable(part), v);
  EXPECT_EQ(whole_variable(v), v);
}

TEST_F(VariablePartTest, LiesInItsVariable) {
  EXPECT_THAT([&] { variable_part(s, v, 4, 3); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("3 elements from element 4 on do not lie in a variable of shape [2,3]")));
  EXPECT_THROW(variable_part(s, v, -1, 1), InvalidArgumentError);
  EXPECT_THROW(variable_part(s, variable_part(s, v, 0, 2), 0, 1), InvalidArgumentError);
}

}  // namespace
}  // namespace kolo
