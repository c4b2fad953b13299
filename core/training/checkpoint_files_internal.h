// What the files about checkpoints' files share.
#pragma once

#include <filesystem>
#include <string>

#include <kolo/core/training/checkpoint_files.h>

namespace kolo::detail {

/// The path without its folder.
inline std::string base_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

/// Throws DataLossError `<file>: <what is wrong>`, the file without its folder, and `cannot read <path>: …`.
CheckpointIndex read_checkpoint_index(const std::string& path);

}  // namespace kolo::detail
