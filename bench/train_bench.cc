#include <bench/train_bench.h>

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include <nlohmann/json.hpp>

#include <kolo/collectives/schedule/overlap.h>
#include <kolo/collectives/schedule/schedule.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/process.h>
#include <kolo/core/base/text.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/losses.h>
#include <kolo/core/runtime/group.h>
#include <kolo/core/runtime/session_state.h>
#include <kolo/core/training/monitored_session.h>
#include <kolo/models/models.h>
#include <kolo/optimizer/distributed_optimizer.h>
#include <kolo/optimizer/registry.h>

namespace kolo::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;
constexpr int kWarmUpSteps = 10;
constexpr int kTracedSteps = 40;  // after the timed ones, on several ranks

std::int64_t batch_of(const std::string& model) {
  static const std::map<std::string, std::int64_t> others{
      {"mlp", 128}, {"resnet50", 8}, {"vgg16", 4}, {"gpt", 16}};
  const auto found = others.find(model);
  return found != others.end() ? found->second : 64;
}

// Any numbers do, as long as they are no special case for the arithmetic.
Tensor made_up_images(const Shape& shape) {
  Tensor images(DType::f32, shape);
  std::uint32_t state = 1;
  for (float& pixel : images.span<float>()) {
    state = state * 1664525 + 1013904223;
    pixel = static_cast<float>(state >> 8) * 0x1p-24f;
  }
  return images;
}

Tensor made_up_labels(std::int64_t batch, std::int64_t classes) {
  Tensor labels(DType::i32, {batch});
  for (std::int64_t i = 0; i < batch; ++i)
    labels.data<std::int32_t>()[i] = static_cast<std::int32_t>(i % classes);
  return labels;
}

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
    args.trace = watching;
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

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
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

struct Row {
  std::string model;
  std::int64_t params = 0, batch = 0, steps = 0;
  int threads = 0;
  double median_ms = 0, min_ms = 0;
  Reductions reductions = {};  // several ranks
};

Row measure(const std::string& name, const TrainBenchOptions& options) {
  const models::Model& model = models::find_model(name);
  Row row{.model = name, .batch = batch_of(name)};
  Graph graph;
  graph.set_seed(1);
  Scope s(graph);
  std::vector<std::int64_t> dims = model.sample.dims();
  dims.insert(dims.begin(), row.batch);
  const std::int64_t answers = row.batch * model.labels_per_sample();
  const Output samples = placeholder(s, model.input, Shape(dims)),
               labels = placeholder(s, DType::i32, {answers});
  const Output loss = softmax_cross_entropy(s, model.build(s, samples), labels);
  for (const Variable& variable : trainable_variables(graph)) row.params += variable.shape().elements();
  const OptimizerSettings settings{.learning_rate = options.optimizer == "momentum" ? 0.01 : 0.001};
  DistributedOptimizer optimizer(make_optimizer(options.optimizer, settings), {.sharded = options.sharded});
  const Operation train_op = optimizer.minimize(s, loss);

  SessionConfig config;
  config.intra_op_parallelism_threads = config.inter_op_parallelism_threads = options.threads;
  if (options.optimizer_level == 0) config.graph_options.optimizer_level = OptimizerLevel::l0;
  const auto overlap = std::make_shared<OverlapHook>();
  MonitoredTrainingSession session(graph, {.config = config, .hooks = {overlap}});
  row.threads = session.session().intra_op_threads();
  const Tensor made_up = model.input == DType::i32
                             ? made_up_labels(answers, model.classes).reshaped(Shape(dims))
                             : made_up_images(Shape(dims));
  const Feeds feeds = {{samples, made_up}, {labels, made_up_labels(answers, model.classes)}};
  double last_loss = 0;
  const auto timed_step = [&] {
    const auto start = Clock::now();
    last_loss = session.run({loss, train_op}, feeds)[0].value<float>();
    return Milliseconds(Clock::now() - start).count();
  };
  const double first_loss = (timed_step(), last_loss);
  std::vector<double> times;
  for (int i = 0; i < kWarmUpSteps; ++i) times.push_back(timed_step());
  std::nth_element(times.begin(), times.begin() + kWarmUpSteps / 2, times.end());
  row.steps = steps_for(options.seconds, times[kWarmUpSteps / 2]);
  times.clear();
  for (std::int64_t i = 0; i < row.steps; ++i) times.push_back(timed_step());
  // What is timed must be training: on one batch the loss falls.
  if (!(last_loss < first_loss))
    throw InternalError("{}: the loss went from {} to {}", name, first_loss, last_loss);
  std::sort(times.begin(), times.end());
  row.median_ms = times[times.size() / 2];
  row.min_ms = times.front();
  if (process().size > 1) {
    overlap->watching = true;
    for (int i = 0; i < kTracedSteps; ++i) timed_step();
    row.reductions = reductions_of(overlap->steps, session.session());
  }
  return row;
}

void print(const Row& row, bool json) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const int ranks = process().size;
  const double rate = static_cast<double>(ranks * row.batch) / row.median_ms * 1e3;
  const std::int64_t peak_mib = usage.ru_maxrss / 1024;
  if (json) {
    nlohmann::ordered_json line{{"model", row.model},
                                {"params", row.params},
                                {"ranks", ranks},
                                {"threads", row.threads},
                                {"batch", row.batch},
                                {"ms", std::round(row.median_ms * 1e3) / 1e3},
                                {"min_ms", std::round(row.min_ms * 1e3) / 1e3},
                                {"samples_per_s", std::round(rate * 10) / 10},
                                {"steps", row.steps},
                                {"peak_mib", peak_mib}};
    if (ranks > 1) {
      line["reduce_ms"] = std::round(row.reductions.ms * 1e3) / 1e3;
      line["hidden_share"] = std::round(row.reductions.hidden_share * 1e3) / 1e3;
      line["extra_exchanges"] = row.reductions.extra_exchanges;
    }
    fmt::print("{}\n", line.dump());
  } else {
    fmt::print(
        "{:<8} {:>9} parameters  {} ranks x {} threads  batch {:>3}  {:8.3f} ms (min {:.3f})  {:8.1f} "
        "samples/s  {} MiB",
        row.model, row.params, ranks, row.threads, row.batch, row.median_ms, row.min_ms, rate, peak_mib);
    if (ranks > 1)
      fmt::print("  reductions {:.3f} ms, {:.0f} % hidden", row.reductions.ms,
                 100 * row.reductions.hidden_share);
    fmt::print("\n");
  }
  std::fflush(stdout);
}

}  // namespace

void train_bench(const TrainBenchOptions& options) {
  for (const std::string& model : options.models) {
    const Row row = measure(model, options);
    if (process().rank == 0) print(row, options.json);
  }
}

}  // namespace kolo::bench
