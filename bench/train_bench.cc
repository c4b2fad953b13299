#include <bench/train_bench.h>

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>

#include <bench/made_up_batch.h>
#include <bench/median.h>
#include <bench/peer.h>
#include <kolo/collectives/schedule/gradient_buckets.h>
#include <kolo/collectives/schedule/schedule.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/json_text.h>
#include <kolo/core/base/process.h>
#include <kolo/core/base/text.h>
#include <kolo/core/device/gpu_platform.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/losses.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/group.h>
#include <kolo/core/runtime/session_state.h>
#include <kolo/core/training/monitored_session.h>
#include <kolo/models/layers.h>
#include <kolo/models/models.h>
#include <kolo/optimizer/distributed_optimizer.h>
#include <kolo/optimizer/registry.h>

namespace kolo::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;
constexpr int kTrainWarmUp = 10;
constexpr int kTracedSteps = 40;  // after the timed ones, on several ranks

// As many as all ranks have time for: rank 0's watch decides.
std::int64_t steps_for(double seconds, double ms_per_step) {
  const auto wanted = static_cast<std::int64_t>(std::lround(seconds * 1e3 / ms_per_step));
  return parse_int64(world_group().broadcast(std::to_string(std::max<std::int64_t>(8, wanted)), 0)).value();
}

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

// Medians over the steps, the means of these over the ranks. Collective.
Reductions reductions_of(const std::vector<ReductionOverlap>& steps, Session& session) {
  std::vector<double> ms, shares;
  for (const ReductionOverlap& step : steps) {
    ms.push_back(Milliseconds(step.reducing).count());
    shares.push_back(step.hidden_share());
  }
  Reductions all;
  for (const std::string& text : world_group().allgather(fmt::format("{} {}", median(ms), median(shares)))) {
    const auto space = text.find(' ');
    all.ms += parse_double(text.substr(0, space)).value() / process().size;
    all.hidden_share += parse_double(text.substr(space + 1)).value() / process().size;
  }
  for (const auto& vote : detail::state_of(session).votes())
    if (const auto* schedule = dynamic_cast<const Schedule*>(vote.get()))
      all.extra_exchanges += schedule->extra_exchanges();
  return all;
}

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

std::string name_of_precision(const TrainBenchOptions& options) {
  return options.precision == Precision::bf16 ? "bf16" : options.allow_tf32 ? "tf32" : "f32";
}

// Of the session's GPU, or the host's own.
Tensor copy_for_feeding(const Tensor& made_up, Session& session) {
  for (const auto& device : detail::state_of(session).devices().devices())
    if (device->type() == "GPU") {
      Tensor copy(made_up.dtype(), made_up.shape(), device->host_allocator());
      copy.copy_from(made_up);
      return copy;
    }
  return made_up;
}

GpuCounts counts_so_far(bool computes_on_gpu) {
  const auto platform = computes_on_gpu ? gpu_platform({}) : nullptr;
  return platform != nullptr ? platform->counts().value_or(GpuCounts{}) : GpuCounts{};
}

Training::Training(const std::string& name, const TrainBenchOptions& options, bool reduces)
    : name_(name), precision_(name_of_precision(options)), steps_(options.steps) {
  models::Model model = models::find_model(name);
  if (options.context) model.sample = {*options.context};
  if (options.size.classes > 0) model.classes = options.size.classes;
  const MadeUpBatch made_up = made_up_batch(model, options.batch);
  batch_ = made_up.size;
  graph_.set_seed(1);
  Scope s(graph_);
  const Output samples = options.feeds ? placeholder(s, model.input, made_up.samples.shape())
                                       : constant(s, made_up.samples),
               labels = options.feeds ? placeholder(s, DType::i32, made_up.labels.shape())
                                      : constant(s, made_up.labels);
  loss_ = models::with_penalties(s, softmax_cross_entropy(s, model.build(s, samples, options.size), labels));
  for (const Variable& variable : trainable_variables(graph_)) params_ += variable.shape().elements();
  // vgg16, which has no norms, forgets its batch again at 0.01: on a GPU the loss was 334 after 60 steps.
  const OptimizerSettings settings{.learning_rate =
                                       options.optimizer == "momentum" && name != "vgg16" ? 0.01 : 0.001};
  auto rule = make_optimizer(options.optimizer, settings);
  const Operation update =
      reduces ? DistributedOptimizer(std::move(rule), {.sharded = options.sharded}).minimize(s, loss_)
              : rule->minimize(s, loss_);
  if (options.fetches) fetches_.emplace_back(loss_);
  fetches_.emplace_back(update);
  start_ = global_variables_initializer(s);

  SessionConfig config;
  config.intra_op_parallelism_threads = config.inter_op_parallelism_threads = options.threads;
  config.graph_options.precision = options.precision;
  config.gpu_options.allow_tf32 = options.allow_tf32;
  if (options.device == TrainBenchOptions::Device::cpu) config.device_count["GPU"] = 0;
  if (options.optimizer_level == 0) config.graph_options.optimizer_level = OptimizerLevel::l0;
  session_.emplace(graph_, MonitoredTrainingSessionOptions{.config = config, .hooks = {overlap_}});
  threads_ = session_->session().intra_op_threads();
  for (const auto& device : detail::state_of(session_->session()).devices().devices())
    computes_on_gpu_ = computes_on_gpu_ || device->type() == "GPU";
  if (options.device == TrainBenchOptions::Device::gpu && !computes_on_gpu_)
    throw FailedPreconditionError("--device gpu was asked for, but this process sees no GPU");
  for (int batch = 0; batch < 2; ++batch) {
    Feeds feeds;
    if (options.feeds)
      feeds = {{samples, copy_for_feeding(made_up.samples, session_->session())},
               {labels, copy_for_feeding(made_up.labels, session_->session())}};
    feeds_.push_back(std::move(feeds));
  }
  timed_step();
  // About that of a network that knows nothing, where nobody fetches it.
  first_loss_ = options.fetches ? last_loss_ : 1.2 * std::log(static_cast<double>(model.classes));
  std::vector<double> warming_up;
  for (int i = 0; i < kTrainWarmUp; ++i) warming_up.push_back(timed_step());
  expected_ms_ = median(warming_up);
}

