#include <kolo/core/training/durable_file.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include <kolo/core/base/error.h>

namespace kolo {

void throw_file_error(const std::string& what, int error_number) {
  const std::string text = fmt::format("cannot {}: {}", what, std::generic_category().message(error_number));
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG: throw ResourceExhaustedError("{}", text);
    case EACCES:
    case EPERM:
    case EROFS:
    case ENOENT:
    case ENOTDIR:
    case EISDIR: throw FailedPreconditionError("{}", text);
    default: throw UnknownError("{}", text);
  }
}

DurableFile::DurableFile(std::string path) : path_(std::move(path)), temporary_(path_ + kTemporarySuffix) {
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw_file_error("write " + path_, errno);
}

DurableFile::~DurableFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!published_) ::unlink(temporary_.c_str());
}

void DurableFile::write(const void* bytes, std::size_t count) {
  const char* next = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t written = ::write(descriptor_, next, count);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_file_error("write " + path_, errno);
    next += written;
    count -= static_cast<std::size_t>(written);
  }
}

void DurableFile::finish() {
  if (::fsync(descriptor_) != 0) throw_file_error("write " + path_, errno);
  // Some file systems report a full disk only here.
  if (::close(std::exchange(descriptor_, -1)) != 0) throw_file_error("write " + path_, errno);
}

void DurableFile::publish() {
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) throw_file_error("write " + path_, errno);
  published_ = true;
}

void sync_directory(const std::string& directory) {
  const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) throw_file_error("open the folder " + directory, errno);
  const int result = ::fsync(descriptor);
  const int error_number = errno;
  ::close(descriptor);
  // EINVAL: a file system without this notion (some network and FUSE ones); nothing more can be done there.
  if (result != 0 && error_number != EINVAL) throw_file_error("write the folder " + directory, error_number);
}

}  // namespace kolo
