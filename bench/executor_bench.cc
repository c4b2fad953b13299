#include <bench/executor_bench.h>

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include <kolo/core/base/error.h>
#include <kolo/core/base/json_text.h>
#include <kolo/core/base/median.h>
#include <kolo/core/base/process.h>
#include <kolo/core/graph/scope.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/runtime/session.h>

namespace kolo::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Nanoseconds = std::chrono::duration<double, std::nano>;

constexpr int kExecutorWarmUp = 120;  // after some 95 a trivial kernel counts as inexpensive
constexpr int kFewestSteps = 5;
constexpr double kNodeMicroseconds = 20;

// Ops of the bench alone: no pass knows them. y = x + 1, after so many rounds of arithmetic.
const RegisterOp node_op(
    OpSchema("BenchNode").input("x", {DType::f32}).required_attr("rounds", 0).output("y").stateful());
const RegisterOp join_op(OpSchema("BenchJoin")
                             .variadic("values", {DType::f32})
                             .output("sum")
                             .shape([](ShapeContext& c) { c.set_output(0, Shape()); })
                             .stateful());

// Never inlined: what is calibrated is to be the code that the nodes run.
[[gnu::noinline]] std::uint32_t work(std::int64_t rounds) {
  std::uint32_t state = 1;
  for (std::int64_t i = 0; i < rounds; ++i) state = state * 1664525 + 1013904223;
  return state;
}

class BenchNodeKernel final : public Kernel {
 public:
  explicit BenchNodeKernel(std::int64_t rounds) : rounds_(rounds) {}
  void compute(KernelContext& context) override {
    // Never true: the arithmetic is to be done all the same.
    if (rounds_ > 0 && work(rounds_) == 0) throw InternalError("a generator gave its one impossible number");
    *context.output(0).data<float>() = *context.input(0).data<float>() + 1;
  }

 private:
  std::int64_t rounds_;
};

const RegisterKernel node_kernel("BenchNode", "CPU", {DType::f32}, KernelFactory([](KernelInit& init) {
                                   return std::make_unique<BenchNodeKernel>(
                                       init.attr<std::int64_t>("rounds"));
                                 }));
const RegisterKernel join_kernel("BenchJoin", "CPU", {DType::f32}, [](KernelContext& context) {
  float sum = 0;
  for (int i = 0; i < context.num_inputs(); ++i) sum += *context.input(i).data<float>();
  *context.output(0).data<float>() = sum;
});

// Rounds that take so long on this machine, by the fastest of some tries.
std::int64_t rounds_for(double microseconds) {
  constexpr std::int64_t kRounds = 200000;
  double best = INFINITY;
  for (int i = 0; i < 20; ++i) {
    const auto start = Clock::now();
    if (work(kRounds) == 0) return 0;
    best = std::min(best, Nanoseconds(Clock::now() - start).count());
  }
  return static_cast<std::int64_t>(microseconds * 1e3 * kRounds / best);
}

// What no executor can do without: for each node a counter that goes down and a call through a pointer.
double machine_ns_per_node(int nodes) {
  struct Item {
    std::atomic<int> pending{0};
    std::unique_ptr<Kernel> kernel;
    KernelContext context;
  };
  std::vector<Item> items(static_cast<std::size_t>(nodes));
  std::vector<Tensor> values;
  for (int i = 0; i <= nodes; ++i) values.push_back(Tensor::scalar(0.0f));
  std::vector<const Tensor*> inputs;
  for (int i = 0; i < nodes; ++i) inputs.push_back(&values[static_cast<std::size_t>(i)]);
  for (std::size_t i = 0; i < items.size(); ++i) {
    items[i].kernel = std::make_unique<BenchNodeKernel>(0);
    items[i].context.inputs = {&inputs[i], 1};
    items[i].context.outputs = {&values[i + 1], 1};
  }
  std::vector<double> times;
  for (int step = 0; step < 200; ++step) {
    for (Item& item : items) item.pending = 1;
    const auto start = Clock::now();
    for (Item& item : items)
      if (item.pending.fetch_sub(1, std::memory_order_acq_rel) == 1) item.kernel->compute(item.context);
    times.push_back(Nanoseconds(Clock::now() - start).count() / nodes);
  }
  return median(times);
}

struct Row {
  std::string graph;
  double node_us = 0;
  int threads = 0;
  double ns_per_node = 0;
  double compile_ms = 0;
};

