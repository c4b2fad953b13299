// --evaluate: how good a model of a checkpoint folder is on test samples.
#pragma once

#include <kolo/models/programs/train_options.h>

namespace kolo::models {

/// Restores the model's variables from the newest intact checkpoint and counts every test sample once over
/// the ranks. All ranks call it together; errors as train() has them.
void evaluate(const TrainOptions& options);

}  // namespace kolo::models
