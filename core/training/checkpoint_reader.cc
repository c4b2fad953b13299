// Reading of checkpoints. Contract: checkpoint_files.h.
#include <filesystem>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/input_file.h>
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/checkpoint_files_internal.h>
#include <kolo/core/training/string_tensors.h>
#include <kolo/core/training/variable_slices.h>

namespace kolo {
namespace {

// An index takes about 100 bytes a tensor; nothing that is larger than this is one.
constexpr std::int64_t kBytesOfLength = 8;  // of a string, in encode_strings
constexpr std::uint64_t kMaxIndexBytes = std::uint64_t{1} << 28;

SafetensorsReader open_tensors(const std::string& path) {
  try {
    return SafetensorsReader(path, detail::base_name(path));
  } catch (const NotFoundError& missing) {
    throw DataLossError("{}", missing.what());
  }
}

}  // namespace

CheckpointIndex detail::read_checkpoint_index(const std::string& path) {
  const std::string file = detail::base_name(path);
  std::string text;
  try {
    text = InputFile(path, file).read_all(kMaxIndexBytes);
  } catch (const NotFoundError& missing) {
    throw DataLossError("{}", missing.what());
  }
  try {
    return parse_checkpoint_index(text);
  } catch (const DataLossError& wrong) {
    throw DataLossError("{}: {}", file, wrong.what());
  }
}

CheckpointReader::CheckpointReader(const std::string& prefix)
    : index_(detail::read_checkpoint_index(checkpoint_index_path(prefix))) {
  const int shards = static_cast<int>(index_.shards.size());
  if (shards == 0) open(checkpoint_tensors_path(prefix), index_.file_bytes, index_.header_crc32c);
  for (int i = 0; i < shards; ++i) {
    const auto& [bytes, header_crc32c] = index_.shards[static_cast<std::size_t>(i)];
    open(checkpoint_shard_path(prefix, i, shards), bytes, header_crc32c);
  }
  check_entries();
}

void CheckpointReader::open(const std::string& path, std::uint64_t bytes, std::uint32_t header_crc32c) {
  File file{detail::base_name(path), open_tensors(path)};
  if (file.tensors.file_bytes() != bytes)
    throw DataLossError("{}: {} bytes, but the index says {}", file.name, file.tensors.file_bytes(), bytes);
  if (file.tensors.header_crc32c() != header_crc32c)
    throw DataLossError("{}: the header's sum is {}, but the index says {}", file.name,
                        crc32c_text(file.tensors.header_crc32c()), crc32c_text(header_crc32c));
  files_.push_back(std::move(file));
}

void CheckpointReader::check_entry(std::size_t file, const std::string& name, DType dtype,
                                   const Shape& shape) const {
  const File& in = files_[file];
  const auto found = in.tensors.entries().find(name);
  const auto fits = [&](const SafetensorsEntry& entry) {
    // Each string takes the bytes of its length at least: no more are made than the file has.
    if (dtype == DType::string)
      return entry.dtype == DType::u8 && entry.shape.rank() == 1 &&
             shape.elements() <= entry.shape.elements() / kBytesOfLength;
    return entry.dtype == dtype && entry.shape == shape;
  };
  if (found == in.tensors.entries().end() || !fits(found->second))
    throw DataLossError("{}: tensor \"{}\" is not as the index lists it", in.name, name);
}

void CheckpointReader::check_entries() const {
  std::vector<std::size_t> listed(files_.size());
  for (const auto& [name, entry] : index_.tensors) {
    if (index_.shards.empty()) ++listed[0], check_entry(0, name, entry.dtype, entry.shape);
    if (!entry.slices.empty() && entry.dtype == DType::string)
      throw DataLossError("the index says that the strings \"{}\" are in slices", name);
    for (const auto& slice : entry.slices) {
      const auto file = static_cast<std::size_t>(slice.shard);
      ++listed[file], check_entry(file, slice.name, entry.dtype, slice.shape);
    }
  }
  for (std::size_t i = 0; i < files_.size(); ++i)
    if (files_[i].tensors.entries().size() != listed[i])
      throw DataLossError("{}: {} tensors, but the index lists {}", files_[i].name,
                          files_[i].tensors.entries().size(), listed[i]);
}

void CheckpointReader::check_sum(const File& file, const std::string& name, std::uint32_t expected,
                                 std::uint32_t found) {
  if (found != expected)
    throw DataLossError("{}: the sum of tensor \"{}\" is {}, but the index says {}", file.name, name,
                        crc32c_text(found), crc32c_text(expected));
}

void CheckpointReader::verify() {
  for (const auto& [name, entry] : index_.tensors) {
    if (index_.shards.empty()) check_sum(files_[0], name, entry.crc32c, files_[0].tensors.crc32c(name));
    for (const auto& slice : entry.slices) {
      File& file = files_[static_cast<std::size_t>(slice.shard)];
      check_sum(file, slice.name, slice.crc32c, file.tensors.crc32c(slice.name));
    }
  }
}

void CheckpointReader::read_strings(const std::string& name, const Tensor& destination) {
  File& file = files_[0];
  const Tensor encoded(DType::u8, file.tensors.entries().at(name).shape);
  check_sum(file, name, index_.tensors.at(name).crc32c, file.tensors.read(name, encoded));
  try {
    detail::decode_strings(encoded, destination);
  } catch (const DataLossError& wrong) {
    throw DataLossError("{}: the strings of tensor \"{}\": {}", file.name, name, wrong.what());
  }
}

void CheckpointReader::read(const std::string& name, const Tensor& destination) {
  const CheckpointIndex::TensorEntry& entry = index_.tensors.at(name);
  if (entry.dtype == DType::string) return read_strings(name, destination);
  if (index_.shards.empty())
    return check_sum(files_[0], name, entry.crc32c, files_[0].tensors.read(name, destination));
  const Tensor whole = destination.reshaped(entry.shape);
  for (const auto& slice : entry.slices) {
    File& file = files_[static_cast<std::size_t>(slice.shard)];
    const bool is_all = slice.shape == entry.shape;
    const Tensor part = is_all ? whole : Tensor(entry.dtype, slice.shape);
    check_sum(file, slice.name, slice.crc32c, file.tensors.read(slice.name, part));
    if (!is_all)
      detail::copy_in(part, {.whole = name, .shape = entry.shape, .axis = slice.axis, .first = slice.first},
                      whole);
  }
}

}  // namespace kolo
