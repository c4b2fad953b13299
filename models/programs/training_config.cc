#include <kolo/models/programs/training_config.h>

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <kolo/core/base/count_of.h>
#include <kolo/core/base/durable_file.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/json_text.h>
#include <kolo/core/base/process.h>
#include <kolo/core/runtime/group.h>
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/models/column_scale.h>
#include <kolo/models/data.h>
#include <kolo/models/folder_config_internal.h>
#include <kolo/models/learnt_file.h>
#include <kolo/models/programs/losses.h>
#include <kolo/models/programs/shared_errors.h>
#include <kolo/models/programs/training_data.h>

#include "kolo_commit.h"

namespace kolo::models {
namespace {

using Json = nlohmann::ordered_json;

using detail::folder_config_path;
using detail::folder_config_text;

std::string text_of(const std::vector<std::string>& names, std::int64_t classes) {
  constexpr std::size_t kMostNamed = 8;
  if (names.empty() || names.size() > kMostNamed) return count_of(classes, "class");
  return fmt::format("{} ({})", count_of(classes, "class"), fmt::join(names, ", "));
}

std::string text_of(const Shape& sample, const std::string& dtype, const std::vector<std::string>& names,
                    std::int64_t classes, LabelKind kind) {
  if (kind == LabelKind::several)
    return fmt::format("{} {} of {}, several a sample{}", dtype, sample, count_of(classes, "label"),
                       names.empty() ? "" : fmt::format(" ({})", fmt::join(names, ", ")));
  if (kind == LabelKind::numbers)
    return fmt::format("{} {} with {} to find{}", dtype, sample, count_of(classes, "number"),
                       names.empty() ? "" : fmt::format(" ({})", fmt::join(names, ", ")));
  return fmt::format("{} {} of {}", dtype, sample, text_of(names, classes));
}

Json data_of(const SampleKind& kind, const std::string& format) {
  Json data = {{"name", kind.name},
               {"format", format},
               {"sample", kind.shape.dims()},
               {"dtype", name(kind.dtype)},
               {"labels", plural_of(kind.label_kind)},
               {"classes", kind.classes}};
  if (kind.label_kind == LabelKind::numbers) data[kRegressionKey] = true;
  if (kind.label_kind == LabelKind::several) data[kSeveralLabelsKey] = true;
  if (!kind.class_names.empty()) data["class_names"] = kind.class_names;
  if (kind.largest) data["largest"] = *kind.largest;
  if (kind.least) data["least"] = *kind.least;
  if (kind.label_table) data["label_table"] = Json::parse(to_json(*kind.label_table));
  if (kind.table) data["table"] = Json::parse(to_json(*kind.table));
  return data;
}

Json model_of(const TrainOptions& options) {
  Json model = {{"name", options.model}};
  for (const auto& [name, size] : sizes_of(options)) model[name] = size;
  return model;
}

// Of all samples that the model has learnt from, those of earlier starts included.
void add_sizes(Json& data, const std::string& what, ColumnSizes sizes, const ColumnSizes* before) {
  if (sizes.largest.empty()) return;
  if (before != nullptr) sizes = detail::joined(std::move(sizes), *before);
  data[what + "_rows"] = sizes.rows;
  data[what + "_largest"] = sizes.largest;
  data[what + "_typical"] = sizes.typical;
  data[what + "_filled"] = sizes.filled;
  data[what + "_least"] = sizes.least;
  data[what + "_greatest"] = sizes.greatest;
  data[what + "_low"] = sizes.low;
  data[what + "_high"] = sizes.high;
  data[what + "_whole"] = sizes.whole;
}

Json json_of(const SampleDigests& digests) {
  Json json = {{"of", digests.samples},
               {"drawn", digests.drawn},
               {"digests", digests.digests},
               {"learnt", digests.learnt}};
  if (!digests.bytes.empty()) json["bytes"] = digests.bytes;
  if (digests.all != 0) json["all"] = digests.all;
  if (digests.are_kept) json["kept"] = true;
  return json;
}

// Of this start and of those before it, that of other samples.
std::vector<SampleDigests> trained_on(const TrainOptions& options, const TrainingData& data) {
  constexpr std::size_t kMostStarts = 16;
  std::vector<SampleDigests> trained;
  const auto add = [&](const SampleDigests& one) {
    const bool is_new = std::none_of(trained.begin(), trained.end(),
                                     [&](const SampleDigests& other) { return other.is_same(one); });
    if (one.samples > 0 && is_new && trained.size() < kMostStarts) trained.push_back(one);
  };
  if (data.digests) add(*data.digests);
  if (options.found) std::for_each(options.found->trained.begin(), options.found->trained.end(), add);
  std::for_each(data.learnt_before.begin(), data.learnt_before.end(), add);
  return trained;
}

// What config.json and a run's log both say, the data apart.
Json how_trained(const TrainOptions& options, std::int64_t global_batch) {
  const Json augment = options.augment.empty() ? Json(false) : Json(options.augment);
  return {{"preprocessing", {{"normalize", options.normalize}, {"augment", augment}}},
          {"precision", precision_name(options.precision)},
          {"optimizer", options.optimizer},
          {"learning_rate", *options.learning_rate},
          {"batch_size", batch_options(options).batch_size},
          {"global_batch", global_batch},
          {"seed", options.seed}};
}

Json what_trains(const TrainOptions& options) {
  return {{"kolo", {{"version", KOLO_VERSION}, {"commit", kCommit}}},
          {"command", options.command},
          {"model", model_of(options)}};
}

}  // namespace

Json run_parameters(const TrainOptions& options, std::int64_t global_batch, std::int64_t last_step) {
  Json parameters = what_trains(options);
  parameters.update(how_trained(options, global_batch));
  parameters.update({{"backward_passes", options.backward_passes},
                     {"last_step", last_step},
                     {"ranks", process().size},
                     {"hosts", process().node_count}});
  return parameters;
}

std::optional<FolderConfig> read_folder_config(const std::string& folder) {
  const std::string own = on_all_ranks([&]() -> std::string {
    if (world_group().rank() != 0) return "";
    try {
      if (list_checkpoints(folder).empty()) return "";
    } catch (const NotFoundError&) {  // no folder yet
      return "";
    }
    std::string text = folder_config_text(folder);
    if (!text.empty()) parse_folder_config(folder, text);
    return text;
  });
  const std::string text = world_group().broadcast(own, 0);
  return text.empty() ? std::nullopt : std::optional(parse_folder_config(folder, text));
}

void check_samples(const TrainOptions& options, const SampleKind& kind) {
  if (!options.found) return;
  const FolderConfig& config = *options.found;
  if (config.table && !kind.table)
    throw InvalidArgumentError(
        "--data: {} is no table, and the model in {} was trained on one; they must be alike", kind.name,
        config.folder);
  // Classes without names are called by their numbers.
  const auto class_name = [](const std::vector<std::string>& names, std::int64_t i) {
    return names.empty() ? std::to_string(i) : names[static_cast<std::size_t>(i)];
  };
  bool are_same = config.sample == kind.shape && config.dtype == name(kind.dtype) &&
                  config.classes == kind.classes && config.label_kind == kind.label_kind;
  if (are_same && config.class_names != kind.class_names) {
    are_same = config.label_kind == LabelKind::one_class;
    for (std::int64_t i = 0; are_same && i < kind.classes; ++i)
      are_same = class_name(config.class_names, i) == class_name(kind.class_names, i);
  }
  if (are_same) return;
  throw InvalidArgumentError(
      "--data: {} has samples {}, and the model in {} was trained on {}; they must be alike", kind.name,
      text_of(kind.shape, name(kind.dtype), kind.class_names, kind.classes, kind.label_kind), config.folder,
      text_of(config.sample, config.dtype, config.class_names, config.classes, config.label_kind));
}

SampleKind kind_of(const FolderConfig& config) {
  const DType dtype = dtype_from_name(config.dtype);
  return {.name = config.folder,
          .shape = config.sample,
          .classes = config.classes,
          .label_kind = config.label_kind,
          .dtype = dtype,
          .labels = dtype == DType::i32 ? config.sample.dim(0) : 1,
          .class_names = config.class_names,
          .table = config.table,
          .largest = config.largest,
          .least = config.least};
}

void write_folder_config(const std::string& folder, const TrainOptions& options, const TrainingData& data,
                         std::int64_t global_batch) {
  const std::string before = folder_config_text(folder);
  Json config = what_trains(options);
  config["data"] = data_of(data.kind(), data.format);
  const FolderConfig* const found = options.found ? &*options.found : nullptr;
  add_sizes(config["data"], "column", data.column_sizes, found ? &found->column_sizes : nullptr);
  add_sizes(config["data"], "label", data.label_sizes, found ? &found->label_sizes : nullptr);
  if (data.characters) config["data"]["characters"] = *data.characters;
  const std::vector<SampleDigests> trained = trained_on(options, data);
  for (std::size_t i = 0; i < trained.size(); ++i)
    if (i == 0 && data.digests && trained[0].is_same(*data.digests))
      config["data"]["drawn"] = json_of(trained[i]);
    else config["data"]["drawn_before"].push_back(json_of(trained[i]));
  const auto learnt = data.learnt ? std::optional(detail::learnt_file_of(*data.learnt)) : std::nullopt;
  if (learnt) {
    config["data"]["learnt"] = {{"file", learnt->name},
                                {"crc32c", learnt->crc32c},
                                {"marks", learnt->marks},
                                {"one_of", learnt->one_of},
                                {"chance", learnt->chance}};
    detail::write_learnt_file(folder, *data.learnt);
  }
  config["loss"] = loss_name(options, data.kind());
  config.update(how_trained(options, global_batch));
  config["switches"] = options.switches;
  const std::string text = json_text(config, 1) + "\n";
  if (text != before) write_durable_file(folder_config_path(folder), text);
  if (learnt) detail::remove_other_learnt_files(folder, *learnt);
  if (data.drawn.empty()) return;
  const std::string path = fmt::format("{}/{}", folder, kDrawnFile),
                    names = fmt::format("{}\n", fmt::join(data.drawn, "\n"));
  std::ifstream file(path, std::ios::binary);
  if (names != std::string(std::istreambuf_iterator<char>(file), {})) write_durable_file(path, names);
}

}  // namespace kolo::models