// One graph on one session; steps are measured in turns with those of the other rows.
class Measurement {
 public:
  Measurement(const std::string& kind, int nodes, double node_us, std::int64_t rounds, int threads)
      : row_{.graph = kind, .node_us = node_us, .threads = threads}, nodes_(nodes) {
    const Scope s(graph_);
    const auto node = [&](Output x) { return Output(s.add("BenchNode", {x}, {{"rounds", rounds}})); };
    Output y = constant(s, 0.0f);
    if (kind == "chain") {
      for (int i = 0; i < nodes; ++i) y = node(y);
      expected_ = static_cast<float>(nodes);
    } else {
      const Output root = node(y);
      Outputs values;
      for (int i = 0; i < nodes; ++i) values.push_back(node(root));
      y = s.add("BenchJoin", values);
      expected_ = static_cast<float>(2 * nodes);
    }
    session_ = std::make_unique<Session>(graph_, SessionConfig{.intra_op_parallelism_threads = 1,
                                                               .inter_op_parallelism_threads = threads,
                                                               .use_per_session_threads = true});
    callable_ = std::make_unique<Callable>(session_->make_callable({.fetches = {y}}));
    row_.compile_ms = step() * nodes / 1e6;
    const int warm_up = node_us > 0 ? 2 : kExecutorWarmUp;
    for (int i = 0; i < warm_up; ++i) step();
  }

  void add_step() {
    times_.push_back(step());
    seconds_ += times_.back() * nodes_ / 1e9;
  }
  bool is_done(double seconds) const {
    return seconds_ >= seconds && times_.size() >= static_cast<std::size_t>(kFewestSteps);
  }
  Row row() const {
    Row row = row_;
    row.ns_per_node = median(times_);
    return row;
  }

 private:
  // Time for each node, in ns.
  double step() {
    const auto start = Clock::now();
    callable_->run({}, {&result_, 1});
    const double time = Nanoseconds(Clock::now() - start).count();
    if (result_.value<float>() != expected_)
      throw InternalError("{} of {} nodes gave {}, not {}", row_.graph, nodes_, result_.value<float>(),
                          expected_);
    return time / nodes_;
  }

  Row row_;
  int nodes_;
  float expected_ = 0;
  Graph graph_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Callable> callable_;
  Tensor result_;
  std::vector<double> times_;
  double seconds_ = 0;
};

void print(const Row& row, int nodes, double machine_ns, bool json) {
  if (json)
    fmt::print("{}\n", json_text(nlohmann::ordered_json{{"graph", row.graph},
                                                        {"nodes", nodes},
                                                        {"threads", row.threads},
                                                        {"node_us", row.node_us},
                                                        {"ns_per_node", rounded(row.ns_per_node, 1)},
                                                        {"machine_ns_per_node", rounded(machine_ns, 1)},
                                                        {"compile_ms", rounded(row.compile_ms, 1)}}));
  else
    fmt::print(
        "{:<6} {} nodes of {:>2} us  {} threads  {:9.1f} ns/node  (decrement and call alone {:.1f} ns)  "
        "compiled and run once in {:.0f} ms\n",
        row.graph, nodes, row.node_us, row.threads, row.ns_per_node, machine_ns, row.compile_ms);
  std::fflush(stdout);
}

}  // namespace

void executor_bench(const ExecutorBenchOptions& options) {
  const std::int64_t rounds = rounds_for(kNodeMicroseconds);
  const double machine_ns = machine_ns_per_node(options.nodes);
  const std::pair<std::string, double> graphs[] = {{"chain", 0}, {"wide", 0}, {"wide", kNodeMicroseconds}};
  for (const auto& [kind, node_us] : graphs) {
    std::vector<std::unique_ptr<Measurement>> measurements;
    for (const int threads : options.threads)
      measurements.push_back(
          std::make_unique<Measurement>(kind, options.nodes, node_us, node_us > 0 ? rounds : 0, threads));
    for (bool any = true; any;) {
      any = false;
      for (const auto& measurement : measurements) {
        if (measurement->is_done(options.seconds)) continue;
        measurement->add_step();
        any = true;
      }
    }
    for (const auto& measurement : measurements)
      if (process().rank == 0) print(measurement->row(), options.nodes, machine_ns, options.json);
  }
}

}  // namespace kolo::bench
