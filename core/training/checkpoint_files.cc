#include <kolo/core/training/checkpoint_files.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <sstream>
#include <system_error>
#include <utility>

#include <unistd.h>

#include <kolo/core/base/crc32c.h>
#include <kolo/core/base/durable_file.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/file_error.h>
#include <kolo/core/base/input_file.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/text.h>
#include <kolo/core/training/checkpoint_files_internal.h>
#include <kolo/core/training/string_tensors.h>

namespace kolo {
namespace {

namespace fs = std::filesystem;

// A line for each checkpoint of the folder.
constexpr std::uint64_t kMaxStateBytes = std::uint64_t{1} << 24;

constexpr char kStateFile[] = "checkpoint";

std::string join(const std::string& directory, const std::string& filename) {
  return (fs::path(directory) / filename).string();
}

// N of "<basename>-N"; nothing for other names.
std::optional<std::int64_t> step_of(const std::string& name) {
  const std::size_t dash = name.rfind('-');
  if (dash == std::string::npos || dash == 0) return std::nullopt;
  const auto step = parse_int64(std::string_view(name).substr(dash + 1));
  return step && *step >= 0 ? step : std::nullopt;
}

bool is_of(const std::string& basename, const std::string& name) {
  return step_of(name) && name.substr(0, name.rfind('-')) == basename;
}

// An index tells a checkpoint of whatever basename from other programs' files; without it, only our own name
// does.
std::string checkpoint_listed_by(const std::string& file) {
  const std::string name = checkpoint_of_file(file);
  return file == checkpoint_index_path(name) || is_of(kCheckpointBasename, name) ? name : "";
}

[[noreturn]] void throw_folder_error(const std::string& what, const std::string& directory,
                                     const std::error_code& error) {
  if (error == std::errc::not_a_directory && fs::exists(directory))
    throw FailedPreconditionError("the checkpoint folder {} is a file", directory);
  throw_file_error(fmt::format("{} the checkpoint folder {}", what, directory), error.value());
}

// "-00000-of-00002".
constexpr std::string_view kOf = "-of-";
constexpr std::size_t kShardDigits = 5;
constexpr std::size_t kShardEnding = 1 + kShardDigits + kOf.size() + kShardDigits;

// shard, shards of "model.ckpt-20-00000-of-00002"; nothing for other names.
std::optional<std::pair<int, int>> shard_of(const std::string& name) {
  if (name.size() <= kShardEnding) return std::nullopt;
  const std::string_view ending = std::string_view(name).substr(name.size() - kShardEnding);
  if (ending[0] != '-' || ending.substr(1 + kShardDigits, kOf.size()) != kOf) return std::nullopt;
  const auto all_digits = [](std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char letter) { return letter >= '0' && letter <= '9'; });
  };
  const std::string_view shard = ending.substr(1, kShardDigits),
                         shards = ending.substr(kShardEnding - kShardDigits);
  if (!all_digits(shard) || !all_digits(shards)) return std::nullopt;
  return std::pair(static_cast<int>(*parse_int64(shard)), static_cast<int>(*parse_int64(shards)));
}

// Names of all that is in `directory`; none if there is no such folder. What cannot be listed is no empty
// folder: a training would begin at step 0 and write over what is there.
std::vector<std::string> files_of(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator file(directory, error), end; !error && file != end; file.increment(error))
    names.push_back(file->path().filename().string());
  if (error && error != std::errc::no_such_file_or_directory) throw_folder_error("list", directory, error);
  return names;
}

}  // namespace

std::string checkpoint_tensors_path(const std::string& prefix) { return prefix + ".safetensors"; }
std::string checkpoint_index_path(const std::string& prefix) { return prefix + ".index.json"; }
std::string checkpoint_shard_path(const std::string& prefix, int shard, int shards) {
  return checkpoint_tensors_path(fmt::format("{}-{:05}-of-{:05}", prefix, shard, shards));
}

