// One checkpoint on the disk: <prefix>.safetensors and <prefix>.index.json, written so that a crash never
// leaves a checkpoint that looks whole and is not, and read so that no damage stays unseen. No session here.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <kolo/core/training/checkpoint_index.h>
#include <kolo/core/training/safetensors.h>

namespace kolo {

inline constexpr char kCheckpointBasename[] = "model.ckpt";

std::string checkpoint_tensors_path(const std::string& prefix);
std::string checkpoint_index_path(const std::string& prefix);

/// What a checkpoint holds beside its tensors; the fields of CheckpointIndex.
struct CheckpointExtra {
  std::optional<std::int64_t> global_step = {};
  std::map<std::string, std::uint64_t> random_positions = {};
  std::map<std::string, std::string> state = {};
};

/// Both files of checkpoint `prefix`, on the disk when it returns; they replace older ones of that name.
/// Throws what DurableFile and write_safetensors throw; no temporary file is left then, and what was there
/// before is intact.
void write_checkpoint(const std::string& prefix, const std::map<std::string, Tensor>& tensors,
                      const CheckpointExtra& extra);
/// Both files, where they exist. Throws as DurableFile does.
void remove_checkpoint(const std::string& prefix);

/// An open checkpoint whose two files fit each other. One thread.
class CheckpointReader {
 public:
  /// Checks everything but the elements. Throws DataLossError `<file>: <what is wrong>`, the file without its
  /// folder: missing, of another size, another sum, or not what the index lists.
  explicit CheckpointReader(const std::string& prefix);

  const CheckpointIndex& index() const { return index_; }
  /// Reads all elements once, in pieces. Throws DataLossError `<file>: <what is wrong>` if a sum differs.
  void verify();
  /// Tensor `name` into `destination`, of its type and number of elements. Throws DataLossError if its sum
  /// differs.
  void read(const std::string& name, const Tensor& destination);

 private:
  void check_sum(const std::string& name, std::uint32_t found) const;

  std::string tensors_file_;
  CheckpointIndex index_;
  SafetensorsReader tensors_;
};

/// Names "model.ckpt-<step>" of which `directory` holds a file, or which its state file lists, highest step
/// first. An empty list if there is no such folder.
std::vector<std::string> list_checkpoints(const std::string& directory);

/// The first intact one of `names` in `directory`, as a path; nothing if there are no names. Each damaged one
/// on the way gets one warning, `ignoring model.ckpt-<N>: <file>: <what is wrong>`. Reads the whole
/// checkpoint that it returns. Throws DataLossError if there are checkpoints but none is intact.
std::optional<std::string> newest_intact_checkpoint(const std::string& directory,
                                                    const std::vector<std::string>& names);
inline std::optional<std::string> newest_intact_checkpoint(const std::string& directory) {
  return newest_intact_checkpoint(directory, list_checkpoints(directory));
}

/// Removes what a killed run was writing. For the one process that writes there.
void remove_stale_temporaries(const std::string& directory);

}  // namespace kolo
