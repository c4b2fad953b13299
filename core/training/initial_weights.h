// A training that begins with the weights of another one, or of another program.
#pragma once

#include <string>

#include <kolo/core/runtime/session.h>
#include <kolo/core/training/weight_names.h>

namespace kolo {

/// Where a training that finds no checkpoint takes its first weights from. The weights are the variables that
/// belong to the model: not the global step, nor an optimizer's state, which begin anew.
struct InitialWeights {
  /// A folder of checkpoints (the newest intact one is taken), a checkpoint `…/model.ckpt-200`, or any
  /// safetensors file; "": the variables' own initialisers.
  std::string path = {};
  /// What the file calls them; a variable without a tensor keeps what its initialiser gave it.
  WeightNames names = {};
};

/// Gives the weights their values; all must be in the file, with type and shape of the variable. Checks all
/// before it changes any. Throws NotFoundError for a path that is not there and for weights that the file
/// lacks, InvalidArgumentError for those of another type or shape and for names of no weight, what
/// SafetensorsReader and CheckpointReader throw.
void load_initial_weights(Session& session, const InitialWeights& from);

}  // namespace kolo
