// Regular files from outside, read at places: what is wrong with their content is told from what keeps them
// from being read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace kolo {

/// An open file. Movable; one thread.
class InputFile {
 public:
  /// shown_as: what errors about its content call it; "": its path. Throws NotFoundError `<file>: missing`,
  /// DataLossError `<file>: not a file` for folders, pipes and devices, for none of which it waits, and what
  /// throw_file_error throws, `cannot read <path>: …`.
  explicit InputFile(const std::string& path, std::string shown_as = "");
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) noexcept;

  /// Of this object; for libraries that read by themselves.
  int descriptor() const { return descriptor_; }
  /// When it was opened.
  std::uint64_t bytes() const { return bytes_; }
  /// Throws DataLossError `<file>: ends at byte <n>` if it has become shorter, and what throw_file_error
  /// throws.
  void read(std::uint64_t offset, void* destination, std::size_t count);
  /// All of it. Throws DataLossError, before any memory is taken, if that is more than `most_bytes`.
  std::string read_all(std::uint64_t most_bytes);

 private:
  std::string path_;
  std::string shown_as_;
  int descriptor_ = -1;
  std::uint64_t bytes_ = 0;
};

/// All of the file; "" where it is missing, cannot be read or has more than `most_bytes`.
std::string text_or_nothing(const std::string& path, std::uint64_t most_bytes);

}  // namespace kolo