// What is timed must be training: on one batch the loss falls.
void Training::check_loss() {
  if (fetches_.size() == 1) last_loss_ = session_->session().run(loss_, feeds_[0]).value<float>();
  if (!(last_loss_ < first_loss_))
    throw InternalError("{}: the loss went from {} to {}", name_, first_loss_, last_loss_);
}

double Training::timed_step() {
  const auto start = Clock::now();
  const std::vector<Tensor> results = session_->run(fetches_, feeds_[next_feeds_]);
  if (results.size() > 1) last_loss_ = results[0].value<float>();
  const double took = Milliseconds(Clock::now() - start).count();
  next_feeds_ = 1 - next_feeds_;
  if (counts_) host_ms_.push_back(Milliseconds(counts_so_far(computes_on_gpu_).given - start).count());
  return took;
}

double Training::run(double seconds) {
  std::vector<double> times;
  // A network that knows its one batch by heart has gradients so small (denormal) that CPUs compute with them
  // several times slower: mlp after some 1,500 steps. It begins anew before that.
  constexpr std::int64_t kMostSteps = 500, kFewest = 20;
  const std::int64_t count = steps_ > 0 ? steps_ : steps_for(seconds, expected_ms_);
  for (std::int64_t i = 0; i < count; ++i) {
    if (i % kMostSteps == 0 && count - i >= kFewest) session_->run({start_}, {});
    times.push_back(timed_step());
  }
  times_.insert(times_.end(), times.begin(), times.end());
  return expected_ms_ = median(times);
}

// Of some more steps, so that counting is no part of the timed ones' time.
std::optional<Training::GpuFigures> Training::gpu_figures() {
  const auto platform = computes_on_gpu_ ? gpu_platform({}) : nullptr;
  if (platform == nullptr || !platform->counts()) return std::nullopt;
  constexpr int kCountedSteps = 50;
  const double loss_of_timed_steps = last_loss_;
  timed_step();
  counts_ = true;
  const GpuCounts before = *platform->counts();
  for (int i = 0; i < kCountedSteps; ++i) timed_step();
  const GpuCounts after = *platform->counts();
  counts_ = false;
  last_loss_ = loss_of_timed_steps;
  const auto a_step = [&](std::int64_t GpuCounts::*count) {
    return static_cast<double>(after.*count - before.*count) / kCountedSteps;
  };
  GpuFigures figures{.gpu_ms = (after.gpu_ms - before.gpu_ms) /
                               static_cast<double>(std::max<std::int64_t>(1, after.steps - before.steps)),
                     .host_ms = median(host_ms_),
                     .launches = a_step(&GpuCounts::launches),
                     .syncs = a_step(&GpuCounts::syncs),
                     .copies = a_step(&GpuCounts::copies),
                     .kept = after.kept};
  constexpr double kMib = 1 << 20;
  figures.peak_mib = static_cast<double>(after.peak_bytes) / kMib;
  RunMetadata metadata;
  session_->run(fetches_, feeds_[0], {}, &metadata);
  for (const DeviceMemory& memory : metadata.memory)
    if (memory.device.find("GPU") != std::string::npos)
      figures.plan_mib += static_cast<double>(memory.peak_bytes) / kMib;
  return figures;
}