std::string checkpoint_of_file(const std::string& path) {
  const std::string index = checkpoint_index_path(""), tensors = checkpoint_tensors_path("");
  if (path.ends_with(index)) return path.substr(0, path.size() - index.size());
  if (!path.ends_with(tensors)) return "";
  std::string name = path.substr(0, path.size() - tensors.size());
  if (shard_of(name)) name.resize(name.size() - kShardEnding);
  return name;
}

std::vector<std::string> checkpoint_tensor_files(const std::string& prefix) {
  const std::string name = detail::base_name(prefix), index = checkpoint_index_path(name);
  std::vector<std::string> paths;
  for (const std::string& file : files_of(folder_of(prefix)))
    if (file != index && checkpoint_of_file(file) == name) paths.push_back(join(folder_of(prefix), file));
  std::sort(paths.begin(), paths.end());
  return paths;
}

void write_checkpoint(const std::string& prefix, const std::map<std::string, Tensor>& tensors,
                      const CheckpointExtra& extra) {
  std::map<std::string, Tensor> stored = tensors;
  for (auto& [name, tensor] : stored)
    if (tensor.dtype() == DType::string) tensor = detail::encode_strings(tensor);
  DurableFile tensors_file(checkpoint_tensors_path(prefix));
  const SafetensorsSums sums = write_safetensors(tensors_file, stored);
  CheckpointIndex index{.global_step = extra.global_step,
                        .file_bytes = sums.file_bytes,
                        .header_crc32c = sums.header,
                        .tensors = {},
                        .random_positions = extra.random_positions,
                        .state = extra.state};
  for (const auto& [name, tensor] : tensors)
    index.tensors[name] = {tensor.dtype(), tensor.shape(), sums.tensors.at(name)};
  DurableFile index_file(checkpoint_index_path(prefix));
  index_file.write(checkpoint_index_text(index));

  tensors_file.finish();
  index_file.finish();
  if (extra.before_publishing) extra.before_publishing();
  // The index last: a checkpoint exists from the moment on that it has one.
  tensors_file.publish();
  index_file.publish();
  sync_directory(folder_of(prefix));
}

void make_checkpoint_folder(const std::string& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) throw_folder_error("make", directory, error);
}

void remove_checkpoint(const std::string& prefix) {
  // The index first: what is left of a checkpoint without one is none.
  std::vector<std::string> paths = checkpoint_tensor_files(prefix);
  paths.insert(paths.begin(), checkpoint_index_path(prefix));
  for (const std::string& path : paths)
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) throw_file_error("remove " + path, errno);
}

std::vector<std::string> list_checkpoints(const std::string& directory) {
  std::vector<std::string> names;
  for (const std::string& file : files_of(directory)) names.push_back(checkpoint_listed_by(file));
  if (const auto state = read_checkpoint_state(directory)) {
    names.push_back(detail::base_name(state->model_checkpoint_path));
    for (const std::string& path : state->all_model_checkpoint_paths)
      names.push_back(detail::base_name(path));
  }
  std::vector<std::pair<std::int64_t, std::string>> by_step;
  for (const std::string& name : names)
    if (const auto step = step_of(name)) by_step.emplace_back(*step, name);
  std::sort(by_step.begin(), by_step.end(), std::greater<>());
  by_step.erase(std::unique(by_step.begin(), by_step.end()), by_step.end());
  names.clear();
  for (auto& [step, name] : by_step) names.push_back(std::move(name));
  return names;
}

std::vector<std::string> paths_oldest_first(const std::string& directory,
                                            const std::vector<std::string>& names) {
  std::vector<std::string> paths;
  for (const std::string& name : names) paths.push_back(join(directory, name));
  std::reverse(paths.begin(), paths.end());
  return paths;
}

