#include <bench/keras_bench.h>

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <bench/made_up_batch.h>
#include <kolo/core/base/json_text.h>
#include <kolo/core/base/median.h>
#include <kolo/core/base/process.h>
#include <kolo/core/base/text.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/runtime/group.h>
#include <kolo/core/training/monitored_session.h>
#include <kolo/models/keras/image_layers.h>
#include <kolo/models/keras/model.h>
#include <kolo/models/keras/trainer_internal.h>

namespace kolo::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;
constexpr int kTurns = 15;
constexpr std::int64_t kMostSteps = 200;  // of a turn

// One network with samples for as many steps as a turn has.
struct Case {
  std::string name;
  std::int64_t batch;
  Shape sample;
  std::vector<keras::Layer> (*layers)();
};

std::vector<keras::Layer> digits_network() {
  using namespace keras;
  return {Conv2D(32, {3, 3}, {.activation = "relu", .input_shape = {1, 28, 28}}),
          Conv2D(64, {3, 3}, {.activation = "relu"}),
          MaxPooling2D(),
          Dropout(.25),
          Flatten(),
          Dense(128, {.activation = "relu"}),
          Dropout(.5),
          Dense(10, {.activation = "softmax"})};
}

std::vector<keras::Layer> one_layer() {
  return {keras::Dense(10, {.activation = "softmax", .input_shape = {784}})};
}

SessionConfig config_of(const KerasBenchOptions& options) {
  SessionConfig config;
  config.intra_op_parallelism_threads = config.inter_op_parallelism_threads = options.threads;
  return config;
}

// The model of a case in a workspace of its own, compiled as the program's.
struct Compiled {
  Compiled(const Case& of, const KerasBenchOptions& options)
      : workspace({.config = config_of(options)}), net(workspace, of.layers()) {
    net.compile({.optimizer = keras::distributed(keras::Adadelta()),
                 .loss = "categorical_crossentropy",
                 .metrics = {"accuracy"}});
    workspace.initialize_variables();
  }
  keras::Workspace workspace;
  keras::Sequential net;
};

using Turn = std::function<void(std::int64_t steps)>;

Shape batch_shape(const Shape& sample, std::int64_t rows) {
  std::vector<std::int64_t> dims = sample.dims();
  dims.insert(dims.begin(), rows);
  return Shape(dims);
}

struct WayRow {
  std::string way;
  std::vector<double> us;  // of a step, by turn
};

void print(const Case& of, const WayRow& row, double beside, std::int64_t steps, bool json) {
  const double us = median(row.us), least = *std::min_element(row.us.begin(), row.us.end());
  const auto tenths = [](double value) { return std::round(value * 10) / 10; };
  if (json)
    fmt::print("{}\n", json_text(nlohmann::ordered_json{{"network", of.name},
                                                        {"way", row.way},
                                                        {"ranks", process().size},
                                                        {"batch", of.batch},
                                                        {"us", tenths(us)},
                                                        {"min_us", tenths(least)},
                                                        {"to_callable", std::round(us / beside * 1e4) / 1e4},
                                                        {"steps", steps}}));
  else
    fmt::print("{:<8} {:<9} {} ranks  batch {:>3}  {:10.1f} us (min {:.1f})  {:.4f} of the callable's\n",
               of.name, row.way, process().size, of.batch, us, least, us / beside);
  std::fflush(stdout);
}

double us_of_step(const Turn& turn, std::int64_t steps) {
  const auto start = Clock::now();
  turn(steps);
  return Microseconds(Clock::now() - start).count() / static_cast<double>(steps);
}

// Of a turn, for steps that take so long: as many as all ranks have time for.
std::int64_t steps_of_a_turn(double seconds, double us) {
  const auto wanted = static_cast<std::int64_t>(seconds * 1e6 / us / kTurns / 3);
  return parse_int64(
             world_group().broadcast(std::to_string(std::clamp<std::int64_t>(wanted, 4, kMostSteps)), 0))
      .value();
}

void measure(const Case& of, const KerasBenchOptions& options) {
  Compiled by_fit(of, options), by_hand(of, options), monitored(of, options);
  const CallableSignature signature = by_hand.net.model().trainer().training_step();
  const Callable callable = by_hand.workspace.session().make_callable(signature);
  const Tensor x = made_up_images(batch_shape(of.sample, of.batch)),
               y = Tensor::zeros(DType::f32, {of.batch, 10});
  for (std::int64_t i = 0; i < of.batch; ++i) y.data<float>()[i * 10 + i % 10] = 1;
  Tensor weights(DType::f32, {of.batch});
  std::fill_n(weights.data<float>(), of.batch, 1.F);

  // In a session of its own, on the third graph.
  const CallableSignature step = monitored.net.model().trainer().training_step();
  MonitoredTrainingSession session(monitored.workspace.graph(), {.config = config_of(options)});
  std::vector<Fetch> fetches = step.fetches;
  fetches.insert(fetches.end(), step.targets.begin(), step.targets.end());
  const Feeds feeds = {{step.feeds[0], x}, {step.feeds[1], y}, {step.feeds[2], weights}};

  const Tensor all_x = made_up_images(batch_shape(of.sample, kMostSteps * of.batch));
  const Tensor all_y = Tensor::zeros(DType::f32, {kMostSteps * of.batch, 10});
  const std::vector<std::pair<std::string, Turn>> ways = {
      {"fit",
       [&](std::int64_t steps) {
         by_fit.net.fit(all_x.rows(0, steps * of.batch), all_y.rows(0, steps * of.batch),
                        {.batch_size = of.batch, .verbose = 0});
       }},
      {"callable",
       [&](std::int64_t steps) {
         for (std::int64_t i = 0; i < steps; ++i) callable({x, y, weights});
       }},
      {"monitored", [&](std::int64_t steps) {
         for (std::int64_t i = 0; i < steps; ++i) session.run(fetches, feeds);
       }}};
  double us = 0;
  for (const auto& [name, turn] : ways) turn(3), us = std::max(us, us_of_step(turn, 3));
  const std::int64_t steps = steps_of_a_turn(options.seconds, us);
  std::vector<WayRow> rows;
  for (const auto& [name, turn] : ways) rows.push_back({.way = name, .us = {}});
  for (int i = 0; i < kTurns; ++i)
    for (std::size_t way = 0; way < ways.size(); ++way)
      rows[way].us.push_back(us_of_step(ways[way].second, steps));
  if (process().rank != 0) return;
  for (const WayRow& row : rows) print(of, row, median(rows[1].us), steps * kTurns, options.json);
}

}  // namespace

void keras_bench(const KerasBenchOptions& options) {
  measure({.name = "digits", .batch = 128, .sample = {1, 28, 28}, .layers = digits_network}, options);
  measure({.name = "dense", .batch = 1, .sample = {784}, .layers = one_layer}, options);
}

}  // namespace kolo::bench
