#include <kolo/core/base/input_file.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/file_error.h>

namespace kolo {

InputFile::InputFile(const std::string& path, std::string shown_as)
    : path_(path), shown_as_(std::move(shown_as)) {
  if (shown_as_.empty()) shown_as_ = path;
  // Without O_NONBLOCK the opening of a pipe would wait for somebody to write.
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor_ < 0) {
    if (errno == ENOENT) throw NotFoundError("{}: missing", shown_as_);
    if (errno == ENXIO) throw DataLossError("{}: not a file", shown_as_);  // a socket
    throw_file_error("read " + path_, errno);
  }
  struct stat status = {};
  const int error_number = ::fstat(descriptor_, &status) == 0 ? 0 : errno;
  if (error_number == 0 && S_ISREG(status.st_mode)) {
    bytes_ = static_cast<std::uint64_t>(status.st_size);
    return;
  }
  ::close(descriptor_);
  if (error_number != 0) throw_file_error("read " + path_, error_number);
  throw DataLossError("{}: not a file", shown_as_);
}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)),
      shown_as_(std::move(other.shown_as_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      bytes_(other.bytes_) {}

InputFile& InputFile::operator=(InputFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(shown_as_, other.shown_as_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

void InputFile::read(std::uint64_t offset, void* destination, std::size_t count) {
  char* next = static_cast<char*>(destination);
  while (count > 0) {
    const ssize_t taken = ::pread(descriptor_, next, count, static_cast<off_t>(offset));
    if (taken < 0 && errno == EINTR) continue;
    if (taken < 0) throw_file_error("read " + path_, errno);
    if (taken == 0) throw DataLossError("{}: ends at byte {}", shown_as_, offset);
    next += taken;
    offset += static_cast<std::uint64_t>(taken);
    count -= static_cast<std::size_t>(taken);
  }
}

std::string InputFile::read_all(std::uint64_t most_bytes) {
  if (bytes_ > most_bytes)
    throw DataLossError("{}: {} bytes; at most {} are taken", shown_as_, bytes_, most_bytes);
  std::string text(bytes_, '\0');
  read(0, text.data(), text.size());
  return text;
}

std::string text_or_nothing(const std::string& path, std::uint64_t most_bytes) {
  try {
    return InputFile(path).read_all(most_bytes);
  } catch (const Error&) {
    return "";
  }
}

}  // namespace kolo
