// Parts that wait for nobody and are over in microseconds run on the thread that brings the request.
#include <gmock/gmock.h>

#include <algorithm>
#include <future>
#include <thread>

#include <kolo/core/cluster/worker/tensor_sink.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/control_flow.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/queues.h>
#include <kolo/core/ops/variables.h>

#include "small_cluster.h"

namespace kolo::detail {
namespace {

// A kernel counts as expensive until it was measured some ninety times, and longer where another process was
// in the way.
constexpr int kRunsUntilKnown = 200, kMostRuns = 20'000;

const RegisterOp slow_op(OpSchema("SlowForTest").input("x").output("y").stateful());
const RegisterKernel slow("SlowForTest", "CPU", {}, [](KernelContext& context) {
  std::this_thread::sleep_for(std::chrono::microseconds(100));
  context.output(0).span<float>()[0] = context.input(0).span<float>()[0];
});

struct NoSink final : TensorSink {
  void put(std::size_t, const Tensor&, bool, std::function<void()> released) override { released(); }
  void end(std::exception_ptr) override {}
};

class QuickParts : public ::testing::Test {
 protected:
  // The part of the step for `wanted` that the parameter server has.
  std::uint64_t on_server(const std::vector<Fetch>& wanted) {
    std::vector<StepPart> parts = session_.cut(wanted);
    const auto part =
        std::find_if(parts.begin(), parts.end(), [](const StepPart& made) { return made.task == kPs0; });
    if (part == parts.end()) throw InternalError("nothing of the step is on {}", kPs0);
    sent_.clear();
    for (const NodeDef& node : part->graph.nodes)
      if (node.op == "_NetSend") sent_.push_back(node.attrs.at("key").get<std::string>());
    return register_part(cluster_[kPs0], session_.handle(),
                         {.graph = std::move(part->graph),
                          .feeds = std::move(part->feeds),
                          .fetches = std::move(part->fetches),
                          .targets = std::move(part->targets)},
                         {});
  }
  RunPartRequest request_for(std::uint64_t part) {
    RunPartRequest request;
    request.session = session_.handle();
    request.part = part;
    request.step = ++step_;
    request.request_id = 1000 + static_cast<std::uint64_t>(step_);
    return request;
  }
  // Whether it ran on this thread. takes: what it sends is asked for before, by its own request.
  bool runs_here(std::uint64_t part, bool takes = true) {
    RunPartRequest request = request_for(part);
    std::shared_ptr<Call> asked;
    const TensorsRequest wanted{
        .session = request.session, .step = request.step, .receiver = kWorker0, .keys = sent_};
    if (takes && !sent_.empty()) {
      request.taken = sent_;
      asked = cluster_[kPs0].serve(wanted, std::make_shared<NoSink>());
    }
    std::promise<std::thread::id> ended;
    const auto call = cluster_[kPs0].run_part(request, {}, [&](std::exception_ptr error, PartResult) {
      EXPECT_EQ(error, nullptr);
      ended.set_value(std::this_thread::get_id());
    });
    if (!takes && !sent_.empty()) asked = cluster_[kPs0].serve(wanted, std::make_shared<NoSink>());
    auto thread = ended.get_future();
    if (thread.wait_for(std::chrono::seconds(30)) != std::future_status::ready)
      throw DeadlineExceededError("a part does not end");
    return thread.get() == std::this_thread::get_id();
  }
  bool ever_runs_here(std::uint64_t part) {
    for (int i = 0; i < kMostRuns; ++i)
      if (runs_here(part)) return true;
    return false;
  }
  bool never_runs_here(std::uint64_t part, bool takes = true) {
    for (int i = 0; i < kRunsUntilKnown; ++i)
      if (runs_here(part, takes)) return false;
    return true;
  }

  SmallCluster cluster_{{kPs0, kWorker0}};
  Graph graph_;
  Scope s_{graph_}, there_ = s_.device(kPs0), here_ = s_.device(kWorker0);
  SmallSession session_{cluster_, graph_, kWorker0, "quick"};
  std::vector<std::string> sent_;
  std::int64_t step_ = 100;
};

TEST_F(QuickParts, OneThatDoesNothingRunsHere) { EXPECT_TRUE(ever_runs_here(on_server({no_op(there_)}))); }

TEST_F(QuickParts, OneThatWasQuickBeforeRunsHere) {
  const Variable v(there_.named("v"), constant(there_, 1.0f));
  session_.run({v.initializer()});
  const auto part = on_server({Operation(assign_add(there_, v, constant(there_, 1.0f)).node)});
  EXPECT_FALSE(runs_here(part));
  EXPECT_TRUE(ever_runs_here(part));
}

TEST_F(QuickParts, OneOfASlowKernelDoesNot) {
  const Output slow_one = there_.add("SlowForTest", {constant(there_, 1.0f)}, {}).output(0);
  EXPECT_TRUE(never_runs_here(on_server({Operation(slow_one.node)})));
}

// Its body may wait for a queue, or take any time in the next run.
TEST_F(QuickParts, OneWithALoopDoesNot) {
  const Output counted = while_loop(
      there_, [](const Scope& s, const Outputs& v) { return less(s, v[0], constant(s, 1.0f)); },
      [](const Scope& s, const Outputs& v) { return Outputs{add(s, v[0], constant(s, 1.0f))}; },
      {constant(there_, 0.0f)})[0];
  EXPECT_TRUE(never_runs_here(on_server({Operation(counted.node)})));
}

// It waits while others copy the variable.
TEST_F(QuickParts, OneThatUpdatesALargeVariableDoesNot) {
  const Variable v(there_.named("v"), zeros(there_, DType::f32, {1 << 14}));
  session_.run({v.initializer()});
  const Output first = constant(there_, Tensor::zeros(DType::i32, {1}));
  const auto part =
      on_server({Operation(scatter_add(there_, v, first, fill(there_, DType::f32, {1}, 1)).node)});
  EXPECT_TRUE(never_runs_here(part));
}

TEST_F(QuickParts, OneThatSendsAFewBytesRunsHereWhereItsRequestAsksForThem) {
  const Variable v(there_.named("v"), zeros(there_, DType::f32, {256}));
  session_.run({v.initializer()});
  const auto part = on_server({identity(here_, v)});
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_TRUE(ever_runs_here(part));
  EXPECT_TRUE(never_runs_here(part, /*takes=*/false));
}

// Its memory is free only when the transport has written it, for which its threads are needed.
TEST_F(QuickParts, OneThatSendsMuchDoesNot) {
  const Variable v(there_.named("v"), zeros(there_, DType::f32, {1 << 14}));
  session_.run({v.initializer()});
  EXPECT_TRUE(never_runs_here(on_server({identity(here_, v)})));
}

TEST_F(QuickParts, OneThatWaitsDoesNot) {
  const FIFOQueue queue(there_.named("q"), {DType::f32}, {.shapes = {Shape()}});
  const Operation put = enqueue(there_, queue, {constant(there_, 1.0f)});
  const Output waits = dequeue(there_, queue)[0];
  const auto filling = on_server({put}), part = on_server({Operation(waits.node)});
  for (int i = 0; i < kRunsUntilKnown; ++i) {
    runs_here(filling);
    EXPECT_FALSE(runs_here(part));
  }
}

}  // namespace
}  // namespace kolo::detail
