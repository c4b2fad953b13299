#include <kolo/core/cluster/device_setter.h>

#include <gmock/gmock.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/partitioned_variables.h>
#include <kolo/core/ops/variables.h>
#include <kolo/optimizer/rules.h>

namespace kolo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

const ClusterSpec kTwoServers({{"ps", {"p:1", "q:2"}}, {"worker", {"w:3"}}});

class DeviceSetter : public ::testing::Test {
 protected:
  Scope in(const ReplicaDeviceSetterOptions& options) {
    return Scope(graph_).device(replica_device_setter(options));
  }

  static Variable variable(const Scope& s, const Shape& shape = {2}, VariableOptions options = {}) {
    return Variable(s.named("v"), zeros(s, DType::f32, shape), options);
  }
  // The third variable.
  static Variable variable_of_step(const Scope& s) {
    return Variable(s.named("step"), zeros(s, DType::i64, {}), {.trainable = false});
  }
  static std::string device_of(const Operation& op) { return op.node->requested_device(); }
  static std::string device_of(const Variable& v) { return device_of(Operation(v.ref().node)); }

  Graph graph_;
  Scope s_ = in({.cluster = kTwoServers});
};

// Row 63 of the worked examples.
TEST_F(DeviceSetter, PutsVariablesOnServersInTurnAndAllElseOnTheWorker) {
  std::vector<std::string> devices;
  Outputs reads;
  for (int i = 0; i < 5; ++i) {
    const Variable v = variable(s_);
    devices.push_back(device_of(v));
    reads.push_back(v.read());
  }
  EXPECT_THAT(devices, ElementsAre("/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:0", "/job:ps/task:1",
                                   "/job:ps/task:0"));
  EXPECT_EQ(device_of(add(s_, reads[0], reads[1])), "/job:worker");
  const Scope gpu = s_.device("/gpu:1");
  EXPECT_EQ(device_of(neg(gpu, reads[0])), "/job:worker/device:GPU:1");
  EXPECT_EQ(device_of(neg(gpu.device("/task:1"), reads[0])), "/job:worker/task:1/device:GPU:1");
}

// Row 64.
TEST_F(DeviceSetter, NumbersVariablesOfTheServersJobAlone) {
  EXPECT_EQ(device_of(variable(s_.device("/job:moon"))), "/job:moon");
  EXPECT_EQ(device_of(variable(s_.device("/job:ps"))), "/job:ps/task:0");
  EXPECT_EQ(device_of(variable(s_.device("/job:ps/task:7/cpu:0"))), "/job:ps/task:7/device:CPU:0");
  EXPECT_EQ(device_of(variable(s_)), "/job:ps/task:0");
}

TEST_F(DeviceSetter, LetsInitialiserAndReadFollowTheirVariable) {
  const Variable v = variable(s_);
  EXPECT_EQ(device_of(v.initializer()), "/job:ps/task:0");
  EXPECT_EQ(device_of(v.read().node), "/job:ps/task:0");
  EXPECT_EQ(device_of(assign_add(s_, v, v).node), "/job:ps/task:0");
  EXPECT_EQ(device_of(variable(s_)), "/job:ps/task:1");
}

TEST_F(DeviceSetter, LeavesLocalVariablesToTheWorker) {
  EXPECT_EQ(device_of(variable(s_, {}, {.trainable = false, .local = true})), "/job:worker");
  EXPECT_EQ(device_of(variable(s_)), "/job:ps/task:0");
}

// Row 23.
TEST_F(DeviceSetter, TakesEachPartOfAVariableForOne) {
  const Variable a = variable(s_);
  const PartitionedVariable e = partitioned_variable(
      s_.named("e"), {11, 4}, [](const Scope& s, const Shape& part) { return zeros(s, DType::f32, part); },
      fixed_size(3));
  const Variable b = variable(s_), local = variable(s_, {2}, {.trainable = false, .local = true}),
                 c = variable(s_);
  EXPECT_EQ(device_of(a), "/job:ps/task:0");
  std::vector<std::string> devices;
  std::vector<std::int64_t> rows;
  for (const Variable& part : e.parts()) {
    devices.push_back(device_of(part));
    rows.push_back(part.shape().dim(0));
    EXPECT_EQ(part.name(), "e/part_" + std::to_string(rows.size() - 1));
  }
  EXPECT_THAT(devices, ElementsAre("/job:ps/task:1", "/job:ps/task:0", "/job:ps/task:1"));
  EXPECT_THAT(rows, ElementsAre(4, 4, 3));
  EXPECT_EQ(device_of(b), "/job:ps/task:0");
  EXPECT_EQ(device_of(local), "/job:worker");
  EXPECT_EQ(device_of(c), "/job:ps/task:1");
}

TEST_F(DeviceSetter, LetsSlotsAndUpdatesFollowTheirVariable) {
  const Variable v = variable(s_), w = variable(s_);
  MomentumOptimizer momentum(0.1, 0.9);
  Scope s = s_;
  momentum.minimize(s, square(s, add(s, v, w)), {.global_step = variable_of_step(s)});
  EXPECT_EQ(device_of(momentum.find_slot(v, "momentum")), "/job:ps/task:0");
  EXPECT_EQ(device_of(momentum.find_slot(w, "momentum")), "/job:ps/task:1");
  EXPECT_EQ(device_of(variable(s_)), "/job:ps/task:1");
}

