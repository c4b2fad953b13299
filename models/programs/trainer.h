// What kolo-train does: a model of the zoo, trained or evaluated on all ranks of the job.
#pragma once

#include <kolo/models/programs/progress.h>
#include <kolo/models/programs/train_options.h>

namespace kolo::models {

/// Trains until the step that the options ask for, or a stop that all ranks agreed on; restores before, saves
/// and evaluates after. All ranks call it with the same options, after init(). Errors of the setting-up
/// (data, options, checkpoints) are thrown alike on every rank, as a SharedError; later ones by whom they
/// concern.
void train(const TrainOptions& options);
/// Restores the model's variables from the newest intact checkpoint and counts every test sample once over
/// the ranks.
void evaluate(const TrainOptions& options);

/// An error that every rank has, so that rank 0 alone tells it.
class SharedError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace kolo::models
