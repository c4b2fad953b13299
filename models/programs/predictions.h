// --predict: the classes of samples that have no labels.
#pragma once

#include <kolo/models/programs/train_options.h>

namespace kolo::models {

/// A line for each sample, in the order of the input, on rank 0: name, class and share, the `top` largest.
/// The ranks share each run of batches, so memory does not grow with the input. All ranks call it together;
/// errors as train() has them.
void predict(const TrainOptions& options);

}  // namespace kolo::models
