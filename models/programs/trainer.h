// What kolo-train does: a model of the zoo, trained on all ranks of the job.
#pragma once

#include <kolo/models/programs/train_options.h>

namespace kolo::models {

/// Trains until the step that the options ask for, or a stop that all ranks agreed on; restores before, saves
/// and evaluates after. All ranks call it with the same options, after init(). Errors of the setting-up
/// (data, options, checkpoints) are thrown alike on every rank, as a SharedError; later ones by whom they
/// concern.
void train(const TrainOptions& options);
}  // namespace kolo::models
