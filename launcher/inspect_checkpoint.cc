// kolo-inspect checkpoint: what a checkpoint holds, after every sum has been computed again.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/base/input_file.h>
#include <kolo/core/base/json_text.h>
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/safetensors.h>
#include <kolo/launcher/inspect_command.h>

namespace kolo::launcher {
namespace {

namespace fs = std::filesystem;

constexpr char kCheckpointUsage[] = "checkpoint PATH [--json]";

// The checkpoint that PATH means: the newest of a folder, the one that a file belongs to, or itself.
std::string find_prefix(const std::string& path) {
  if (fs::is_directory(path)) {
    const auto names = list_checkpoints(path);
    if (names.empty()) throw NotFoundError("there is no checkpoint in {}", path);
    return (fs::path(path) / names.front()).string();
  }
  const std::string of_file = checkpoint_of_file(path);
  std::string prefix = of_file.empty() ? path : of_file;
  if (!fs::exists(checkpoint_index_path(prefix)) && checkpoint_tensor_files(prefix).empty())
    throw NotFoundError(
        "there is no checkpoint {}; right would be a folder of checkpoints, …/model.ckpt-N or one of its "
        "files",
        path);
  return prefix;
}

CheckpointIndex verified_index(const std::string& prefix) {
  try {
    CheckpointReader reader(prefix);
    reader.verify();
    return reader.index();
  } catch (const DataLossError& damage) {
    throw DataLossError("{} is damaged: {}", prefix, damage.what());
  }
}

// Of the elements; of a tensor in slices one each.
std::string sums_of(const CheckpointIndex::TensorEntry& tensor) {
  if (tensor.slices.empty()) return crc32c_text(tensor.crc32c);
  std::string text;
  for (const auto& slice : tensor.slices) {
    if (!text.empty()) text += ' ';
    text += crc32c_text(slice.crc32c);
  }
  return text;
}

void print_table(const CheckpointIndex& index) {
  std::size_t name_width = 0, shape_width = 0;
  for (const auto& [name, tensor] : index.tensors) {
    name_width = std::max(name_width, name.size());
    shape_width = std::max(shape_width, tensor.shape.to_string().size());
  }
  if (index.global_step) fmt::print("global_step {}\n", *index.global_step);
  for (const auto& [name, tensor] : index.tensors)
    fmt::print("{:<{}}  {:<4}  {:<{}}  {}\n", name, name_width, tensor.dtype, tensor.shape, shape_width,
               sums_of(tensor));
}

// A safetensors file that is part of no checkpoint: what it holds, with sums of what is there.
bool is_lone_file(const std::string& path) {
  const fs::path file(path);
  return file.extension() == ".safetensors" && fs::is_regular_file(file) &&
         !file.filename().string().starts_with(kCheckpointBasename) &&
         !fs::exists(checkpoint_index_path(checkpoint_of_file(path)));
}

void inspect_lone_file(const std::string& path, bool as_json) {
  SafetensorsReader reader(path);
  nlohmann::ordered_json tensors = nlohmann::ordered_json::object();
  for (const auto& [name, entry] : reader.entries()) {
    const std::string type = entry.unknown_type.empty() ? fmt::format("{}", entry.dtype) : entry.unknown_type;
    const std::string sum = crc32c_text(reader.crc32c(name));
    if (as_json) tensors[name] = {{"dtype", type}, {"shape", entry.shape.dims()}, {"crc32c", sum}};
    else fmt::print("{}  {}  {}  {}\n", name, type, entry.shape, sum);
  }
  if (as_json) fmt::print("{}\n", json_text(nlohmann::ordered_json{{"tensors", tensors}}));
  else fmt::print("no index beside it: sums not verified\n");
}

// What kolo-train says of the folder; no object where it does not.
nlohmann::ordered_json config_beside(const std::string& prefix) {
  const fs::path path = fs::path(prefix).parent_path() / "config.json";
  constexpr std::uint64_t kMost = 64 << 20;
  return nlohmann::ordered_json::parse(text_or_nothing(path.string(), kMost), nullptr, false);
}

std::string with_config(const std::string& summary, const nlohmann::ordered_json& config) {
  if (!config.is_object()) return summary;
  auto json = nlohmann::ordered_json::parse(summary);
  json["config"] = config;
  json["config"].erase("command");  // equal states in two folders are told alike
  return json_text(json);
}

void print_config(const nlohmann::ordered_json& config) {
  if (!config.is_object()) return;
  try {
    const auto &model = config.at("model"), &data = config.at("data"), &kolo = config.at("kolo");
    const std::string found = data.value("several_labels", false) ? "labels"
                              : data.value("regression", false)   ? "numbers to find"
                                                                  : "classes";
    const std::string name = data.at("name").get<std::string>(), format = data.value("format", name);
    const std::string loss = config.value("loss", "");
    fmt::print("model {}, {}{}, {}: {}, {}optimizer {}, kolo {} {}\n", model.at("name").get<std::string>(),
               name, format == name ? "" : fmt::format(" ({})", format), found,
               data.at("classes").get<std::int64_t>(), loss.empty() ? "" : fmt::format("loss {}, ", loss),
               config.at("optimizer").get<std::string>(), kolo.at("version").get<std::string>(),
               kolo.at("commit").get<std::string>());
    if (data.contains("class_names"))
      fmt::print("{} {}\n", found, fmt::join(data["class_names"].get<std::vector<std::string>>(), ", "));
    fmt::print("command {}\n", config.at("command").get<std::string>());
  } catch (const nlohmann::json::exception& error) {
    fmt::print("config.json is not what kolo-train wrote: {}\n", error.what());
  }
}

void inspect_checkpoint(const std::vector<std::string>& words) {
  const OnePath options = parse_one_path(words, {"json"}, kCheckpointUsage);
  if (options.help)
    return fmt::print(
        "Usage: kolo-inspect {}\n\n"
        "Prints the global step, and each tensor with its type, shape and checksum (CRC-32C of its "
        "elements).\n"
        "PATH: a folder (its newest checkpoint), .../model.ckpt-N, or a file of it. Exit code 1 if any byte "
        "of it changed.\n"
        "Any other safetensors file: its tensors, and their sums as they are.\n"
        "--json: one line of JSON.\n",
        kCheckpointUsage);
  if (is_lone_file(options.path)) return inspect_lone_file(options.path, !options.flags.empty());
  const std::string prefix = find_prefix(options.path);
  const CheckpointIndex index = verified_index(prefix);
  const nlohmann::ordered_json config = config_beside(prefix);
  if (!options.flags.empty()) return fmt::print("{}\n", with_config(checkpoint_summary_json(index), config));
  print_config(config);
  print_table(index);
}

const RegisterInspectCommand checkpoint_command("checkpoint",
                                                {kCheckpointUsage,
                                                 "tensors of a checkpoint, their types, shapes and sums",
                                                 inspect_checkpoint});

}  // namespace
}  // namespace kolo::launcher
