// model.ckpt-<step>.index.json: what stands beside the tensors of a checkpoint, and the sums that tell
// whether any of it has changed. It depends on the saved state alone: no time, host or path.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <kolo/core/tensor/dtype.h>
#include <kolo/core/tensor/shape.h>

namespace kolo {

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