TEST_F(DeviceSetter, TakesOtherDevicesOpsAndStrategies) {
  const Scope s = in({.ps_tasks = 3,
                      .ps_device = "/job:store/cpu:0",
                      .worker_device = "/job:worker/task:2",
                      .ps_ops = {"Neg"},
                      .ps_strategy = [](const Node& op) { return static_cast<int>(op.name().size()); }});
  const Variable v = variable(s);
  EXPECT_EQ(device_of(v), "/job:worker/task:2");
  EXPECT_EQ(device_of(neg(s.named("four"), v)), "/job:store/task:4/device:CPU:0");
}

TEST_F(DeviceSetter, GivesNoNumberWhereTheServersDeviceHasNoJob) {
  const Scope s = in({.ps_tasks = 2, .ps_device = "/cpu:0", .worker_device = ""});
  EXPECT_EQ(device_of(variable(s)), "/device:CPU:0");
  EXPECT_EQ(device_of(variable(in({.ps_tasks = 2, .ps_device = ""}))), "/job:worker");
}

TEST_F(DeviceSetter, WithoutMergingKeepsWhatAnOpAsksFor) {
  testing::internal::CaptureStderr();
  const Scope s = in({.ps_tasks = 2, .merge_devices = false});
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("DEPRECATION"));
  EXPECT_EQ(device_of(variable(s.device("/gpu:0"))), "/device:GPU:0");
  EXPECT_EQ(device_of(variable(s)), "/job:ps/task:0");
  EXPECT_EQ(device_of(no_op(s.device("/task:1"))), "/task:1");
  EXPECT_EQ(device_of(no_op(s)), "/job:worker");
}

TEST_F(DeviceSetter, WithMergingLogsNothing) {
  testing::internal::CaptureStderr();
  in({.ps_tasks = 2});
  EXPECT_THAT(testing::internal::GetCapturedStderr(), Not(HasSubstr("DEPRECATION")));
}

TEST_F(DeviceSetter, IsNoFunctionWithoutServers) {
  EXPECT_FALSE(replica_device_setter({}));
  EXPECT_FALSE(replica_device_setter({.ps_tasks = 2, .cluster = ClusterSpec()}));
  EXPECT_FALSE(
      replica_device_setter({.ps_tasks = 2, .cluster = ClusterSpec({{"ps", {}}, {"worker", {"w:1"}}})}));
  EXPECT_FALSE(replica_device_setter({.ps_device = "/cpu:0", .cluster = kTwoServers}));
  EXPECT_EQ(device_of(variable(in({}))), "");
}

TEST_F(DeviceSetter, RefusesWhatItCannotUse) {
  const auto refuses = [](const ReplicaDeviceSetterOptions& options, const std::string& text) {
    EXPECT_THAT([&] { replica_device_setter(options); },
                ThrowsMessage<InvalidArgumentError>(HasSubstr(text)));
  };
  refuses({.ps_tasks = 2, .ps_strategy = PsStrategy()}, "ps_strategy must be callable");
  refuses({.ps_tasks = -1}, "ps_tasks is -1");
  refuses({.ps_tasks = 2, .ps_device = "/foo:1"}, "Unknown attribute: 'foo'");
  refuses({.ps_tasks = 2, .worker_device = "/task:x"}, "Malformed device specification '/task:x'");
}

// Row 22 of the worked examples of clusters.
TEST_F(DeviceSetter, BalancesBytes) {
  const GreedyLoadBalancing greedy(2);
  const Scope s = in({.cluster = kTwoServers, .ps_strategy = greedy});
  std::string tasks;
  for (const Shape& shape :
       {Shape{20, 30}, Shape{30}, Shape{30, 5}, Shape{5}, Shape{64, 4}, Shape{8, 8}, Shape{10, 30}, Shape{7}})
    tasks += device_of(variable(s, shape)).back();
  EXPECT_EQ(tasks, "01111110");
  EXPECT_THAT(greedy.loads(), ElementsAre(2428, 3220));
}

TEST_F(DeviceSetter, BalancesAnyLoad) {
  const GreedyLoadBalancing greedy(3, [](const Node&) { return 1.5; });
  for (int i = 0; i < 4; ++i) greedy(*no_op(s_).node);
  EXPECT_THAT(greedy.loads(), ElementsAre(3, 1.5, 1.5));
}

TEST_F(DeviceSetter, KnowsBytesOfOneKnownShapeAlone) {
  EXPECT_EQ(byte_size(*zeros(s_, DType::f64, {3, 5}).node), 120);
  EXPECT_EQ(byte_size(*zeros(s_, DType::f32, {}).node), 4);
  for (const Operation& op : {no_op(s_.named("a")), Operation(placeholder(s_.named("a"), DType::f32, {-1}))})
    EXPECT_THAT(
        [&] { byte_size(*op.node); },
        ThrowsMessage<InvalidArgumentError>(HasSubstr("Op " + op.name() + " must have a single output")));
}

TEST(DeviceSetterStrategy, NeedsATask) {
  EXPECT_THROW(round_robin(0), InvalidArgumentError);
  EXPECT_THROW(GreedyLoadBalancing(0), InvalidArgumentError);
  EXPECT_THROW(GreedyLoadBalancing(1, nullptr), InvalidArgumentError);
}

}  // namespace
}  // namespace kolo
