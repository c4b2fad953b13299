// The files of checkpoints: their index, the list of a folder, and what is in both.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <kolo/core/tensor/dtype.h>
#include <kolo/core/tensor/shape.h>
#include <kolo/core/tensor/tensor.h>
#include <kolo/core/training/safetensors.h>

namespace kolo {

// model.ckpt-<step>.index.json: what stands beside the tensors of a checkpoint, and the sums that tell
// whether any of it has changed. It depends on the saved state alone: no time, host or path.

inline constexpr char kCheckpointBasename[] = "model.ckpt";

/// What `<prefix>.index.json` holds: step, places and sums of the tensors, and saved states.
struct CheckpointIndex {
  /// A tensor of a shard that is one of this checkpoint, or so many slices of it along one axis.
  struct Slice {
    int shard = 0;
    std::string name;  // there
    Shape shape;
    int axis = 0;
    std::int64_t first = 0;
    std::uint32_t crc32c = 0;
  };
  struct TensorEntry {
    DType dtype = DType::f32;
    Shape shape;
    std::uint32_t crc32c = 0;        // of the elements, where they lie in one file
    std::vector<Slice> slices = {};  // of a sharded checkpoint; together the whole, first ones first
  };
  /// One file of a sharded checkpoint.
  struct Shard {
    std::uint64_t file_bytes = 0;
    std::uint32_t header_crc32c = 0;
  };

  std::optional<std::int64_t> global_step;
  std::uint64_t file_bytes = 0;     // of the safetensors file
  std::uint32_t header_crc32c = 0;  // of its bytes before the data, the length field included
  std::vector<Shard> shards = {};   // instead of that one, where tasks wrote one each
  std::map<std::string, TensorEntry> tensors;
  std::map<std::string, std::uint64_t> random_positions;  // by the random op's node name
  std::map<std::string, std::string> state;               // by name, each a JSON value as compact text
};

/// "e3069283": how files and programs write a sum.
std::string crc32c_text(std::uint32_t sum);

/// JSON with sorted names; its last field is the sum of all the text before it. Equal indexes give equal
/// text. Throws InvalidArgumentError if a value of `state` is not JSON.
std::string checkpoint_index_text(const CheckpointIndex& index);
/// Throws DataLossError that says what is wrong with `text`: cut, changed in any bit, or not an index.
CheckpointIndex parse_checkpoint_index(const std::string& text);

/// What kolo-inspect prints: global_step, tensors and the rest of the index as one line of JSON with sorted
/// names.
std::string checkpoint_summary_json(const CheckpointIndex& index);

}  // namespace kolo

namespace kolo::detail {

// Which checkpoints of a saver are there, and which of them go when another one comes.

struct CheckpointListOptions {
  int max_to_keep = 5;  // 0: all, and the list has the newest alone
  std::optional<double> keep_every_n_hours = {};
};

/// One thread.
class CheckpointList {
 public:
  using Clock = std::chrono::system_clock;
  explicit CheckpointList(const CheckpointListOptions& options, Clock::time_point now = Clock::now());

  /// `path` has been saved, or is what a training goes on from: it stands last. Returns what is over
  /// max_to_keep now and to be removed: not those that were saved so many hours after the last one that stays
  /// for ever.
  std::vector<std::string> add(const std::string& path, Clock::time_point now = Clock::now());
  /// Of an earlier run, oldest first: they count as saved now.
  void recover(const std::vector<std::string>& paths, Clock::time_point now = Clock::now());
  /// Oldest first.
  const std::vector<std::string>& paths() const { return paths_; }
  /// Writes the state file that names `newest` into its folder.
  void write_state(const std::string& newest, const std::string& filename) const;

 private:
  CheckpointListOptions options_;
  std::optional<Clock::time_point> next_kept_;
  std::vector<std::string> paths_;
  std::vector<Clock::time_point> times_;  // of each
};

}  // namespace kolo::detail

namespace kolo {

// The files of a checkpoint, an index and one or several with tensors: written so that they are there whole
// or not at all, read with their sums checked.

/// "<prefix>.safetensors", the tensors of a checkpoint, and "<prefix>.index.json", its index.
std::string checkpoint_tensors_path(const std::string& prefix);
std::string checkpoint_index_path(const std::string& prefix);
/// "<prefix>-00000-of-00002.safetensors": of a checkpoint whose tensors the tasks of a cluster wrote.
std::string checkpoint_shard_path(const std::string& prefix, int shard, int shards);
/// The checkpoint that a file is of, by its name: that of its index, its tensors or a shard; "" for others.
std::string checkpoint_of_file(const std::string& path);
/// Files with tensors of checkpoint `prefix` that are there, of whichever form. Throws where the folder
/// cannot be listed.
std::vector<std::string> checkpoint_tensor_files(const std::string& prefix);

/// What a checkpoint holds beside its tensors; the fields of CheckpointIndex.
struct CheckpointExtra {
  std::optional<std::int64_t> global_step = {};
  std::map<std::string, std::uint64_t> random_positions = {};
  std::map<std::string, std::string> state = {};
  // Called when all is written, before the first file gets its name; what it throws leaves no trace.
  std::function<void()> before_publishing = {};
};

/// Makes the folder where it is missing. Throws FailedPreconditionError if it is a file or cannot be made.
void make_checkpoint_folder(const std::string& directory);

/// Both files of checkpoint `prefix`, on the disk when it returns; they replace older ones of that name, one
/// after the other: whoever wants the old one whatever happens gives the new one another name. Throws what
/// DurableFile and write_safetensors throw; no temporary file is left then, and what was there before is
/// intact. Strings, which that format lacks, stand in its file as bytes: u8 [bytes], the length of each (8
/// bytes, the lowest first), then all of them; the index tells them from numbers.
void write_checkpoint(const std::string& prefix, const std::map<std::string, Tensor>& tensors,
                      const CheckpointExtra& extra);
/// All files, where they exist. Throws as DurableFile does.
void remove_checkpoint(const std::string& prefix);

/// An open checkpoint whose files fit each other. One thread.
class CheckpointReader {
 public:
  /// Checks everything but the elements. Throws DataLossError `<file>: <what is wrong>`, the file without its
  /// folder: missing, of another size, another sum, or not what the index lists. What keeps a file from being
  /// read, now or later, is another error: `cannot read <path>: <reason>`.
  explicit CheckpointReader(const std::string& prefix);

