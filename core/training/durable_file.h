// Files that appear whole or not at all: written beside their place under a temporary name, forced to the
// disk, renamed.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kolo {

/// What a temporary name ends in; whatever has it in a checkpoint folder was left by a killed run.
inline constexpr char kTemporarySuffix[] = ".tmp";

/// The code and text of a failed system call: ResourceExhaustedError for a full disk, FailedPreconditionError
/// for what may not be written, UnknownError otherwise; `cannot <what>: <reason>`.
[[noreturn]] void throw_file_error(const std::string& what, int error_number);

/// One file being written. A failed call leaves the old file as it was; the destructor removes the temporary
/// one. One thread.
class DurableFile {
 public:
  /// Opens `path`.tmp. The folder must exist.
  explicit DurableFile(std::string path);
  ~DurableFile();
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;

  void write(const void* bytes, std::size_t count);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// All of it is on the disk, still under the temporary name. Nothing can be written any more.
  void finish();
  /// After finish(): replaces `path`. It survives a power cut once sync_directory() of its folder has
  /// returned.
  void publish();

 private:
  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
  bool published_ = false;
};

/// Forces the names in `directory` to the disk.
void sync_directory(const std::string& directory);

}  // namespace kolo
