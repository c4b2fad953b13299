#include <gmock/gmock.h>

#include <set>

#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/linalg.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>
#include <tests/core/test_ops.h>

namespace kolo {
namespace {

using testing::add;
using testing::call;
using ::testing::HasSubstr;

const RegisterOp weekday_op(OpSchema("TestWeekday")
                                .output("y", DType::f32)
                                .shape([](ShapeContext& c) { c.set_output(0, Shape()); })
                                .stateful()
                                .no_gradient());
const RegisterKernel sunday("TestWeekday", "CPU", {},
                            KernelFactory([](KernelInit& init) { return init.decline("only on Sundays"); }),
                            1);
const RegisterKernel any_day("TestWeekday", "CPU", {}, [](KernelContext&) {});

constexpr std::int64_t kElements = 16384;
constexpr std::size_t kBytes = 4 * kElements;

class RunMetadataOf : public ::testing::Test {
 protected:
  RunMetadata run(const std::vector<Fetch>& fetches, const Feeds& feeds = {},
                  TraceLevel level = TraceLevel::full_trace) {
    RunMetadata metadata;
    session.run(fetches, feeds, {.trace_level = level}, &metadata);
    return metadata;
  }
  Graph graph;
  const Scope s{graph};
  Session session{graph, {.inter_op_parallelism_threads = 2, .use_per_session_threads = true}};
};

// Each of three sums needs its operand and its result at a time: two buffers do for four values.
TEST_F(RunMetadataOf, AChainComparesPlannedMemoryWithTheSumOfItsBuffers) {
  Output x = call(s, 1, {}, {kElements});
  for (int i = 0; i < 3; ++i) x = add(s, x, x);
  const RunMetadata metadata = run({x});
  ASSERT_EQ(metadata.memory.size(), 1u);
  EXPECT_THAT(metadata.memory[0].device, HasSubstr("device:CPU:0"));
  EXPECT_EQ(metadata.memory[0].planned_bytes, 2 * kBytes);
  EXPECT_EQ(metadata.memory[0].unplanned_bytes, 4 * kBytes);
  EXPECT_EQ(metadata.memory[0].peak_bytes, 2 * kBytes);
}

TEST_F(RunMetadataOf, AStepCountsItsVariablesButNotWhatIsFed) {
  const Output x = placeholder(s, DType::f32, {kElements});
  const Variable v(s, call(s, 1, {}, {kElements}));
  session.run(v.initializer());
  const RunMetadata metadata = run({add(s, x, v)}, {{x, Tensor::zeros(DType::f32, {kElements})}});
  ASSERT_EQ(metadata.memory.size(), 1u);
  EXPECT_EQ(metadata.memory[0].planned_bytes, kBytes);
  EXPECT_EQ(metadata.memory[0].peak_bytes, 2 * kBytes);
}

TEST_F(RunMetadataOf, ATracedRunNamesDeviceAndThreadOfEachNode) {
  Outputs values;
  for (int i = 0; i < 20; ++i) values.push_back(call(s, i));
  const RunMetadata metadata = run({values.begin(), values.end()});
  std::set<std::string> names;
  for (const TraceEvent& event : metadata.step_stats.events) {
    names.insert(event.name);
    EXPECT_EQ(event.category, "TestCall");
    EXPECT_THAT(event.lane, HasSubstr("CPU:0 thread "));
    EXPECT_LE(event.start, event.end);
  }
  EXPECT_EQ(names.size(), 20u);
}

TEST_F(RunMetadataOf, ARunWithoutTraceHasNoEvents) {
  EXPECT_TRUE(run({call(s, 1)}, {}, TraceLevel::no_trace).step_stats.events.empty());
}

TEST_F(RunMetadataOf, AStepNamesTheKernelOfEachNodeAndWhyNotAFasterOne) {
  const Output x = placeholder(s, DType::f32, {3, 3}), y = matmul(s, x, x);
  const Output x64 = placeholder(s, DType::f64, {3, 3}), z = matmul(s, x64, x64);
  const Feeds feeds = {{x, Tensor::zeros(DType::f32, {3, 3})}, {x64, Tensor::zeros(DType::f64, {3, 3})}};
  const auto choices = session.kernels({y, z}, feeds);
  const auto of = [&](const Output& value) {
    return *std::find_if(choices.begin(), choices.end(),
                         [&](const KernelChoice& choice) { return choice.node == value.node->name(); });
  };
  EXPECT_EQ(of(y).op, "MatMul");
  EXPECT_THAT(of(y).device, HasSubstr("device:CPU:0"));
  EXPECT_THAT(of(y).kernel, ::testing::MatchesRegex("linalg.cc:[0-9]+"));
  EXPECT_NE(of(y).kernel, of(z).kernel);
  EXPECT_THAT(run({y}, {{x, Tensor::zeros(DType::f32, {3, 3})}}).kernels, ::testing::SizeIs(1));
}

TEST_F(RunMetadataOf, AStepKeepsTheReasonOfAKernelThatDeclined) {
  const Output x = s.add("TestWeekday", {});
  const auto choices = session.kernels({x});
  ASSERT_EQ(choices.size(), 1u);
  EXPECT_THAT(choices[0].declined, ::testing::MatchesRegex("run_metadata_test.cc:[0-9]+: only on Sundays"));
}

}  // namespace
}  // namespace kolo
