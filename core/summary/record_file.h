// A file of records as TensorFlow frames them (TFRecord): of each the length (u64), its masked CRC-32C, the
// bytes, their masked CRC-32C; little endian.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kolo::detail {

/// TensorFlow's mask of a sum that is stored beside what it is the sum of.
std::uint32_t masked_crc32c(std::string_view bytes);

/// One new file. Records are kept in memory until flush(). One thread at a time.
class RecordFile {
 public:
  /// Makes `path`, or, where something is there, `path`.1, .2, … Throws as throw_file_error does.
  explicit RecordFile(const std::string& path);
  /// Drops what was not flushed.
  ~RecordFile();
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  const std::string& path() const { return path_; }
  void append(std::string_view record);
  /// Hands them to the system. After a failure, which it throws, the file ends with whole records, and the
  /// next call tries again.
  void flush();

 private:
  std::string path_;
  int descriptor_ = -1;
  std::int64_t length_ = 0;  // of the file
  std::string waiting_;
};

}  // namespace kolo::detail
