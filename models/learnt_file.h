// LearntSamples as a file of a checkpoint folder.
#pragma once

#include <memory>
#include <string>

#include <kolo/models/folder_config.h>
#include <kolo/models/sample_digests.h>

namespace kolo::models::detail {

/// Names of such files begin so. One is the marks, little-endian 64-bit numbers, and is named by their
/// checksum: another training's marks are another file, so that config.json always names a whole one.
inline constexpr char kLearntFilePrefix[] = "learnt-";

/// What config.json is to say of them.
LearntFile learnt_file_of(const LearntSamples& learnt);
/// Writes the file, unless it is there. Throws as DurableFile does.
void write_learnt_file(const std::string& folder, const LearntSamples& learnt);
/// Those that config.json does not name any more. Never throws.
void remove_other_learnt_files(const std::string& folder, const LearntFile& kept);

/// nullptr where the folder has none, and with a warning where the file is missing or damaged: what is said
/// of samples is then an estimate.
std::shared_ptr<const LearntSamples> read_learnt_file(const FolderConfig& config);

}  // namespace kolo::models::detail
