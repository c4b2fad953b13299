// Models as files: JSON for what they are, safetensors for their numbers.
#pragma once

#include <optional>
#include <string>

#include <kolo/models/keras/model.h>

namespace kolo::keras {

/// What load_model cannot find in a file: functions and optimizers of your own.
struct LoadModelOptions {
  CustomObjects custom = {};
  std::optional<Optimizer> optimizer = {};  // of one that the file cannot name: a kolo::Optimizer
  std::optional<DistributedOptimizerOptions> distributed = {};  // wraps the optimizer of the file
};

/// What Model::save wrote: the same predictions and, without dropout, the same next training step, bit for
/// bit. It comes uncompiled where the file was written without optimizer, and, with a warning, where the
/// optimizer was one of kolo's and none is given. Throws NotFoundError without the files, DataLossError for
/// damage, and as model_from_json.
Model load_model(Workspace& workspace, const std::string& path, const LoadModelOptions& options = {});

}  // namespace kolo::keras
