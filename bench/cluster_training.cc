// kolo-bench cluster: training on parameter servers.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <optional>

#include <nlohmann/json.hpp>

#include <bench/cluster_bench_internal.h>
#include <bench/cluster_tasks.h>
#include <bench/made_up_batch.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/json_text.h>
#include <kolo/core/base/median.h>
#include <kolo/core/cluster/device_setter.h>
#include <kolo/core/cluster/server.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/losses.h>
#include <kolo/core/training/monitored_session.h>
#include <kolo/models/models.h>
#include <kolo/optimizer/rules.h>
#include <kolo/optimizer/sync_replicas_optimizer.h>

namespace kolo::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kWarmUpSteps = 10;
constexpr int kOwnSteps = 20;
constexpr double kLearningRate = 0.01;
constexpr char kWarm[] = "warm";

struct Step {
  Output images, labels, loss;
  Feeds feeds;
};

// As kolo-bench train has it: the same model, batch and samples.
Step make_step(Scope& s, const std::string& name) {
  const models::Model& model = models::find_model(name);
  const MadeUpBatch batch = made_up_batch(model);
  Step step;
  step.images = placeholder(s, batch.samples.dtype(), batch.samples.shape());
  step.labels = placeholder(s, DType::i32, batch.labels.shape());
  step.loss = softmax_cross_entropy(s, model.build(s, step.images), step.labels);
  step.feeds = {{step.images, batch.samples}, {step.labels, batch.labels}};
  return step;
}

std::vector<double> time_steps(int steps, const std::function<void()>& step) {
  std::vector<double> us;
  for (int i = 0; i < steps; ++i) {
    const auto start = Clock::now();
    step();
    us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  return us;
}

SessionConfig config_of(const ClusterBenchOptions& options) {
  SessionConfig config;
  config.intra_op_parallelism_threads = config.inter_op_parallelism_threads = options.threads;
  return config;
}

// The same step in this process alone, while the other workers do the same.
std::vector<double> own_steps(const ClusterBenchOptions& options) {
  Graph graph;
  graph.set_seed(1);
  Scope s(graph);
  const Step step = make_step(s, options.model);
  const Operation train_op = GradientDescentOptimizer(kLearningRate).minimize(s, step.loss);
  MonitoredTrainingSession session(graph, {.config = config_of(options)});
  const auto run = [&] { session.run({step.loss, train_op}, step.feeds); };
  time_steps(kWarmUpSteps, run);
  return time_steps(kOwnSteps, run);
}

struct Found {
  double us = 0, min_us = 0, own_us = 0;
  std::int64_t bytes = 0;  // of the variables
};

Found found_of(const std::string& line) {
  const auto row = nlohmann::json::parse(line);
  return {
      .us = row.at("us"), .min_us = row.at("min_us"), .own_us = row.at("own_us"), .bytes = row.at("bytes")};
}

void print_table_row(const ClusterBenchOptions& options, bool sync, int servers,
                     const std::vector<Found>& workers, std::int64_t resident, std::int64_t growth) {
  std::vector<double> us, own;
  double least = workers.front().min_us;
  for (const Found& worker : workers) {
    us.push_back(worker.us);
    own.push_back(worker.own_us);
    least = std::min(least, worker.min_us);
  }
  const char* const what = sync ? "sync" : "async";
  const double mib = 0x1p-20;
  if (options.json)
    fmt::print("{}\n", json_text(nlohmann::ordered_json{
                           {"peer", "kolo"},
                           {"what", what},
                           {"model", options.model},
                           {"workers", workers.size()},
                           {"servers", servers},
                           {"bytes", workers.front().bytes},
                           {"us", median(us)},
                           {"min_us", least},
                           {"own_us", median(own)},
                           {"server_mib", rounded(static_cast<double>(resident) * mib, 1)},
                           {"growth_mib", rounded(static_cast<double>(growth) * mib, 1)}}));
  else
    fmt::print(
        "{:<5} {} {} workers x {} servers  {:>8.2f} ms (min {:.2f})  computing alone {:.2f} ms  servers "
        "{:.1f} MiB "
        "({:+.1f} while training)\n",
        what, options.model, workers.size(), servers, median(us) / 1e3, least / 1e3, median(own) / 1e3,
        static_cast<double>(resident) * mib, static_cast<double>(growth) * mib);
  std::fflush(stdout);
}

void measure_table_row(const ClusterBenchOptions& options, bool sync, int num_servers, int num_workers) {
  const ClusterSpec cluster = loopback_cluster(num_servers, num_workers);
  const std::vector<TaskProcess> servers = start_servers(cluster);
  std::vector<TaskProcess> workers;
  for (int i = 0; i < num_workers; ++i)
    workers.emplace_back("kolo-bench",
                         std::vector<std::string>{
                             "cluster", "--json", "--cluster", cluster.to_json(), "--task", std::to_string(i),
                             "--what", sync ? "sync" : "async", "--model", options.model, "--steps",
                             std::to_string(options.steps), "--threads", std::to_string(options.threads)});
  const auto resident = [&] {
    std::int64_t bytes = 0;
    for (const TaskProcess& server : servers) bytes += server.resident_bytes();
    return bytes;
  };
  std::vector<Found> found;
  std::int64_t warm = 0, end = 0;
  for (TaskProcess& worker : workers) {
    std::optional<Found> times;
    for (std::string line; worker.next_line(line);) {
      if (line == kWarm) {
        if (warm == 0) warm = resident();
        continue;
      }
      times = found_of(line);
      if (end == 0) end = resident();
    }
    const int code = worker.wait();
    if (code != 0 || !times) throw InternalError("a worker of kolo-bench cluster ended with code {}", code);
    found.push_back(*times);
  }
  print_table_row(options, sync, num_servers, found, end, end - warm);
}

// Of the steps after the warm-up, until the session stops.
std::vector<double> time_until_the_end(MonitoredTrainingSession& session, const std::function<void()>& run) {
  std::vector<double> us;
  try {
    for (int step_of_worker = 0; !session.should_stop(); ++step_of_worker) {
      if (step_of_worker == kWarmUpSteps) {
        fmt::print("{}\n", kWarm);
        std::fflush(stdout);
      }
      const double took = time_steps(1, run).front();
      if (step_of_worker >= kWarmUpSteps && !session.should_stop()) us.push_back(took);
    }
  } catch (const OutOfRangeError&) {
    // The chief has ended while this worker waited for its token.
  }
  return us;
}

// What found_of() reads.
void print_worker_row(const ClusterBenchOptions& options, bool sync, std::int64_t bytes,
                      const std::vector<double>& us, const std::vector<double>& own) {
  fmt::print("{}\n",
             json_text(nlohmann::ordered_json{{"peer", "kolo"},
                                              {"what", sync ? "sync" : "async"},
                                              {"model", options.model},
                                              {"bytes", bytes},
                                              {"us", rounded(median(us), 1)},
                                              {"min_us", rounded(*std::min_element(us.begin(), us.end()), 1)},
                                              {"own_us", rounded(median(own), 1)}}));
  std::fflush(stdout);
}

}  // namespace