std::vector<double> Training::times() const {
  std::vector<double> sorted = times_;
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

Reductions Training::reductions() {
  overlap_->watching = true;
  for (int i = 0; i < kTracedSteps; ++i) timed_step();
  return reductions_of(overlap_->steps, session_->session());
}

// What the ranks' numbers add up to. Collective.
double sum_of_ranks(double number) {
  double sum = 0;
  for (const std::string& text : world_group().allgather(fmt::format("{}", number)))
    sum += parse_double(text).value();
  return sum;
}

// Steps with and without reductions, round by round.
struct Apart {
  double ms = 0;  // of a step without: the median of the rounds', the mean of the ranks'
  std::vector<double> ratios = {};
};

// Collective.
Apart measure_apart(Training& kolo, const TrainBenchOptions& options) {
  Training alone(kolo.name(), options, false);
  std::vector<double> ms;
  Apart apart;
  // Each run begins with what its ranks agree on, and each round ends with what all of them tell.
  for (int round = 0; round < options.rounds; ++round) {
    double kolo_ms = 0, alone_ms = 0;
    const auto of_kolo = [&] { kolo_ms = kolo.run(options.seconds); };
    if (round % 2 == 0) of_kolo();
    alone_ms = alone.run(options.seconds);
    if (round % 2 == 1) of_kolo();
    apart.ratios.push_back(sum_of_ranks(1 / kolo_ms) / sum_of_ranks(1 / alone_ms));
    ms.push_back(sum_of_ranks(alone_ms) / process().size);
  }
  alone.check_loss();
  apart.ms = median(ms);
  return apart;
}

// One peer beside kolo, round by round.
struct Comparison {
  std::string command = {};
  PeerRow row = {};  // the medians' median, the least minimum, the largest memory
  std::vector<double> ms = {}, ratios = {};
};

void compare(Comparison& with, const Training& kolo, double kolo_ms, double seconds) {
  const PeerRow row = run_peer(with.command, kolo.name(), seconds);
  if (process().rank != 0) return;
  const auto work = [](std::int64_t params, int ranks, int threads, std::int64_t batch) {
    return fmt::format("{} parameters on {} ranks x {} threads with batches of {}", params, ranks, threads,
                       batch);
  };
  const std::string own = work(kolo.params(), process().size, kolo.threads(), kolo.batch()),
                    others = work(row.params, row.ranks, row.threads, row.batch);
  if (row.model != kolo.name() || own != others)
    throw FailedPreconditionError(
        "--against: \"{}\" trained {}: {}; kolo trains {}: {}; both must be the same", with.command,
        row.model, others, kolo.name(), own);
  with.ms.push_back(row.ms);
  with.ratios.push_back(row.ms / kolo_ms);
  const double min_ms = with.ms.size() == 1 ? row.min_ms : std::min(with.row.min_ms, row.min_ms);
  const std::int64_t peak_mib = std::max(with.row.peak_mib, row.peak_mib);
  with.row = row;
  with.row.min_ms = min_ms;
  with.row.peak_mib = peak_mib;
}

double rounded_to(double value, double digits = 1e3) { return std::round(value * digits) / digits; }

void print(const Training& kolo, const Reductions& reductions, const std::optional<Training::GpuFigures>& gpu,
           const TrainBenchOptions& options) {
  const bool json = options.json;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const int ranks = process().size;
  const std::vector<double> times = kolo.times();
  const double median_ms = times[times.size() / 2], min_ms = times.front();
  const double rate = static_cast<double>(ranks * kolo.batch()) / median_ms * 1e3;
  const std::int64_t peak_mib = usage.ru_maxrss / 1024;
  if (json) {
    nlohmann::ordered_json line{{"model", kolo.name()},
                                {"params", kolo.params()},
                                {"ranks", ranks},
                                {"threads", kolo.threads()},
                                {"batch", kolo.batch()},
                                {"device", kolo.computes_on_gpu() ? "gpu" : "cpu"},
                                {"precision", kolo.precision()},
                                {"feed", options.feeds ? "host" : "none"},
                                {"fetch", options.fetches ? "each" : "never"},
                                {"ms", rounded_to(median_ms)},
                                {"min_ms", rounded_to(min_ms)},
                                {"samples_per_s", rounded_to(rate, 10)},
                                {"steps", times.size()},
                                {"loss", kolo.last_loss()},
                                {"peak_mib", peak_mib}};
    if (gpu) {
      line["gpu_ms"] = rounded_to(gpu->gpu_ms);
      line["host_ms"] = rounded_to(gpu->host_ms);
      line["launches"] = rounded_to(gpu->launches, 10);
      line["kept_nodes"] = gpu->kept;
      line["copies"] = rounded_to(gpu->copies, 10);
      line["syncs"] = rounded_to(gpu->syncs, 10);
      line["peak_gpu_mib"] = rounded_to(gpu->peak_mib, 10);
      line["plan_gpu_mib"] = rounded_to(gpu->plan_mib, 10);
    }
    if (ranks > 1) {
      line["reduce_ms"] = rounded_to(reductions.ms);
      line["hidden_share"] = rounded_to(reductions.hidden_share);
      line["extra_exchanges"] = reductions.extra_exchanges;
    }
    fmt::print("{}\n", json_text(line));
  } else {
    fmt::print(
        "{:<8} {:>9} parameters  {} ranks x {} threads  batch {:>3}  {:8.3f} ms (min {:.3f})  {:8.1f} "
        "samples/s  {} MiB",
        kolo.name(), kolo.params(), ranks, kolo.threads(), kolo.batch(), median_ms, min_ms, rate, peak_mib);
    if (ranks > 1)
      fmt::print("  reductions {:.3f} ms, {:.0f} % hidden", reductions.ms, 100 * reductions.hidden_share);
    fmt::print("\n");
  }
  std::fflush(stdout);
}

void print(const Comparison& peer, double kolo_ms, bool json) {
  const double ms = median(peer.ms), ratio = ms / kolo_ms;
  const auto [low, high] = std::minmax_element(peer.ratios.begin(), peer.ratios.end());
  if (json) {
    const nlohmann::ordered_json line{{"model", peer.row.model},
                                      {"peer", peer.command},
                                      {"ms", rounded_to(ms)},
                                      {"min_ms", rounded_to(peer.row.min_ms)},
                                      {"peak_mib", peer.row.peak_mib},
                                      {"rounds", peer.ratios.size()},
                                      {"ratio", rounded_to(ratio)},
                                      {"least_ratio", rounded_to(*low)},
                                      {"largest_ratio", rounded_to(*high)}};
    fmt::print("{}\n", json_text(line));
  } else {
    fmt::print(
        "{:<8} kolo is {:.2f} times as fast ({:.2f} to {:.2f} in {} rounds) as {:8.3f} ms (min {:.3f})  {} "
        "MiB  {}\n",
        peer.row.model, ratio, *low, *high, peer.ratios.size(), ms, peer.row.min_ms, peer.row.peak_mib,
        peer.command);
  }
  std::fflush(stdout);
}

void print(const Apart& apart, const Training& kolo, bool json) {
  const auto [low, high] = std::minmax_element(apart.ratios.begin(), apart.ratios.end());
  if (json) {
    const nlohmann::ordered_json line{{"model", kolo.name()},
                                      {"apart_ms", rounded_to(apart.ms)},
                                      {"rounds", apart.ratios.size()},
                                      {"ratio", rounded_to(median(apart.ratios))},
                                      {"least_ratio", rounded_to(*low)},
                                      {"largest_ratio", rounded_to(*high)}};
    fmt::print("{}\n", json_text(line));
  } else {
    fmt::print(
        "{:<8} the ranks are {:.3f} times as fast ({:.3f} to {:.3f} in {} rounds) as apart: {:8.3f} ms\n",
        kolo.name(), median(apart.ratios), *low, *high, apart.ratios.size(), apart.ms);
  }
  std::fflush(stdout);
}

void measure(const std::string& model, const TrainBenchOptions& options) {
  if (options.apart && process().size == 1)
    throw FailedPreconditionError("--apart holds several ranks beside themselves; this is a job of 1 rank");
  Training kolo(model, options);
  std::optional<Apart> apart;
  if (options.apart) apart = measure_apart(kolo, options);
  std::vector<Comparison> peers;
  for (const std::string& command : options.against) peers.push_back({.command = command});
  std::vector<double> medians;
  const int rounds = !peers.empty() ? options.rounds : apart ? 0 : 1;
  for (int round = 0; round < rounds; ++round) {
    medians.push_back(kolo.run(options.seconds));
    for (Comparison& peer : peers) compare(peer, kolo, medians.back(), options.seconds);
  }
  const Reductions reductions = process().size > 1 ? kolo.reductions() : Reductions{};
  const auto gpu = kolo.gpu_figures();
  kolo.check_loss();
  if (process().rank != 0) return;
  print(kolo, reductions, gpu, options);
  if (apart) print(*apart, kolo, options.json);
  for (const Comparison& peer : peers) print(peer, median(medians), options.json);
}

}  // namespace

void train_bench(const TrainBenchOptions& options) {
  for (const std::string& model : options.models) measure(model, options);
}

}  // namespace kolo::bench
