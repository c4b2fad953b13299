// The safetensors format (https://github.com/huggingface/safetensors): 8 bytes of header length, a JSON
// header, the elements of the tensors. Other programs read what is written here, and the other way round.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include <kolo/core/tensor/tensor.h>

namespace kolo {

class DurableFile;
class InputFile;

/// A tensor of a file. begin, end: bytes from the end of the header on.
struct SafetensorsEntry {
  DType dtype = DType::f32;
  Shape shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::string unknown_type = {};  // "U64": the name of a type that kolo has not, of which dtype says nothing
};

/// What a reader can check: CRC-32C sums of the bytes before the data (length included) and of each tensor's
/// elements.
struct SafetensorsSums {
  std::uint64_t file_bytes = 0;
  std::uint32_t header = 0;
  std::map<std::string, std::uint32_t> tensors;
};

/// Writes all of a file: names sorted, elements row-major and without gaps, so equal tensors give equal
/// bytes. Streams from the tensors' own memory. Throws InvalidArgumentError for string tensors and for the
/// name "__metadata__", and what `file` throws.
SafetensorsSums write_safetensors(DurableFile& file, const std::map<std::string, Tensor>& tensors);
/// The same of values that need not be in memory at once. tensors: their types and shapes; value(name): asked
/// for in the order of the names, of that type and shape.
SafetensorsSums write_safetensors(DurableFile& file, const std::map<std::string, SafetensorsEntry>& tensors,
                                  const std::function<Tensor(const std::string& name)>& value);

/// An open file whose header has been checked: each offset lies in the file, fits its type and shape (where
/// kolo has the type; it is asked for only when the tensor is read), and the tensors cover the data without
/// gap or overlap. Memory is bounded by the header's size, which is checked against the file's before it is
/// allocated. One thread.
class SafetensorsReader {
 public:
  /// Errors about the content name the file `shown_as`, its path if that is empty. Throws NotFoundError
  /// `<file>: missing`, DataLossError `<file>: <what is wrong>`; `cannot read <path>: <reason>`, a
  /// FailedPreconditionError or UnknownError, where the content could not be looked at, as all functions do.
  explicit SafetensorsReader(const std::string& path, std::string shown_as = "");
  ~SafetensorsReader();
  SafetensorsReader(SafetensorsReader&& other) noexcept;
  SafetensorsReader& operator=(SafetensorsReader&& other) noexcept;

  const std::map<std::string, SafetensorsEntry>& entries() const { return entries_; }
  std::uint64_t file_bytes() const { return file_bytes_; }
  std::uint32_t header_crc32c() const { return header_crc32c_; }

  /// The elements into new memory. Throws NotFoundError for an unknown name, UnimplementedError for a tensor
  /// of a type that kolo has not, DataLossError if the file has
  /// become shorter.
  Tensor read(const std::string& name);
  /// The elements into `destination`, of the entry's type and number of elements. Returns their sum.
  std::uint32_t read(const std::string& name, const Tensor& destination);
  /// The sum of the elements, in pieces: needs no memory of their size.
  std::uint32_t crc32c(const std::string& name);

 private:
  const SafetensorsEntry& entry(const std::string& name) const;
  const SafetensorsEntry& known_entry(const std::string& name) const;
  void parse_header(const std::string& text);
  void check_cover() const;

  std::string shown_as_;
  std::unique_ptr<InputFile> file_;
  std::uint64_t file_bytes_ = 0;
  std::uint64_t data_begin_ = 0;
  std::uint32_t header_crc32c_ = 0;
  std::map<std::string, SafetensorsEntry> entries_;
};

}  // namespace kolo
