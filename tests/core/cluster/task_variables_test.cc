#include <kolo/core/cluster/worker/task_variables.h>

#include <gmock/gmock.h>

#include <kolo/core/base/error.h>
#include <kolo/core/device/device.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/variables.h>

namespace kolo::detail {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class Variables : public ::testing::Test {
 protected:
  std::shared_ptr<VariableStorage> find_or_make(const VariableKey& key, const Shape& shape = {2}) {
    return all_.find_or_make(key, DType::f32, shape, device_);
  }

  CpuDevice device_{"/job:ps/replica:0/task:0/device:CPU:0"};
  TaskVariables all_{"/job:ps/replica:0/task:0"};
};

TEST_F(Variables, HaveTheContainerLocalhostByDefault) {
  const auto variable = find_or_make({"", "v"});
  EXPECT_EQ(find_or_make({"localhost", "v"}), variable);
  EXPECT_NE(find_or_make({"exp1", "v"}), variable);
  EXPECT_EQ(all_.bytes(), 16);
}

TEST_F(Variables, AreNamedByTheirNodesAttributes) {
  Graph graph;
  const Scope s(graph);
  const Variable plain(s.named("v"), constant(s, 1.0f));
  const Variable shared(s.container("exp1").named("w"), constant(s, 1.0f), {.shared_name = "both"});
  EXPECT_EQ(TaskVariables::key_of(*plain.ref().node), (VariableKey{"", "v"}));
  EXPECT_EQ(TaskVariables::key_of(*shared.ref().node), (VariableKey{"exp1", "both"}));
}

TEST_F(Variables, RefuseAContainerThatCannotBe) {
  Graph graph;
  const Scope s(graph);
  EXPECT_THAT([&] { Variable(s.container("a b").named("v"), constant(s, 1.0f)); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("container contains invalid characters: a b")));
}

TEST_F(Variables, KeepTypeAndShapeWhileTheyHaveAValue) {
  set_value(*find_or_make({"", "v"}), Tensor::of<float>({2}, {1, 2}));
  EXPECT_THAT(
      [&] {
        find_or_make({"", "v"}, {3});
      },
      ThrowsMessage<InvalidArgumentError>(
          HasSubstr("Variable v is float [2] in container \"localhost\" of "
                    "/job:ps/replica:0/task:0; this graph declares float [3]")));
  all_.drop("localhost");
  EXPECT_EQ(find_or_make({"", "v"}, {3})->value.shape(), Shape({3}));
}

// The initialisation that the first one's plans bring would be lost with the memory they hold.
TEST_F(Variables, KeepTypeAndShapeWhileSomebodyHoldsThem) {
  const auto held = find_or_make({"", "v"});
  EXPECT_THAT(
      [&] {
        find_or_make({"", "v"}, {3});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("Variable v is float [2] in container \"localhost\"")));
  CpuDevice other("/job:ps/replica:0/task:0/device:CPU:1");
  EXPECT_THAT(
      [&] {
        all_.find_or_make({"", "v"}, DType::f32, {2}, other);
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("this graph puts it on")));
  set_value(*held, Tensor::of<float>({2}, {1, 2}));
  EXPECT_EQ(copy_of(*find_or_make({"", "v"})).span<float>()[1], 2.0f);
}

TEST_F(Variables, TakeAnotherShapeOnceNobodyHoldsThem) {
  find_or_make({"", "v"});
  EXPECT_EQ(find_or_make({"", "v"}, {3})->value.shape(), Shape({3}));
}

TEST_F(Variables, LeaveNoTraceWhereTheyDoNotFit) {
  const std::int64_t kTooMany = std::int64_t{1} << 45;
  for (int i = 0; i < 2; ++i)
    EXPECT_THAT(
        [&] {
          find_or_make({"", "v"}, {kTooMany});
        },
        ThrowsMessage<ResourceExhaustedError>(AllOf(HasSubstr("variable \"v\""), HasSubstr("are free"))));
  EXPECT_EQ(all_.bytes(), 0);
  EXPECT_EQ(all_.find({"", "v"}), nullptr);
  all_.drop("localhost");
  EXPECT_EQ(find_or_make({"", "v"})->value.shape(), Shape({2}));
}

TEST_F(Variables, StayWithWhoUsesThemWhenTheirContainerIsDropped) {
  const auto variable = find_or_make({"", "v"});
  set_value(*variable, Tensor::of<float>({2}, {1, 2}));
  all_.drop("");
  EXPECT_FALSE(variable->initialized);
  EXPECT_EQ(find_or_make({"", "v"}), variable);
}

TEST_F(Variables, AreFreedWhenNobodyUsesThem) {
  find_or_make({"exp1", "v"});
  all_.drop("exp1");
  EXPECT_EQ(all_.bytes(), 0);
  EXPECT_EQ(all_.find({"exp1", "v"}), nullptr);
}

TEST_F(Variables, AreCopiedOnlyWithAValue) {
  const auto variable = find_or_make({"", "v"});
  EXPECT_FALSE(copy_of(*variable));
  set_value(*variable, Tensor::of<float>({2}, {1, 2}));
  const Tensor copy = copy_of(*variable);
  EXPECT_NE(copy.raw(), variable->value.raw());
  EXPECT_EQ(copy.span<float>()[1], 2.0f);
  EXPECT_THROW(set_value(*variable, Tensor::scalar(1.0f)), InvalidArgumentError);
}

}  // namespace
}  // namespace kolo::detail
