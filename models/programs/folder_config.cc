#include <kolo/models/programs/folder_config.h>

#include <fmt/format.h>

#include <vector>

#include <nlohmann/json.hpp>

#include <kolo/core/base/durable_file.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/input_file.h>
#include <kolo/core/base/json_text.h>
#include <kolo/core/runtime/group.h>
#include <kolo/core/training/checkpoint_files.h>

#include "kolo_commit.h"

namespace kolo::models {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kMostConfigBytes = std::uint64_t{1} << 24;

std::string config_path(const std::string& folder) { return folder + "/" + kFolderConfigFile; }

// "" where there is none.
std::string text_in(const std::string& folder) {
  try {
    return InputFile(config_path(folder)).read_all(kMostConfigBytes);
  } catch (const NotFoundError&) {
    return "";
  }
}

FolderConfig parsed(const std::string& folder, const std::string& text) {
  try {
    const Json json = Json::parse(text);
    FolderConfig config;
    config.folder = folder;
    config.switches = json.at("switches").get<Switches>();
    for (const auto& [name, value] : json.at("model").items())
      if (name != "name") config.sizes[name] = value.get<std::int64_t>();
    config.model = json.at("model").at("name").get<std::string>();
    config.normalize = json.at("preprocessing").at("normalize").get<bool>();
    config.seed = json.at("seed").get<std::int64_t>();
    const Json& data = json.at("data");
    config.classes = data.at("classes").get<std::int64_t>();
    config.sample = Shape(data.at("sample").get<std::vector<std::int64_t>>());
    config.dtype = data.at("dtype").get<std::string>();
    if (data.contains("class_names"))
      config.class_names = data["class_names"].get<std::vector<std::string>>();
    return config;
  } catch (const nlohmann::json::exception& error) {
    throw DataLossError(
        "{} is not what kolo-train wrote: {}; without the file every switch must be given again",
        config_path(folder), error.what());
  }
}

std::string text_of(const std::vector<std::string>& names, std::int64_t classes) {
  constexpr std::size_t kMostNamed = 8;
  if (names.empty() || names.size() > kMostNamed) return fmt::format("{} classes", classes);
  return fmt::format("{} classes ({})", classes, fmt::join(names, ", "));
}

std::string text_of(const Shape& sample, const std::string& dtype, const std::vector<std::string>& names,
                    std::int64_t classes) {
  return fmt::format("{} {} of {}", dtype, sample, text_of(names, classes));
}

Json data_of(const SampleKind& kind) {
  Json data = {{"name", kind.name},
               {"sample", kind.shape.dims()},
               {"dtype", name(kind.dtype)},
               {"classes", kind.classes}};
  if (!kind.class_names.empty()) data["class_names"] = kind.class_names;
  return data;
}

Json model_of(const TrainOptions& options) {
  Json model = {{"name", options.model}};
  for (const auto& [name, size] : sizes_of(options)) model[name] = size;
  return model;
}

}  // namespace

std::optional<FolderConfig> read_folder_config(const std::string& folder) {
  Code code = Code::unknown;
  std::string text, error;
  if (world_group().rank() == 0) {
    try {
      if (!list_checkpoints(folder).empty()) text = text_in(folder);
      if (!text.empty()) parsed(folder, text);
    } catch (const NotFoundError&) {  // no folder yet
    } catch (const Error& failure) {
      code = failure.code(), error = failure.what();
    }
  }
  throw_if_any_failed(world_group(), code, error);
  text = world_group().broadcast(text, 0);
  return text.empty() ? std::nullopt : std::optional(parsed(folder, text));
}

void check_samples(const TrainOptions& options, const SampleKind& kind) {
  if (!options.found) return;
  const FolderConfig& config = *options.found;
  if (config.sample == kind.shape && config.dtype == name(kind.dtype) && config.classes == kind.classes &&
      config.class_names == kind.class_names)
    return;
  throw InvalidArgumentError(
      "--data: {} has samples {}, and the model in {} was trained on {}; they must be alike", kind.name,
      text_of(kind.shape, name(kind.dtype), kind.class_names, kind.classes), config.folder,
      text_of(config.sample, config.dtype, config.class_names, config.classes));
}

void write_folder_config(const TrainOptions& options, const SampleKind& kind, std::int64_t global_batch) {
  const std::string before = text_in(options.checkpoint_dir);
  const Json config = {{"kolo", {{"version", KOLO_VERSION}, {"commit", kCommit}}},
                       {"command", options.command},
                       {"model", model_of(options)},
                       {"data", data_of(kind)},
                       {"preprocessing", {{"normalize", options.normalize}, {"augment", options.augment}}},
                       {"precision", precision_name(options.precision)},
                       {"optimizer", options.optimizer},
                       {"learning_rate", *options.learning_rate},
                       {"global_batch", global_batch},
                       {"seed", options.seed},
                       {"switches", options.switches}};
  const std::string text = json_text(config, 1) + "\n";
  if (text != before) write_durable_file(config_path(options.checkpoint_dir), text);
}

}  // namespace kolo::models
