// How kolo-train's options become a rate, an optimizer and the operation that trains.
#pragma once

#include <cstdint>
#include <vector>

#include <kolo/core/graph/scope.h>
#include <kolo/core/ops/variables.h>
#include <kolo/models/programs/train_options.h>
#include <kolo/optimizer/rule_optimizer.h>

namespace kolo::models {

struct Recipe {
  Operation train_op;
  Hyperparameter learning_rate;  // of the step that runs: a number, or an f32 scalar of the graph
  // Moving averages of the variables. Without them all three are empty.
  std::vector<Variable> averages;
  Operation start_averages;  // gives them the variables' values
  Operation swap_averages;   // exchanges both
};

/// last_step: where the schedule ends. rate_factor: by which the rate is multiplied, an f32 scalar; none: 1.
/// Throws InvalidArgumentError for options that cannot go together.
Recipe build_training(Scope& s, Output loss, const TrainOptions& options, std::int64_t last_step,
                      Output rate_factor = {});

}  // namespace kolo::models
