// Sessions over several devices: virtual GPUs and more than one CPU.
#include <gmock/gmock.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/gradients.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/control_flow.h>
#include <kolo/core/ops/linalg.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/random.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/training.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>
#include <kolo/core/runtime/session_state.h>
#include <tests/core/test_ops.h>

namespace kolo {
namespace {

using ::testing::AllOf;
using testing::call;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

SessionConfig with_gpus(int gpus) {
  SessionConfig config;
  config.virtual_gpus.assign(static_cast<std::size_t>(gpus), {.total_bytes = std::int64_t{1} << 30});
  return config;
}

std::vector<float> values(const Tensor& tensor) {
  return {tensor.data<float>(), tensor.data<float>() + tensor.elements()};
}

Output product(const Scope& s) {
  const Output a = constant(s.named("a"), Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
  const Output b = constant(s.named("b"), Tensor::of<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
  return matmul(s.named("product"), a, b);
}

// What a run with log_device_placement prints.
std::string placements(Graph& graph, const Output& fetch, SessionConfig config) {
  config.log_device_placement = true;
  ::testing::internal::CaptureStdout();
  Session(graph, config).run(fetch);
  return ::testing::internal::GetCapturedStdout();
}

// Row 34 of the worked examples.
TEST(DevicesOfASession, AllGiveTheSameProduct) {
  for (const char* device : {"/cpu:0", "/cpu:2", "/gpu:0", "/gpu:1"}) {
    Graph graph;
    SessionConfig config = with_gpus(2);
    config.device_count = {{"CPU", 3}};
    const Tensor y = Session(graph, config).run(product(Scope(graph).device(device)));
    EXPECT_THAT(values(y), ElementsAre(22, 28, 49, 64)) << device;
  }
}

// Row 35 of the worked examples.
TEST(DevicesOfASession, AddTowersOfTwoGpusOnTheCpu) {
  Graph graph;
  const Scope s(graph);
  Outputs towers;
  for (const char* device : {"/gpu:2", "/gpu:3"})
    towers.push_back(product(s.device(device).name_scope("tower")));
  const Output sum = add_n(s.named("sum").device("/cpu:0"), towers);
  EXPECT_THAT(values(Session(graph, with_gpus(4)).run(sum)), ElementsAre(44, 56, 98, 128));
  const std::string log = placements(graph, sum, with_gpus(4));
  const std::string local = "/job:localhost/replica:0/task:0/device:";
  EXPECT_THAT(log, AllOf(HasSubstr("tower/product: (MatMul): " + local + "GPU:2\n"),
                         HasSubstr("tower_1/product: (MatMul): " + local + "GPU:3\n"),
                         HasSubstr("sum: (AddN): " + local + "CPU:0\n")));
}

TEST(DevicesOfASession, AreMappedWherePlacementIsLogged) {
  Graph graph;
  const Output x = constant(Scope(graph), 1.0f);
  EXPECT_THAT(placements(graph, x, {}), HasSubstr("Device mapping: no known devices.\n"));
  EXPECT_THAT(
      placements(graph, x, with_gpus(1)),
      HasSubstr("Device mapping:\n/job:localhost/replica:0/task:0/device:GPU:0 -> device: 0, name: virtual "
                "GPU, pci bus id: "));
}

TEST(DevicesOfASession, LogANodeOnTheRunThatFirstNeedsIt) {
  Graph graph;
  const Scope s(graph);
  const Output x = call(s, 1), y = call(s, 2, {x});
  SessionConfig config;
  config.log_device_placement = true;
  Session session(graph, config);
  ::testing::internal::CaptureStdout();
  session.run(x);
  EXPECT_THAT(::testing::internal::GetCapturedStdout(), HasSubstr("call1: (TestCall): "));
  ::testing::internal::CaptureStdout();
  session.run(y);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(),
            "call2: (TestCall): /job:localhost/replica:0/task:0/device:CPU:0\n");
}

TEST(DevicesOfASession, FeedAndFetchValuesOfAGpu) {
  Graph graph;
  const Scope s = Scope(graph).device("/gpu:0");
  const Output x = placeholder(s, DType::f32, {-1}), y = add(s, x, x), z = add(s, y, x);
  Session session(graph, with_gpus(1));
  for (const float n : {1.0f, 2.0f, 3.0f}) {
    const auto results = session.run(std::vector<Fetch>{y, z, x}, {{x, Tensor::of<float>({2}, {n, 10})}});
    EXPECT_THAT(values(results[0]), ElementsAre(2 * n, 20));
    EXPECT_THAT(values(results[1]), ElementsAre(3 * n, 30));
    EXPECT_THAT(values(results[2]), ElementsAre(n, 10));
  }
}

TEST(DevicesOfASession, KeepAVariableInItsDevicesMemory) {
  Graph graph;
  const Scope s = Scope(graph).device("/gpu:0");
  const Variable v(s.named("v"), constant(s, Tensor::of<float>({2}, {1, 2})));
  Session session(graph, with_gpus(1));
  session.run(v.initializer());
  const Output update = assign_add(s, v, constant(s, Tensor::of<float>({2}, {10, 10})));
  EXPECT_THAT(values(session.run(update)), ElementsAre(11, 12));
  EXPECT_THAT(values(session.run(v.read())), ElementsAre(11, 12));
  const VariableStorage& storage = detail::storage_of(session, v);
  EXPECT_EQ(storage.device->local_name(), "GPU:0");
  EXPECT_THAT(values(detail::read_variable(storage)), ElementsAre(11, 12));
}

TEST(DevicesOfASession, ReadAVariableForAnotherDeviceBeforeOrAfterItsUpdateAsItWasCreated) {
  Graph graph;
  const Scope s(graph);
  const Scope gpu = s.device("/gpu:0"), cpu = s.device("/cpu:0");
  const Variable v(gpu.named("v"), constant(gpu, 1.0f));
  const Output one = constant(cpu, 1.0f);
  const Output before = testing::add(cpu, v, one);
  const Output update = assign_add(s, v, constant(gpu, 10.0f));
  const Output after = testing::add(cpu, v, one);
  Session session(graph, with_gpus(1));
  session.run(v.initializer());
  for (int run = 0; run < 20; ++run) {
    const auto results = session.run(std::vector<Fetch>{after, update, before});
    const auto old = static_cast<float>(1 + 10 * run);
    EXPECT_EQ(results[2].value<float>(), old + 1);
    EXPECT_EQ(results[1].value<float>(), old + 10);
    EXPECT_EQ(results[0].value<float>(), old + 11);
  }
}

TEST(DevicesOfASession, RefuseAWholeNumberVariableOnAGpu) {
  Graph graph;
  const Scope s = Scope(graph).device("/gpu:0");
  const Variable v(s.named("counter"), constant(s, Tensor::scalar<std::int32_t>(3)));
  Session session(graph, with_gpus(1));
  EXPECT_THAT([&] { session.run(v.initializer()); },
              ThrowsMessage<InvalidArgumentError>(AllOf(
                  HasSubstr("Cannot assign a device to node 'counter': Could not satisfy explicit device "
                            "specification '/device:GPU:0' because no supported kernel for GPU devices is "
                            "available."),
                  HasSubstr("[[Node: counter = Variable["))));
  SessionConfig soft = with_gpus(1);
  soft.allow_soft_placement = true;
  Session forgiving(graph, soft);
  forgiving.run(v.initializer());
  EXPECT_EQ(forgiving.run(v.read()).value<std::int32_t>(), 3);
}

TEST(DevicesOfASession, NameTheVariableThatIsNotInitialised) {
  Graph graph;
  const Scope s = Scope(graph).device("/gpu:0");
  const Variable v(s.named("v"), constant(s, 1.0f));
  Session session(graph, with_gpus(1));
  EXPECT_THAT([&] { session.run(testing::add(s, v, v)); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr("Attempting to use uninitialized value v")));
}

TEST(DevicesOfASession, SayWhichNodeFailedOnWhichDevice) {
  Graph graph;
  const Scope s(graph);
  testing::on_call = [](std::int64_t tag) {
    if (tag == 7) throw DataLossError("bad luck");
  };
  const Output failing = call(s.device("/gpu:1"), 7), y = testing::add(s.device("/cpu:0"), failing, failing);
  Session session(graph, with_gpus(2));
  EXPECT_THAT([&] { session.run(y); }, ThrowsMessage<DataLossError>(AllOf(
                                           HasSubstr("bad luck"), HasSubstr("call7"), HasSubstr("GPU:1"))));
  testing::on_call = [](std::int64_t) {};
  EXPECT_EQ(session.run(y).value<float>(), 14) << "the session goes on";
}

TEST(DevicesOfASession, SayWhatAGpuHasWhereItHasNotEnough) {
  Graph graph;
  const Scope s = Scope(graph).device("/gpu:0");
  SessionConfig config;
  config.virtual_gpus = {{.total_bytes = 1 << 20}};
  config.gpu_options.per_process_gpu_memory_fraction = 1;
  Session session(graph, config);
  const Output large = call(s, 1, {}, {1 << 19});
  EXPECT_THAT([&] { session.run(large); },
              ThrowsMessage<ResourceExhaustedError>(AllOf(HasSubstr("virtual GPU 0"),
                                                          HasSubstr("2097152 bytes were asked for"),
                                                          HasSubstr("limit of 1048576 bytes"))));
  EXPECT_EQ(session.run(call(s, 2)).value<float>(), 2) << "smaller steps still run";
}

TEST(DevicesOfASession, TraceKernelsAndCopiesInLanesOfTheirOwn) {
  Graph graph;
  const Scope s(graph);
  const Output x = call(s.named("x").device("/gpu:0"), 1), y = call(s.device("/gpu:1"), 2, {x});
  RunMetadata metadata;
  Session(graph, with_gpus(2))
      .run(std::vector<Fetch>{y}, {}, {.trace_level = TraceLevel::full_trace}, &metadata);
  const StepTrace& trace = metadata.step_stats;
  EXPECT_THAT(trace.events,
              Contains(AllOf(Field(&TraceEvent::name, "call2"), Field(&TraceEvent::lane, "GPU:1 stream"))));
  EXPECT_THAT(trace.events, Contains(AllOf(Field(&TraceEvent::category, "_Recv"),
                                           Field(&TraceEvent::lane, "GPU:0 to GPU:1"))));
  EXPECT_THAT(trace.events, Contains(Field(&TraceEvent::lane, "GPU:1 to CPU:0")));
}

TEST(DevicesOfASession, RunStepsOfSeveralThreadsAtATime) {
  Graph graph;
  const Scope s(graph);
  const Output x = placeholder(s, DType::f32, {});
  const Output y = testing::add(s.device("/gpu:0"), x, x), z = testing::add(s.device("/gpu:1"), y, x);
  Session session(graph, with_gpus(2));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const auto n = static_cast<float>(100 * t + i);
        EXPECT_EQ(session.run(z, {{x, Tensor::scalar(n)}}).value<float>(), 3 * n);
      }
    });
  for (auto& thread : threads) thread.join();
}

