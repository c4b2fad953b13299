#include <kolo/core/cluster/worker/task_shards.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include <kolo/core/base/durable_file.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/input_file.h>
#include <kolo/core/training/safetensors.h>
#include <kolo/core/training/sharded_checkpoint.h>

namespace kolo::detail {
namespace {

constexpr std::size_t kTokenDigits = 32;
constexpr int kMostShards = 100'000;  // their names have five digits

// It came from elsewhere, and names files that are written.
void check_place(const ShardPlace& place) {
  const bool is_token = place.token.size() == kTokenDigits &&
                        std::all_of(place.token.begin(), place.token.end(), [](char digit) {
                          return (digit >= '0' && digit <= '9') || (digit >= 'a' && digit <= 'f');
                        });
  if (!is_token) throw InvalidArgumentError("a save came with a token that is none");
  if (!std::filesystem::path(place.prefix).is_absolute() || place.prefix.ends_with('/'))
    throw InvalidArgumentError("a save came with the path \"{}\"; it must be an absolute one of a file",
                               place.prefix);
  if (place.shard < 0 || place.shard >= place.shards || place.shards > kMostShards)
    throw InvalidArgumentError("a save came with shard {} of {}", place.shard, place.shards);
}

std::shared_ptr<VariableStorage> variable_with_value(TaskVariables& all, const VariableKey& key) {
  auto variable = all.find(key);
  if (variable == nullptr || !variable->initialized.load())
    throw FailedPreconditionError("Attempting to use uninitialized value {}", key.name);
  return variable;
}

Tensor scalar_of(DType dtype, std::int64_t value) {
  if (dtype == DType::i32) return Tensor::scalar(static_cast<std::int32_t>(value));
  if (dtype != DType::i64) throw InvalidArgumentError("a value came for a variable of type {}", dtype);
  return Tensor::scalar(value);
}

Tensor saved_value(TaskVariables& all, const VariableKey& key, const SavedVariable& saved, DType dtype) {
  if (saved.value) return scalar_of(dtype, *saved.value).reshaped(saved.shape);
  const Tensor value = copy_of(*variable_with_value(all, key));
  if (!value) throw FailedPreconditionError("Attempting to use uninitialized value {}", key.name);
  return value.reshaped(saved.shape);
}

}  // namespace

void check_same_folder(const ShardPlace& place, const std::string& task) {
  check_place(place);
  std::string found;
  try {
    found = InputFile(token_path(place)).read_all(kTokenDigits);
  } catch (const Error&) {
    found.clear();
  }
  if (found != place.token)
    throw FailedPreconditionError("checkpoint_dir {} is not the same folder on {}", folder_of(place.prefix),
                                  task);
}

WrittenShard write_shard(TaskVariables& all, const ShardPlace& place, const std::vector<VariableKey>& keys,
                         const std::vector<SavedVariable>& variables) {
  std::map<std::string, SafetensorsEntry> entries;
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const Tensor& value = variable_with_value(all, keys[i])->value;
    const SavedVariable& saved = variables[i];
    if (saved.shape.elements() != value.elements())
      throw InvalidArgumentError("variable \"{}\" is {}; it cannot be saved as {}", saved.name, value.shape(),
                                 saved.shape);
    entries[saved.saved_as] = {.dtype = value.dtype(), .shape = saved.shape};
    if (!places.emplace(saved.saved_as, i).second)
      throw InvalidArgumentError("At least two variables have the same name: {}", saved.saved_as);
  }
  DurableFile file(shard_path(place), shard_temporary_path(place));
  const SafetensorsSums sums = write_safetensors(file, entries, [&](const std::string& name) {
    const std::size_t i = places.at(name);
    return saved_value(all, keys[i], variables[i], entries.at(name).dtype);
  });
  file.finish();
  file.hand_over();
  WrittenShard written{.file_bytes = sums.file_bytes, .header_crc32c = sums.header};
  for (const SavedVariable& saved : variables) written.sums.push_back(sums.tensors.at(saved.saved_as));
  return written;
}

void read_shard(TaskVariables& all, const std::vector<VariableKey>& keys,
                const std::vector<SavedVariable>& variables, Device& host, const std::string& task) {
  std::map<std::string, SafetensorsReader> files;
  const auto missing = [&](const std::string& file) {
    return FailedPreconditionError("{} is not the same file on {}, or is not there", file, task);
  };
  for (const SavedVariable& saved : variables) {
    try {
      if (files.count(saved.file) == 0) files.emplace(saved.file, SafetensorsReader(saved.file));
    } catch (const Error&) {
      throw missing(saved.file);
    }
    const auto& entries = files.at(saved.file).entries();
    const auto entry = entries.find(saved.saved_as);
    if (entry == entries.end() || entry->second.shape != saved.shape) throw missing(saved.file);
  }
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const SavedVariable& saved = variables[i];
    SafetensorsReader& file = files.at(saved.file);
    const Tensor value(file.entries().at(saved.saved_as).dtype, saved.shape);
    if (file.read(saved.saved_as, value) != saved.crc32c) throw missing(saved.file);
    auto variable = all.find(keys[i]);
    if (!variable) variable = all.find_or_make(keys[i], value.dtype(), value.shape(), host);
    set_value(*variable, value);
  }
}

}  // namespace kolo::detail
