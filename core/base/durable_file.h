// Files that appear whole or not at all: written beside their place under a temporary name, forced to the
// disk, renamed.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kolo {

/// One file being written. A failed call throws as throw_file_error does (`cannot write <path>: …`) and
/// leaves the old file as it was; a file size limit (RLIMIT_FSIZE) is such an error and does not end the
/// process. The destructor removes the temporary file. One thread.
class DurableFile {
 public:
  /// Opens a new file `path`.xxxxxxxx.tmp, x being digits of no meaning: nobody else has it, and no link is
  /// followed. The folder must exist.
  explicit DurableFile(std::string path);
  /// The same under a temporary name that the caller has chosen and that nobody has.
  DurableFile(std::string path, std::string temporary);
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
  /// Instead of publish(): it stays under its temporary name, for another process to rename.
  void hand_over() { published_ = true; }

 private:
  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
  bool published_ = false;
};

/// Writes all of it to an open file. Throws as DurableFile does; some of it may be there then.
void write_to(int descriptor, const std::string& path, const void* bytes, std::size_t count);

/// All of it in one: the file is on the disk, under its name, when it returns.
void write_durable_file(const std::string& path, std::string_view bytes);

/// Forces the names in `directory` to the disk.
void sync_directory(const std::string& directory);

/// The folder that `path` lies in: "." for a bare name.
std::string folder_of(const std::string& path);

/// The name that a file with this temporary name was to get; "" if it is no temporary name. Older versions
/// of kolo wrote `path`.tmp.
std::string target_of_temporary(const std::string& name);

}  // namespace kolo