// v ← v − 0.1 · d/dv Σ (v · x)², on a device; the reference is the same sum on the CPU.
std::vector<float> trained(const char* device, SessionConfig config) {
  Graph graph;
  Scope s = Scope(graph).device(device);
  const Variable v(s.named("v"), constant(s, Tensor::of<float>({3}, {1, -2, 3})));
  const Output x = placeholder(s, DType::f32, {3});
  const Output p = mul(s, v, x);
  const Output loss = reduce_sum(s, mul(s, p, p));
  const Output gradient = gradients(s, {loss}, {v.read()})[0];
  const Operation update = apply_update(
      s, {.rule = "GradientDescent", .variable = v, .slots = {}, .scalars = {constant(s, 0.1f)}}, gradient);
  Session session(graph, config);
  session.run(v.initializer());
  for (int step = 0; step < 5; ++step) session.run(update, {{x, Tensor::of<float>({3}, {0.5f, 1, 1.5f})}});
  return values(session.run(v.read()));
}

TEST(DevicesOfASession, TrainAlike) {
  const auto on_cpu = trained("/cpu:0", {});
  EXPECT_EQ(trained("/gpu:0", with_gpus(1)), on_cpu);
  EXPECT_EQ(trained("", with_gpus(1)), on_cpu) << "unpinned: on the GPU";
}

