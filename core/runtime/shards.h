// What is said between a saver and the tasks that write and read their own variables' files of a checkpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <kolo/core/tensor/shape.h>

namespace kolo::detail {

/// Of a checkpoint that is being written.
struct ShardPlace {
  std::string prefix;  // an absolute path; the files are <prefix>-00000-of-00002.safetensors, …
  std::string token;   // 32 hex digits: in the token file, whose name and the temporary ones have the first 8
  int shard = 0;
  int shards = 0;
};

/// A variable as a file holds it.
struct SavedVariable {
  std::string name;                        // of the variable
  std::string saved_as;                    // in the file
  Shape shape;                             // there; of as many elements as the variable
  std::optional<std::int64_t> value = {};  // of an integer scalar: written instead of the variable's own
  // When it is read.
  std::string file = {};  // an absolute path
  std::uint32_t crc32c = 0;
};

struct WrittenShard {
  std::vector<std::size_t> variables = {};  // by their places in what was asked for
  std::vector<std::uint32_t> sums = {};     // of each one's elements
  std::uint64_t file_bytes = 0;
  std::uint32_t header_crc32c = 0;
};

}  // namespace kolo::detail
