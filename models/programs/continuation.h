// --prompt: a text model writes on.
#pragma once

#include <kolo/models/programs/train_options.h>

namespace kolo::models {

/// The prompt and `length` bytes more, each drawn from what the model expects behind those before it, on
/// rank 0's standard output. The same seed gives the same text. All ranks call it together; errors as
/// train() has them.
void continue_text(const TrainOptions& options);

}  // namespace kolo::models