// h ← tanh(h · w), three times, and how its sum changes with w.
std::vector<Tensor> repeated_product(const Scope& at, const SessionConfig& config) {
  Scope s = at;
  const Output w = constant(s, Tensor::of<float>({2, 2}, {0.5f, -1, 0.25f, 2}));
  const Output h = constant(s, Tensor::of<float>({1, 2}, {1, -0.5f})), zero = constant(s, 0.0f);
  const Outputs finals = while_loop(
      s, [](const Scope& c, const Outputs& v) { return less(c, v[0], constant(c, 3.0f)); },
      [&](const Scope& b, const Outputs& v) {
        return Outputs{add(b, v[0], constant(b, 1.0f)), tanh(b.colocate_with(v[1]), matmul(b, v[1], w))};
      },
      {zero, h});
  const Output gradient = gradients(s, {reduce_sum(s, finals[1])}, {w})[0];
  return Session(s.graph(), config).run({finals[1], gradient});
}

TEST(DevicesOfASession, RunTheOpsOfALoopWhereTheyAskFor) {
  Graph of_cpu, of_gpu, of_function;
  const auto expected = repeated_product(Scope(of_cpu), {});
  for (const Scope& s :
       {Scope(of_gpu).device("/gpu:0"), Scope(of_function).device([](const Node&) { return "/gpu:0"; })}) {
    SessionConfig config = with_gpus(1);
    config.log_device_placement = true;
    ::testing::internal::CaptureStdout();
    const auto results = repeated_product(s, config);
    EXPECT_THAT(::testing::internal::GetCapturedStdout(),
                HasSubstr("while/body/MatMul: (MatMul): /job:localhost/replica:0/task:0/device:GPU:0\n"));
    for (int i = 0; i < 2; ++i) EXPECT_EQ(values(results[i]), values(expected[i]));
  }
}

