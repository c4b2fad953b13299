// Pictures that cannot be read, found before the first step.
#pragma once

#include <kolo/models/programs/train_options.h>
#include <kolo/models/programs/training_data.h>

namespace kolo::models {

/// Of both splits, where they are decoded from files: each rank checks the headers of its share, with as many
/// threads as decode, and the first damaged file is a SharedError with its name. With --skip-damaged all of
/// each file is decoded, and rank 0 names and counts those that are left out. All ranks call it together.
void check_pictures(const TrainOptions& options, TrainingData& data);

}  // namespace kolo::models