namespace {

// A damaged checkpoint, and what is wrong with it.
struct Damage {
  std::string name, what;
};

// The name of the first intact one, and the damaged ones before it.
std::optional<std::string> first_intact(const std::string& directory, const std::vector<std::string>& names,
                                        std::vector<Damage>& damaged) {
  for (const std::string& name : names) {
    try {
      CheckpointReader(join(directory, name)).verify();
      return name;
    } catch (const DataLossError& damage) {
      damaged.push_back({name, damage.what()});
    } catch (const Error& error) {
      throw_error(error.code(),
                  fmt::format("{}; this says nothing about what {} holds, so no older checkpoint "
                              "is taken in its place: make it readable, or move it away",
                              error.what(), name));
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> newest_intact_checkpoint(const std::string& directory,
                                                    const std::vector<std::string>& names) {
  std::vector<Damage> damaged;
  const auto found = first_intact(directory, names, damaged);
  for (const Damage& one : damaged) log_warning("ignoring {}: {}", one.name, one.what);
  if (found) return join(directory, *found);
  if (names.empty()) return std::nullopt;
  throw DataLossError(
      "none of the {} checkpoints in {} is intact; training does not start from step 0 beside them: repair "
      "or remove them",
      names.size(), directory);
}

namespace {

// A training that goes on beside us removes old checkpoints when it has made new ones.
template <typename Find>
std::optional<std::string> found_in(const std::string& directory, const Find& find) {
  for (auto names = list_checkpoints(directory);;) {
    try {
      return find(directory, names);
    } catch (const DataLossError&) {
      const auto now = list_checkpoints(directory);
      if (now == names) throw;
      names = now;
    }
  }
}

std::optional<std::string> trained_one_of(const std::string& directory,
                                          const std::vector<std::string>& names) {
  std::vector<Damage> damaged;
  const auto found = first_intact(directory, names, damaged);
  if (!found) return newest_intact_checkpoint(directory, names);  // nothing, or the error that none is intact
  if (!damaged.empty() && step_of(*found) == 0)
    throw DataLossError(
        "{} in {} is damaged: {}; the only intact checkpoint there is that of step 0, the untrained network: "
        "put back a copy of the file, or train again",
        damaged.front().name, directory, damaged.front().what);
  for (const Damage& one : damaged)
    log_warning("ignoring {}: {}; step {} is taken in place of step {}", one.name, one.what,
                step_of(*found).value_or(0), step_of(one.name).value_or(0));
  return join(directory, *found);
}

}  // namespace

std::optional<std::string> newest_intact_checkpoint(const std::string& directory) {
  return found_in(directory, [](const std::string& folder, const std::vector<std::string>& names) {
    return newest_intact_checkpoint(folder, names);
  });
}

std::optional<std::string> newest_trained_checkpoint(const std::string& directory) {
  return found_in(directory, trained_one_of);
}

namespace {

bool has_all_shards(const std::string& prefix) {
  std::map<int, int> there;  // files, by how many there should be
  for (const std::string& path : checkpoint_tensor_files(prefix)) {
    const std::string name = detail::base_name(path);
    const std::size_t ending = checkpoint_tensors_path("").size();
    if (const auto shard = shard_of(name.substr(0, name.size() - ending))) ++there[shard->second];
  }
  return std::any_of(there.begin(), there.end(), [](const auto& n) { return n.first == n.second; });
}

}  // namespace

std::optional<std::string> latest_checkpoint(const std::string& directory) {
  const auto state = read_checkpoint_state(directory);
  if (!state) return std::nullopt;
  const std::string prefix = (fs::path(directory) / state->model_checkpoint_path).string();
  std::error_code error;
  if (fs::exists(checkpoint_index_path(prefix), error) &&
      (fs::exists(checkpoint_tensors_path(prefix), error) || has_all_shards(prefix)))
    return prefix;
  if (error) throw_file_error("look for " + prefix, error.value());
  log_warning("Couldn't match files for checkpoint {}", prefix);
  return std::nullopt;
}

namespace {

// Whether nothing but the name of this index is missing: all files were on the disk before the first one of
// those with the tensors got its name.
bool is_all_but_named(const std::string& directory, const std::string& temporary, const std::string& index) {
  const std::string checkpoint = checkpoint_of_file(index);
  if (index != checkpoint_index_path(checkpoint) || fs::exists(join(directory, index))) return false;
  const std::string prefix = join(directory, checkpoint);
  if (!fs::exists(checkpoint_tensors_path(prefix)) && !has_all_shards(prefix)) return false;
  try {
    detail::read_checkpoint_index(join(directory, temporary));
    return true;
  } catch (const DataLossError&) {
    return false;
  }
}

}  // namespace

void finish_cut_saves(const std::string& directory, const std::string& basename) {
  for (const std::string& name : files_of(directory)) {
    const std::string target = target_of_temporary(name);
    if (target != kStateFile && !is_of(basename, checkpoint_of_file(target))) continue;
    const std::string path = join(directory, name), place = join(directory, target);
    if (is_all_but_named(directory, name, target)) {
      if (::rename(path.c_str(), place.c_str()) != 0) throw_file_error("rename " + path, errno);
      sync_directory(directory);
      log_info("the save of {} was cut before its end and is finished now", checkpoint_of_file(target));
    } else if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
      throw_file_error("remove " + path, errno);
    }
  }
}

namespace {

constexpr char kNewest[] = "model_checkpoint_path: ";
constexpr char kAll[] = "all_model_checkpoint_paths: ";

std::string quoted(const std::string& path) {
  std::string text = "\"";
  for (const char letter : path) {
    if (letter == '"' || letter == '\\') text += '\\';
    if (letter == '\n') text += "\\n";
    else text += letter;
  }
  return text + '"';
}

// The whole line after `key` as a quoted string.
std::optional<std::string> unquoted(const std::string& text) {
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') return std::nullopt;
  std::string path;
  for (std::size_t i = 1; i + 1 < text.size(); ++i) {
    if (text[i] == '"') return std::nullopt;
    if (text[i] != '\\') {
      path += text[i];
      continue;
    }
    if (++i + 1 >= text.size()) return std::nullopt;
    path += text[i] == 'n' ? '\n' : text[i];
  }
  return path;
}

}  // namespace

std::string checkpoint_state_text(const CheckpointState& state) {
  std::string text = kNewest + quoted(state.model_checkpoint_path) + "\n";
  for (const std::string& path : state.all_model_checkpoint_paths) text += kAll + quoted(path) + "\n";
  return text;
}

std::optional<CheckpointState> parse_checkpoint_state(const std::string& text) {
  if (text.empty() || text.back() != '\n') return std::nullopt;
  CheckpointState state;
  bool has_newest = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const bool is_newest = line.starts_with(kNewest);
    if (!is_newest && !line.starts_with(kAll)) return std::nullopt;
    const auto path = unquoted(line.substr(is_newest ? sizeof kNewest - 1 : sizeof kAll - 1));
    if (!path || path->empty() || (is_newest && has_newest)) return std::nullopt;
    if (is_newest) {
      state.model_checkpoint_path = *path;
      has_newest = true;
    } else {
      state.all_model_checkpoint_paths.push_back(*path);
    }
  }
  if (!has_newest) return std::nullopt;
  return state;
}

std::optional<CheckpointState> read_checkpoint_state(const std::string& directory,
                                                     const std::string& filename) {
  const std::string path = join(directory, filename);
  try {
    auto state = parse_checkpoint_state(InputFile(path).read_all(kMaxStateBytes));
    if (!state) throw DataLossError("{}: it does not list checkpoints line by line", path);
    return state;
  } catch (const NotFoundError&) {
    return std::nullopt;
  } catch (const DataLossError& damage) {
    log_warning("Checkpoint ignored: {}; the folder's own files are taken instead", damage.what());
    return std::nullopt;
  }
}

void write_checkpoint_state(const CheckpointState& state, const std::string& directory,
                            const std::string& filename) {
  write_durable_file(join(directory, filename), checkpoint_state_text(state));
}

}  // namespace kolo