TEST(DevicesOfASession, RunAnOpOfAGpuOneOfWhoseOutputsIsFed) {
  Graph graph;
  const Scope s(graph);
  const Output x = constant(s, Tensor::of<float>({2}, {1, 2}));
  const Operation b = s.device("/gpu:0").add("Dropout", {x}, {{"rate", 0.5}});
  const Output y = add(s, b.output(0), x), kept = cast(s, b.output(1), DType::f32);
  Session session(graph, with_gpus(1));
  const auto results =
      session.run(std::vector<Fetch>{y, kept}, {{b.output(0), Tensor::of<float>({2}, {10, 20})}});
  EXPECT_THAT(values(results[0]), ElementsAre(11, 22));
  for (const float value : values(results[1])) EXPECT_TRUE(value == 0 || value == 1);
}

TEST(DevicesOfASession, AreHiddenByFilters) {
  Graph graph;
  SessionConfig config = with_gpus(2);
  config.device_filters = {"/cpu:0", "/gpu:1"};
  Session session(graph, config);
  EXPECT_THAT([&] { session.run(call(Scope(graph).device("/gpu:0"), 1)); },
              ThrowsMessage<InvalidArgumentError>(
                  AllOf(HasSubstr("available devices: /job:localhost/replica:0/task:0/device:CPU:0, "
                                  "/job:localhost/replica:0/task:0/device:GPU:1"),
                        Not(HasSubstr("device:GPU:0,")))));
}

TEST(DevicesOfASession, ShareTheCoresWhereTheyAreManyCpus) {
  Graph graph;
  const Scope s(graph);
  SessionConfig config;
  config.device_count = {{"CPU", 56}};
  Outputs parts;
  for (int i = 0; i < 56; ++i) parts.push_back(call(s.device("/cpu:" + std::to_string(i)), i + 1));
  EXPECT_EQ(Session(graph, config).run(add_n(s.device("/cpu:55"), parts)).value<float>(), 56 * 57 / 2);
}

TEST(DevicesOfASession, NeedACpu) {
  Graph graph;
  SessionConfig config;
  config.device_count = {{"CPU", 0}};
  EXPECT_THAT([&] { Session session(graph, config); },
              ThrowsMessage<NotFoundError>(HasSubstr("No CPU devices are available in this process")));
}

}  // namespace
}  // namespace kolo