  const CheckpointIndex& index() const { return index_; }
  /// Reads all elements once, in pieces. Throws DataLossError `<file>: <what is wrong>` if a sum differs.
  void verify();
  /// Tensor `name` into `destination`, of its type and number of elements. Throws DataLossError if its sum
  /// differs.
  void read(const std::string& name, const Tensor& destination);

 private:
  struct File {
    std::string name;
    SafetensorsReader tensors;
  };
  void open(const std::string& path, std::uint64_t bytes, std::uint32_t header_crc32c);
  // What a file must hold: of a tensor, or of a slice of one.
  void check_entry(std::size_t file, const std::string& name, DType dtype, const Shape& shape) const;
  void check_entries() const;
  void read_strings(const std::string& name, const Tensor& destination);
  static void check_sum(const File& file, const std::string& name, std::uint32_t expected,
                        std::uint32_t found);

  CheckpointIndex index_;
  std::vector<File> files_;
};

/// Names "<basename>-<step>" of which `directory` holds an index (of "model.ckpt", any file), or which its
/// state file lists, highest step first. An empty list if there is no such folder; throws where it cannot be
/// listed.
std::vector<std::string> list_checkpoints(const std::string& directory);

/// What list_checkpoints gave for `directory`, as Saver::recover_last_checkpoints takes it: paths, lowest
/// step first.
std::vector<std::string> paths_oldest_first(const std::string& directory,
                                            const std::vector<std::string>& names);

/// The first intact one of `names` in `directory`, as a path; nothing if there are no names. Each damaged one
/// on the way gets one warning, `ignoring model.ckpt-<N>: <file>: <what is wrong>`. Reads the whole
/// checkpoint that it returns. Throws DataLossError if there are checkpoints but none is intact, and what
/// CheckpointReader throws for one that cannot be read: an older one does not take its place.
std::optional<std::string> newest_intact_checkpoint(const std::string& directory,
                                                    const std::vector<std::string>& names);
/// Of those that are there, also while another process saves and removes checkpoints there.
std::optional<std::string> newest_intact_checkpoint(const std::string& directory);

/// The same for those who use a network, and do not train it on. The warning names both steps. Throws
/// DataLossError, too, where one is damaged and only that of step 0 is left: nobody wants the answers of an
/// untrained network in the place of a trained one's.
std::optional<std::string> newest_trained_checkpoint(const std::string& directory);

/// The path that the state file names as the newest, unread; nothing without a state file, and, with a
/// warning, where files of that checkpoint are missing.
std::optional<std::string> latest_checkpoint(const std::string& directory);

/// What a killed run was writing of checkpoints "<basename>-<step>" and of the state file: a checkpoint that
/// lacked nothing but the name of its index gets it, the rest is removed. For the one process that writes
/// there.
void finish_cut_saves(const std::string& directory, const std::string& basename = kCheckpointBasename);

/// Entries are as written: relative ones are meant from the folder of the state file on.
struct CheckpointState {
  std::string model_checkpoint_path;                    // the newest
  std::vector<std::string> all_model_checkpoint_paths;  // oldest first
};

/// `model_checkpoint_path: "model.ckpt-20"`, then a line `all_model_checkpoint_paths: "…"` for each, as
/// TensorFlow writes it.
std::string checkpoint_state_text(const CheckpointState& state);
/// Nothing if `text` is not of that form.
std::optional<CheckpointState> parse_checkpoint_state(const std::string& text);

/// Nothing if the file is missing; a damaged one, and what is no file, counts as missing, with the warning
/// `Checkpoint ignored: …`. Throws where it cannot be read.
std::optional<CheckpointState> read_checkpoint_state(const std::string& directory,
                                                     const std::string& filename = "checkpoint");
/// Atomically, and on the disk when it returns. Throws as DurableFile does.
void write_checkpoint_state(const CheckpointState& state, const std::string& directory,
                            const std::string& filename = "checkpoint");

}  // namespace kolo
