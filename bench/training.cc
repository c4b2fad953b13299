#include <bench/training.h>

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include <bench/made_up_batch.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/median.h>
#include <kolo/core/base/process.h>
#include <kolo/core/base/text.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/losses.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/feed_memory.h>
#include <kolo/core/runtime/group.h>
#include <kolo/core/runtime/session_state.h>
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

Tensor copy_for_feeding(const Tensor& made_up, Session& session) {
  Tensor copy(made_up.dtype(), made_up.shape(), feed_memory(session));
  copy.copy_from(made_up);
  return copy;
}

GpuCounts counts_so_far(bool computes_on_gpu) {
  const auto platform = computes_on_gpu ? gpu_platform({}) : nullptr;
  return platform != nullptr ? platform->counts().value_or(GpuCounts{}) : GpuCounts{};
}

SessionConfig config_of(const TrainBenchOptions& options) {
  SessionConfig config;
  config.intra_op_parallelism_threads = config.inter_op_parallelism_threads = options.threads;
  config.graph_options.precision = options.precision;
  if (options.device == TrainBenchOptions::Device::cpu) config.device_count["GPU"] = 0;
  if (options.optimizer_level == 0) config.graph_options.optimizer_level = OptimizerLevel::l0;
  return config;
}

}  // namespace

Training::Training(const std::string& name, const TrainBenchOptions& options, bool reduces)
    : name_(name), precision_(precision_name(options.precision)), steps_(options.steps) {
  models::Model model = models::find_model(name);
  if (options.context) model.sample = {*options.context};
  if (options.side) model.sample = {model.sample.dim(0), *options.side, *options.side};
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
  session_.emplace(graph_,
                   MonitoredTrainingSessionOptions{.config = config_of(options), .hooks = {overlap_}});
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
  const std::int64_t counted = steps_ > 0 ? std::min<std::int64_t>(steps_, 50) : 50;
  const double loss_of_timed_steps = last_loss_;
  timed_step();
  counts_ = true;
  const GpuCounts before = *platform->counts();
  for (std::int64_t i = 0; i < counted; ++i) timed_step();
  const GpuCounts after = *platform->counts();
  counts_ = false;
  last_loss_ = loss_of_timed_steps;
  const auto a_step = [&](std::int64_t GpuCounts::*count) {
    return static_cast<double>(after.*count - before.*count) / static_cast<double>(counted);
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

RunMetadata Training::traced_step() {
  RunMetadata metadata;
  session_->run(fetches_, feeds_[next_feeds_], RunOptions{.trace_level = TraceLevel::full_trace}, &metadata);
  next_feeds_ = 1 - next_feeds_;
  return metadata;
}

}  // namespace kolo::bench
