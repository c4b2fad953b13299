// config.json of a checkpoint folder: which model kolo-train trained there, on what and how.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <kolo/core/tensor/shape.h>
#include <kolo/models/data.h>
#include <kolo/models/samples.h>

namespace kolo::models {

inline constexpr char kFolderConfigFile[] = "config.json";

/// The file of the folder that holds the LearntSamples of its trainings.
struct LearntFile {
  std::string name;
  std::uint32_t crc32c = 0;  // of all of it
  std::int64_t marks = 0, one_of = 1;
  double chance = 0;
};

/// What a checkpoint folder says of itself.
struct FolderConfig {
  std::string folder;
  std::map<std::string, std::string> switches;  // of the last start, without dashes; "" takes no value
  /// By switch, what the training used of those that can be left out: "optimizer", "learning-rate",
  /// "precision", "batch-size", "global-batch". Without those that an earlier version did not write.
  std::map<std::string, std::string> used;
  std::string model;
  std::map<std::string, std::int64_t> sizes;  // of the model, those that can be chosen
  bool normalize = false;
  std::int64_t seed = 1;
  std::optional<std::int64_t> global_batch;  // samples of a step, when the file was written
  std::string format;  // of the data: "table", "CIFAR-10"; "" in a folder of an earlier version
  std::string loss;    // as --loss has it; "" as above
  Shape sample;        // of one sample: [C,H,W] for an image
  std::string dtype;   // of a sample
  std::int64_t classes = 0;
  LabelKind label_kind = LabelKind::one_class;
  std::vector<std::string> class_names;            // by class or output; empty: they have none
  std::optional<std::string> characters;           // characters_of the text; none: nobody knows them
  std::optional<float> largest, least;             // SampleKind::largest and least of the training's samples
  std::shared_ptr<const TableSchema> table;        // of a table: what its columns mean
  ColumnSizes column_sizes;                        // of the training's samples, where it is a table
  ColumnSizes label_sizes;                         // of numbers to find
  std::shared_ptr<const TableSchema> label_table;  // SampleKind::label_table
  // DataSplits::digests of its starts, the last one first; none in a folder of an earlier version.
  std::vector<SampleDigests> trained;
  std::optional<LearntFile> learnt_file;  // none in a folder of an earlier version
};

/// Nothing where the folder has no such file, as those of earlier versions and of programs other than
/// kolo-train. Throws DataLossError that names the file where it is damaged, and what InputFile throws.
std::optional<FolderConfig> load_folder_config(const std::string& folder);

/// The same of the file's text, which the caller has read.
FolderConfig parse_folder_config(const std::string& folder, const std::string& text);

}  // namespace kolo::models
