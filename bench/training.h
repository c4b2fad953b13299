// A model of the zoo that kolo-bench trains on one batch of made-up samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <kolo/collectives/schedule/gradient_buckets.h>
#include <kolo/collectives/schedule/schedule.h>
#include <kolo/core/device/gpu_platform.h>
#include <kolo/core/passes/graph_options.h>
#include <kolo/core/runtime/trace.h>
#include <kolo/core/training/monitored_session.h>
#include <kolo/models/models.h>

namespace kolo::bench {

struct TrainBenchOptions {
  enum class Device { any, cpu, gpu };  // any: GPUs where there are some

  std::vector<std::string> models;
  Device device = Device::any;
  bool feeds = true;       // a batch of the host's memory in each step; else it is the graph's own
  bool fetches = true;     // the loss in each step; else nothing
  models::ModelSize size;  // of models that let it be chosen
  std::optional<std::int64_t> context, side,
      batch;                // tokens of a sample, pixels of a picture's side, samples; none: the model's own
  int threads = 0;          // as kolo-train's --threads
  double seconds = 8;       // for each model and round, after warming up
  std::int64_t steps = 0;   // instead of `seconds`, where it is not 0
  int optimizer_level = 1;  // of the graph: 0 or 1
  Precision precision = Precision::f32;
  std::string optimizer = "momentum";
  bool sharded = false;              // DistributedOptimizerOptions::sharded
  std::vector<std::string> against;  // peers' commands, as run_peer (peer.h) takes them
  bool apart = false;                // also measures the same ranks' steps with nothing reduced
  int rounds = 5;                    // with peers or `apart`: each is measured so often, in turns
  bool json = false;
};

// Takes the overlap from the steps that it is told to watch.
class OverlapHook : public SessionRunHook {
 public:
  SessionRunArgs before_run(RunContext&) override {
    SessionRunArgs args;
    if (watching) args.options.trace_level = TraceLevel::full_trace;
    return args;
  }
  void after_run(RunContext&, const RunValues& values) override {
    if (watching) steps.push_back(reduction_overlap(*values.trace));
  }

  bool watching = false;
  std::vector<ReductionOverlap> steps;
};

struct Reductions {
  double ms = 0;            // of a step, all buckets
  double hidden_share = 0;  // of that
  std::int64_t extra_exchanges = 0;
};

// A model's training session, the batch that it trains on, and its steps' times so far.
class Training {
 public:
  /// reduces: else each rank trains for itself.
  Training(const std::string& name, const TrainBenchOptions& options, bool reduces = true);

  const std::string& name() const { return name_; }
  std::int64_t params() const { return params_; }
  std::int64_t batch() const { return batch_; }
  int threads() const { return threads_; }
  /// Of all timed steps, ascending.
  std::vector<double> times() const;

  /// As many steps as fit into `seconds`, at least 8. Returns their median time in milliseconds. Collective.
  double run(double seconds);
  /// One more step, with its trace and its kernels.
  RunMetadata traced_step();
  /// Traces some more steps. Collective.
  Reductions reductions();
  const std::string& precision() const { return precision_; }
  bool computes_on_gpu() const { return computes_on_gpu_; }
  double last_loss() const { return last_loss_; }
  /// Of a step, medians and means over the timed ones; nothing where nobody counts.
  struct GpuFigures {
    double gpu_ms = 0, host_ms = 0, launches = 0, syncs = 0, copies = 0;
    std::int64_t kept = 0;
    double peak_mib = 0, plan_mib = 0;
  };
  std::optional<GpuFigures> gpu_figures();
  /// Throws InternalError where the loss has not fallen. Behind all that is measured: it may take memory.
  void check_loss();

 private:
  double timed_step();

  std::string name_;
  std::int64_t batch_ = 0, params_ = 0;
  int threads_ = 0;
  Graph graph_;
  std::shared_ptr<OverlapHook> overlap_ = std::make_shared<OverlapHook>();
  std::optional<MonitoredTrainingSession> session_;
  std::string precision_;
  bool computes_on_gpu_ = false;
  std::vector<Fetch> fetches_;
  Output loss_;
  Operation start_;           // all variables as they were at first
  std::vector<Feeds> feeds_;  // of steps, in turns
  std::size_t next_feeds_ = 0;
  std::int64_t steps_ = 0;  // of each run; 0: as time allows
  bool counts_ = false;     // what GPUs are asked for, in the timed steps
  GpuCounts before_;
  std::vector<double> host_ms_;
  double first_loss_ = 0, last_loss_ = 0;
  double expected_ms_ = 0;
  std::vector<double> times_;
};

}  // namespace kolo::bench
