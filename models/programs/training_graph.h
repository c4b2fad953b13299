// The graph of a training: network, loss, update, and what is looked at between steps.
#pragma once

#include <cstdint>
#include <optional>

#include <kolo/core/graph/graph.h>
#include <kolo/core/graph/output.h>
#include <kolo/core/runtime/session.h>
#include <kolo/models/batches.h>
#include <kolo/models/programs/evaluation.h>
#include <kolo/models/programs/rate_scale.h>
#include <kolo/models/programs/recipe.h>
#include <kolo/models/programs/train_options.h>
#include <kolo/models/programs/training_data.h>

namespace kolo::models {

struct TrainingGraph {
  /// equal_parts: each rank has as many samples in every step. as_pixels: as BatchOptions has it. last_step:
  /// where a schedule of the rate ends.
  TrainingGraph(const TrainOptions& options, const TrainingData& data, bool equal_parts, bool as_pixels,
                std::int64_t last_step);

  /// What a step is fed with.
  Feeds feeds(const Batch& batch, const RateScale& scale, std::int64_t step) const;

  Graph graph;
  Output samples, labels;  // of a step
  Output images;           // what the network reads, and what is fed to evaluate: `samples`, or those ÷ 255
  Output weight;           // Batch::weight; empty where it is always 1
  Output rate_factor;      // of RateScale; empty without --scale-rate
  Output loss;             // weighted: its mean over the ranks is that over the samples
  Output inferred;         // the logits of the network in inference
  std::optional<Recipe> recipe;
  AnswerCheck check;
};

}  // namespace kolo::models
