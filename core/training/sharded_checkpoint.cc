#include <kolo/core/training/sharded_checkpoint.h>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <map>
#include <random>
#include <utility>

#include <kolo/core/base/durable_file.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/file_error.h>
#include <kolo/core/base/log.h>

namespace kolo::detail {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kDigitsInName = 8;

std::string temporary_suffix(const ShardPlace& place) {
  return fmt::format(".{}.tmp", place.token.substr(0, kDigitsInName));
}

std::string random_token() {
  std::random_device source;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", source(), source(), source(), source());
}

// The token file while it lives; at its end nothing of the save is left under a temporary name.
class TokenFile {
 public:
  explicit TokenFile(const ShardPlace& place) : place_(place) {
    DurableFile file(token_path(place), token_path(place));
    file.write(place.token);
    file.finish();
    file.hand_over();
  }
  ~TokenFile() {
    std::error_code ignored;
    const std::string name = fs::path(place_.prefix).filename().string(), suffix = temporary_suffix(place_);
    std::vector<fs::path> left;
    for (fs::directory_iterator file(folder_of(place_.prefix), ignored), end; !ignored && file != end;
         file.increment(ignored)) {
      const std::string found = file->path().filename().string();
      if (found.starts_with(name) && found.ends_with(suffix)) left.push_back(file->path());
    }
    for (const fs::path& file : left) fs::remove(file, ignored);
  }
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;

 private:
  const ShardPlace place_;
};

void add_slice(CheckpointIndex& index, const ShardedVariable& from, int shard, std::uint32_t sum) {
  auto& entry = index.tensors[from.in_whole.whole];
  entry.dtype = from.dtype;
  entry.shape = from.in_whole.shape;
  entry.slices.push_back({.shard = shard,
                          .name = from.variable.saved_as,
                          .shape = from.variable.shape,
                          .axis = from.in_whole.axis,
                          .first = from.in_whole.first,
                          .crc32c = sum});
}

CheckpointIndex index_of(const std::vector<WrittenShard>& shards,
                         const std::vector<ShardedVariable>& variables, const CheckpointExtra& extra) {
  CheckpointIndex index;
  index.global_step = extra.global_step;
  index.random_positions = extra.random_positions;
  index.state = extra.state;
  std::vector<bool> written(variables.size(), false);
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const WrittenShard& shard = shards[i];
    index.shards.push_back({shard.file_bytes, shard.header_crc32c});
    for (std::size_t k = 0; k < shard.variables.size(); ++k) {
      const std::size_t variable = shard.variables[k];
      written.at(variable) = true;
      add_slice(index, variables[variable], static_cast<int>(i), shard.sums.at(k));
    }
  }
  const auto missing = std::find(written.begin(), written.end(), false);
  if (missing != written.end())
    throw InternalError("no task has written variable \"{}\"",
                        variables[static_cast<std::size_t>(missing - written.begin())].variable.name);
  for (auto& [name, entry] : index.tensors)
    std::sort(entry.slices.begin(), entry.slices.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
  return index;
}

void rename_file(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) throw_file_error("write " + to, errno);
}

// Of an earlier checkpoint of the same name and another form.
void remove_all_but(const std::string& prefix, const std::vector<std::string>& files) {
  for (const std::string& path : checkpoint_tensor_files(prefix))
    if (std::find(files.begin(), files.end(), path) == files.end() && ::unlink(path.c_str()) != 0 &&
        errno != ENOENT)
      throw_file_error("remove " + path, errno);
}

}  // namespace

std::string token_path(const ShardPlace& place) {
  return checkpoint_tensors_path(place.prefix) + temporary_suffix(place);
}
std::string shard_path(const ShardPlace& place) {
  return checkpoint_shard_path(place.prefix, place.shard, place.shards);
}
std::string shard_temporary_path(const ShardPlace& place) {
  return shard_path(place) + temporary_suffix(place);
}

void write_sharded_checkpoint(RemoteSession& session, const std::string& prefix,
                              const std::vector<ShardedVariable>& variables, const CheckpointExtra& extra) {
  ShardPlace place{.prefix = fs::absolute(prefix).lexically_normal().string(), .token = random_token()};
  std::vector<SavedVariable> saved;
  for (const ShardedVariable& variable : variables) saved.push_back(variable.variable);

  const TokenFile token(place);
  const std::vector<WrittenShard> shards = session.write_shards(place, saved);
  place.shards = static_cast<int>(shards.size());
  DurableFile index_file(checkpoint_index_path(place.prefix));
  index_file.write(checkpoint_index_text(index_of(shards, variables, extra)));
  index_file.finish();

  // All files are on the disk. The index last: a checkpoint exists from the moment on that it has one.
  std::vector<std::string> paths;
  for (place.shard = 0; place.shard < place.shards; ++place.shard) {
    rename_file(shard_temporary_path(place), shard_path(place));
    paths.push_back(shard_path(place));
  }
  index_file.publish();
  sync_directory(folder_of(place.prefix));
  remove_all_but(place.prefix, paths);
}

std::vector<bool> read_sharded_checkpoint(RemoteSession& session, const CheckpointIndex& index,
                                          const std::string& prefix,
                                          const std::vector<ShardedVariable>& variables) {
  std::vector<bool> none(variables.size(), false);
  std::vector<bool> read = none;
  std::vector<SavedVariable> wanted;
  const std::string absolute = fs::absolute(prefix).lexically_normal().string();
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const ShardedVariable& variable = variables[i];
    for (const auto& slice : index.tensors.at(variable.in_whole.whole).slices) {
      if (slice.shape != variable.variable.shape || slice.axis != variable.in_whole.axis ||
          slice.first != variable.in_whole.first)
        continue;
      wanted.push_back(variable.variable);
      wanted.back().saved_as = slice.name;
      wanted.back().file =
          checkpoint_shard_path(absolute, slice.shard, static_cast<int>(index.shards.size()));
      wanted.back().crc32c = slice.crc32c;
      read[i] = true;
    }
  }
  if (wanted.empty()) return none;
  try {
    session.read_shards(wanted);
    return read;
  } catch (const FailedPreconditionError& elsewhere) {
    log_info("{}; the values go there over the network", elsewhere.what());
    return none;
  }
}

}  // namespace kolo::detail
