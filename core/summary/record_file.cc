#include <kolo/core/summary/record_file.h>

#include <fcntl.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <utility>

#include <kolo/core/base/crc32c.h>
#include <kolo/core/base/durable_file.h>
#include <kolo/core/base/file_error.h>

namespace kolo::detail {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie in memory");

template <typename T>
std::string_view bytes_of(const T& number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

}  // namespace

std::uint32_t masked_crc32c(std::string_view bytes) {
  const std::uint32_t crc = crc32c(bytes.data(), bytes.size());
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

RecordFile::RecordFile(const std::string& path) : path_(path) {
  for (int again = 1;; ++again) {
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (descriptor_ >= 0) return;
    if (errno != EEXIST) throw_file_error("write " + path_, errno);
    path_ = path + '.' + std::to_string(again);
  }
}

RecordFile::~RecordFile() { ::close(descriptor_); }

void RecordFile::append(std::string_view record) {
  const std::uint64_t length = record.size();
  waiting_ += bytes_of(length);
  waiting_ += bytes_of(masked_crc32c(bytes_of(length)));
  waiting_ += record;
  waiting_ += bytes_of(masked_crc32c(record));
}

void RecordFile::flush() {
  if (waiting_.empty()) return;
  try {
    write_to(descriptor_, path_, waiting_.data(), waiting_.size());
  } catch (...) {
    // What was written of them would be written again.
    if (::ftruncate(descriptor_, length_) == 0) ::lseek(descriptor_, length_, SEEK_SET);
    throw;
  }
  length_ += static_cast<std::int64_t>(waiting_.size());
  waiting_.clear();
}

}  // namespace kolo::detail
