#include <kolo/models/folder_config.h>

#include <algorithm>
#include <vector>

#include <nlohmann/json.hpp>

#include <kolo/core/base/error.h>
#include <kolo/core/base/input_file.h>
#include <kolo/core/base/json_text.h>
#include <kolo/models/folder_config_internal.h>
#include <kolo/models/samples.h>

namespace kolo::models {
namespace {

[[noreturn]] void throw_damaged(const std::string& folder, const char* why) {
  throw DataLossError(
      "{} is not what kolo-train wrote: {}; without the file every switch must be given again",
      detail::folder_config_path(folder), why);
}

SampleDigests digests_of(const nlohmann::ordered_json& json) {
  const std::vector<std::uint64_t> none;
  SampleDigests found{.samples = json.at("of").get<std::int64_t>(),
                      .digests = json.at("digests").get<std::vector<std::uint64_t>>(),
                      .learnt = json.value("learnt", none),
                      .bytes = json.value("bytes", none),
                      .all = json.value("all", std::uint64_t{0}),
                      .are_kept = json.value("kept", false)};
  // Of an earlier version: about a tenth.
  found.drawn = json.value("drawn", (found.samples + 9) / 10);
  return found;
}

// Every number is of a file that somebody may have changed.
LearntFile learnt_file_of(const nlohmann::ordered_json& json) {
  LearntFile file{.name = json.at("file").get<std::string>(),
                  .crc32c = json.at("crc32c").get<std::uint32_t>(),
                  .marks = json.at("marks").get<std::int64_t>(),
                  .one_of = json.at("one_of").get<std::int64_t>(),
                  .chance = json.at("chance").get<double>()};
  if (file.name.find('/') != std::string::npos || file.marks < 0 || file.one_of < 1)
    throw DataLossError("\"learnt\" names no file of the folder");
  return file;
}

ColumnSizes sizes_of(const nlohmann::ordered_json& data, const std::string& what) {
  const std::vector<float> none;
  return {.rows = data.value(what + "_rows", std::int64_t{0}),
          .largest = data.value(what + "_largest", none),
          .typical = data.value(what + "_typical", none),
          .filled = data.value(what + "_filled", none),
          .least = data.value(what + "_least", none),
          .greatest = data.value(what + "_greatest", none),
          .whole = data.value(what + "_whole", none),
          .low = data.value(what + "_low", none),
          .high = data.value(what + "_high", none)};
}

std::map<std::string, std::string> used_of(const nlohmann::ordered_json& json) {
  std::map<std::string, std::string> used;
  for (const char* const name : {"optimizer", "learning_rate", "precision", "batch_size", "global_batch"}) {
    if (!json.contains(name)) continue;
    std::string option = name;
    std::replace(option.begin(), option.end(), '_', '-');
    used[option] = json[name].is_string() ? json[name].get<std::string>() : json_text(json[name]);
  }
  return used;
}

}  // namespace

FolderConfig parse_folder_config(const std::string& folder, const std::string& text) {
  using Json = nlohmann::ordered_json;
  try {
    const Json json = Json::parse(text);
    FolderConfig config;
    config.folder = folder;
    config.switches = json.at("switches").get<std::map<std::string, std::string>>();
    // Of an earlier version, whose --augment took no list.
    if (const auto augment = config.switches.find("augment");
        augment != config.switches.end() && augment->second.empty())
      augment->second = kUsualAugmentation;
    config.used = used_of(json);
    for (const auto& [name, value] : json.at("model").items())
      if (name != "name") config.sizes[name] = value.get<std::int64_t>();
    config.model = json.at("model").at("name").get<std::string>();
    config.normalize = json.at("preprocessing").at("normalize").get<bool>();
    config.seed = json.at("seed").get<std::int64_t>();
    if (json.contains("global_batch")) config.global_batch = json["global_batch"].get<std::int64_t>();
    const Json& data = json.at("data");
    config.format = data.value("format", "");
    config.loss = json.value("loss", "");
    config.classes = data.at("classes").get<std::int64_t>();
    config.label_kind =
        label_kind_of(data.value(kRegressionKey, false), data.value(kSeveralLabelsKey, false));
    config.sample = Shape(data.at("sample").get<std::vector<std::int64_t>>());
    config.dtype = data.at("dtype").get<std::string>();
    if (data.contains("class_names"))
      config.class_names = data["class_names"].get<std::vector<std::string>>();
    if (data.contains("characters")) config.characters = data["characters"].get<std::string>();
    if (data.contains("largest")) config.largest = data["largest"].get<float>();
    if (data.contains("least")) config.least = data["least"].get<float>();
    if (config.sample.rank() == 3 && !config.format.empty() && config.format != kArraysFormat)
      config.largest = 1, config.least = 0;  // pixels, of an earlier version, too
    config.column_sizes = sizes_of(data, "column");
    config.label_sizes = sizes_of(data, "label");
    if (data.contains("table"))
      config.table = std::make_shared<const TableSchema>(table_schema_from_json(json_text(data["table"])));
    if (data.contains("label_table"))
      config.label_table =
          std::make_shared<const TableSchema>(table_schema_from_json(json_text(data["label_table"])));
    if (data.contains("drawn")) config.trained.push_back(digests_of(data["drawn"]));
    if (data.contains("drawn_before"))
      for (const Json& before : data["drawn_before"]) config.trained.push_back(digests_of(before));
    if (data.contains("learnt")) config.learnt_file = learnt_file_of(data["learnt"]);
    return config;
  } catch (const nlohmann::json::exception& error) {
    throw_damaged(folder, error.what());
  } catch (const DataLossError& error) {
    throw_damaged(folder, error.what());
  }
}

std::optional<FolderConfig> load_folder_config(const std::string& folder) {
  const std::string text = detail::folder_config_text(folder);
  return text.empty() ? std::nullopt : std::optional(parse_folder_config(folder, text));
}

}  // namespace kolo::models

namespace kolo::models::detail {

std::string folder_config_path(const std::string& folder) { return folder + "/" + kFolderConfigFile; }

std::string folder_config_text(const std::string& folder) {
  constexpr std::uint64_t kMostConfigBytes = std::uint64_t{1} << 24;
  try {
    std::string text = InputFile(folder_config_path(folder)).read_all(kMostConfigBytes);
    if (text.empty()) throw DataLossError("{}: it is empty", folder_config_path(folder));
    return text;
  } catch (const NotFoundError&) {
    return "";
  }
}

}  // namespace kolo::models::detail