void train_as_worker(const ClusterBenchOptions& options, bool sync) {
  const std::vector<double> own = own_steps(options);
  const ClusterSpec cluster = cluster_of(options);
  const std::string task = fmt::format("/job:worker/task:{}", options.task);
  const Server server(cluster,
                      {.job_name = "worker", .task_index = options.task, .config = config_of(options)});
  Graph graph;
  graph.set_seed(1);
  Scope s = Scope(graph).device(
      replica_device_setter({.worker_device = task,
                             .cluster = cluster,
                             .ps_strategy = GreedyLoadBalancing(cluster.num_tasks("ps"))}));
  const Step step = make_step(s, options.model);
  const Variable global_step = get_or_create_global_step(s);
  std::int64_t bytes = 0;
  for (const Variable& variable : trainable_variables(graph)) bytes += variable.shape().elements() * 4;

  MonitoredTrainingSessionOptions monitored;
  monitored.config.device_filters = {"/job:ps", task};
  monitored.master = server.target();
  monitored.is_chief = options.task == 0;
  monitored.recovery_wait_secs = 0.1;
  auto inner = std::make_unique<GradientDescentOptimizer>(kLearningRate);
  Operation train_op;
  if (sync) {
    SyncReplicasOptimizer optimizer(std::move(inner), cluster.num_tasks("worker"));
    train_op = optimizer.minimize(s, step.loss, {.global_step = global_step});
    monitored.hooks.push_back(optimizer.make_session_run_hook(monitored.is_chief));
  } else {
    train_op = inner->minimize(s, step.loss, {.global_step = global_step});
  }
  // Which worker takes which token is not settled: all end by the global step, not by their own count.
  const int last_step = (kWarmUpSteps + options.steps) * (sync ? 1 : cluster.num_tasks("worker"));
  monitored.hooks.push_back(std::make_shared<StopAtStepHook>(last_step));
  MonitoredTrainingSession session(graph, monitored);
  const auto run = [&] { session.run({step.loss, train_op}, step.feeds); };
  const std::vector<double> us = time_until_the_end(session, run);
  if (us.empty()) throw InternalError("worker {} had no step to time; give more --steps", options.task);
  print_worker_row(options, sync, bytes, us, own);
  session.close();
}

void training_table(const ClusterBenchOptions& options, bool sync) {
  for (const int workers : options.workers)
    for (const int servers : options.servers) measure_table_row(options, sync, servers, workers);
}

}  // namespace kolo::bench
