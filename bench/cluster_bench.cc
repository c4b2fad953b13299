#include <bench/cluster_bench.h>

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>

#include <nlohmann/json.hpp>

#include <bench/cluster_bench_internal.h>
#include <bench/cluster_tasks.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/json_text.h>
#include <kolo/core/base/median.h>
#include <kolo/core/base/process.h>
#include <kolo/core/cluster/device_setter.h>
#include <kolo/core/cluster/server.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/partitioned_variables.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>

namespace kolo::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kWarmUpRuns = 12;
constexpr std::size_t kLeastRuns = 10;
constexpr std::int64_t kSizes[] = {4, 4 << 10, 64 << 10, 1 << 20, 64 << 20};
constexpr std::int64_t kExchanged = 32 << 20;
constexpr char kServer[] = "/job:ps/task:0";

double us_of(const std::function<void()>& run) {
  const auto start = Clock::now();
  run();
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

void print_row(const char* what, std::int64_t bytes, std::vector<double> us, bool json) {
  const double middle = median(us), least = *std::min_element(us.begin(), us.end());
  const double rate = static_cast<double>(bytes) / middle / 1e3;
  if (json)
    fmt::print("{}\n", json_text(nlohmann::ordered_json{{"peer", "kolo"},
                                                        {"what", what},
                                                        {"bytes", bytes},
                                                        {"us", rounded(middle, 1)},
                                                        {"min_us", rounded(least, 1)},
                                                        {"GBps", rounded(rate, 3)}}));
  else
    fmt::print("{:<6} {:>9} bytes  {:>10.1f} us (min {:.1f})  {:>7.3f} GB/s\n", what, bytes, middle, least,
               rate);
  std::fflush(stdout);
}

// Steps of this process's own server, parts of which run on the first parameter server.
class Steps {
 public:
  Steps(const std::string& target, const std::string& own, const ClusterBenchOptions& options)
      : options_(options), target_(target), own_(own) {
    config_.device_filters = {"/job:ps", own};
    config_.operation_timeout_in_ms = 60'000;
  }

  void calls() {
    Graph graph;
    const Scope s(graph);
    const Operation nothing = no_op(s.device(kServer));
    Session session(graph, target_, config_);
    measure("empty", 0, [&] { session.run(nothing); });
  }

  // pull: a variable, to a reader here. push: a value from here, to a reader there.
  void transfers() {
    for (const std::int64_t bytes : kSizes) {
      const Shape shape = {bytes / 4};
      Graph graph;
      const Scope s(graph), there = s.device(kServer), here = s.device(own_);
      const Variable variable(there.named(fmt::format("v{}", bytes)), fill(there, DType::f32, shape, 3));
      const Output read = identity(here, variable);
      const Output given = placeholder(s, DType::f32, shape);
      const Output taken = identity(there, given);
      Tensor value(DType::f32, shape);
      for (float& element : value.span<float>()) element = static_cast<float>(&element - value.data<float>());
      Session session(graph, target_, config_);
      session.run(variable.initializer());
      measure("pull", bytes, [&] { session.run(Operation{read.node}); });
      check(session.run(read), [](std::size_t) { return 3.0f; });
      const Feeds feeds = {{given, value}};
      measure("push", bytes, [&] { session.run(Operation{taken.node}, feeds); });
      check(session.run(taken, feeds), [](std::size_t i) { return static_cast<float>(i); });
    }
  }

  // A variable of which each server has an equal part comes here, and as many bytes go to the servers, in one
  // run.
  void exchange(const ClusterSpec& cluster) {
    const int servers = cluster.num_tasks("ps");
    Graph graph;
    const Scope s(graph), here = s.device(own_);
    const PartitionedVariable variable = partitioned_variable(
        s.device(replica_device_setter({.worker_device = own_, .cluster = cluster})).named("exchanged"),
        {kExchanged / 4}, [](const Scope& in, const Shape& part) { return fill(in, DType::f32, part, 3); },
        fixed_size(servers));
    Feeds feeds;
    Targets run;
    for (const Variable& part : variable.parts()) {
      const Output given = placeholder(here, DType::f32, part.shape());
      run.push_back(Operation{identity(here, part).node});
      run.push_back(Operation{identity(s.colocate_with(Operation{part.ref().node}), given).node});
      feeds.emplace_back(given, Tensor::zeros(DType::f32, part.shape()));
    }
    Session session(graph, target_, config_);
    for (const Variable& part : variable.parts()) session.run(part.initializer());
    measure("exchange", kExchanged, [&] { session.run(run, feeds); });
  }

 private:
  void measure(const char* what, std::int64_t bytes, const std::function<void()>& run) {
    for (int i = 0; i < kWarmUpRuns; ++i) run();
    std::vector<double> us;
    const auto end = Clock::now() + std::chrono::duration<double>(options_.seconds);
    while (us.size() < kLeastRuns || Clock::now() < end) us.push_back(us_of(run));
    print_row(what, bytes, std::move(us), options_.json);
  }
  static void check(const Tensor& found, const std::function<float(std::size_t)>& expected) {
    const auto values = found.span<float>();
    for (std::size_t i = 0; i < values.size(); ++i)
      if (values[i] != expected(i))
        throw InternalError("element {} of {} came as {}", i, values.size(), values[i]);
  }

  const ClusterBenchOptions options_;
  const std::string target_, own_;
  SessionConfig config_;
};

bool wants(const ClusterBenchOptions& options, const char* what) {
  return std::find(options.what.begin(), options.what.end(), what) != options.what.end();
}

void measure_steps(const ClusterBenchOptions& options, const ClusterSpec& cluster) {
  const Server server(cluster, {.job_name = "worker", .task_index = options.task});
  Steps steps(server.target(), fmt::format("/job:worker/task:{}", options.task), options);
  if (wants(options, "calls")) steps.calls();
  if (wants(options, "transfers")) steps.transfers();
  if (wants(options, "exchange")) steps.exchange(cluster);
}

}  // namespace

ClusterSpec cluster_of(const ClusterBenchOptions& options) {
  return options.cluster.starts_with("{") ? ClusterSpec::from_json(options.cluster)
                                          : ClusterSpec::from_text(options.cluster);
}

void cluster_bench(const ClusterBenchOptions& options) {
  if (process().size > 1)
    throw InvalidArgumentError("kolo-bench cluster starts its tasks itself; run it without mpirun");
  if (wants(options, "calls") || wants(options, "transfers") || wants(options, "exchange")) {
    if (!options.cluster.empty()) {
      measure_steps(options, cluster_of(options));
    } else {
      const ClusterSpec cluster = loopback_cluster(1, 1);
      const std::vector<TaskProcess> servers = start_servers(cluster);
      measure_steps(options, cluster);
    }
  }
  for (const bool sync : {false, true}) {
    if (!wants(options, sync ? "sync" : "async")) continue;
    if (options.cluster.empty()) training_table(options, sync);
    else train_as_worker(options, sync);
  }
}

}  // namespace kolo::bench
