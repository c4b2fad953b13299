// What of the samples may not be as their owner thinks, in lines of its own behind `data:`.
#pragma once

#include <kolo/models/programs/train_options.h>
#include <kolo/models/programs/training_data.h>

namespace kolo::models {

/// Of rank 0: warnings of the readers, classes without samples for training or testing, samples of another
/// scale than those that the model was trained on, and at the beginning of a training columns that
/// --normalize would bring to one size.
void warn_of_data(const TrainOptions& options, const TrainingData& data);

}  // namespace kolo::models
