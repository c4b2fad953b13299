// config.json of kolo-train's own folder: read on all ranks, compared with what is to be done, written, so
// that who evaluates a model or goes on need not repeat the switches.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include <kolo/models/folder_config.h>
#include <kolo/models/programs/train_options.h>
#include <kolo/models/programs/training_data.h>
#include <kolo/models/samples.h>

namespace kolo::models {

/// What is there of rank 0's folder, the same on all ranks. Nothing where the folder holds no checkpoint, or
/// is of a version that wrote no such file. All ranks call it together. Throws SharedError for a file that is
/// damaged, on every rank.
std::optional<FolderConfig> read_folder_config(const std::string& folder);

/// Throws InvalidArgumentError where the samples have not the shape, type or classes of those the folder's
/// model was trained on. Nothing to compare with: does nothing.
void check_samples(const TrainOptions& options, const SampleKind& kind);

/// What the samples were, of which the folder's model was trained.
SampleKind kind_of(const FolderConfig& config);

/// What a run of these options is, for its log: model, optimizer, batch sizes, ranks, hosts, commit, command
/// and more. last_step: of --steps or --epochs.
nlohmann::ordered_json run_parameters(const TrainOptions& options, std::int64_t global_batch,
                                      std::int64_t last_step);

/// Writes the file, whole or not at all, unless it says the same already, before it the file of the samples
/// that were learnt from, and where samples were drawn for testing testing.txt beside it, a name a line. Rank
/// 0 alone, which owns the folder. Throws as DurableFile does.
void write_folder_config(const std::string& folder, const TrainOptions& options, const TrainingData& data,
                         std::int64_t global_batch);

}  // namespace kolo::models
