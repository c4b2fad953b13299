#include <kolo/core/base/durable_file.h>

#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <random>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/file_error.h>

namespace kolo {
namespace {

constexpr std::string_view kTemporarySuffix = ".tmp";
constexpr std::size_t kDigits = 8;  // that make a temporary name unique

// While one lives, a write beyond the limit of file sizes fails with EFBIG and nothing else: its signal, sent
// to the thread that writes, would end the process. The process's own handling of it is left alone.
class FileSizeSignalHeld {
 public:
  FileSizeSignalHeld() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~FileSizeSignalHeld() {
    if (sigismember(&before_, SIGXFSZ) == 1) return;  // it waits for somebody else
    const timespec at_once = {};
    while (sigtimedwait(&signal_, nullptr, &at_once) < 0 && errno == EINTR) continue;
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  FileSizeSignalHeld(const FileSizeSignalHeld&) = delete;
  FileSizeSignalHeld& operator=(const FileSizeSignalHeld&) = delete;

 private:
  sigset_t signal_, before_;
};

}  // namespace

void write_to(int descriptor, const std::string& path, const void* bytes, std::size_t count) {
  const FileSizeSignalHeld held;
  const char* next = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t written = ::write(descriptor, next, count);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_file_error("write " + path, errno);
    next += written;
    count -= static_cast<std::size_t>(written);
  }
}

DurableFile::DurableFile(std::string path) : path_(std::move(path)) {
  do {
    temporary_ = fmt::format("{}.{:08x}{}", path_, std::random_device()(), kTemporarySuffix);
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  } while (descriptor_ < 0 && errno == EEXIST);
  if (descriptor_ < 0) throw_file_error("write " + path_, errno);
}

DurableFile::DurableFile(std::string path, std::string temporary)
    : path_(std::move(path)), temporary_(std::move(temporary)) {
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw_file_error("write " + path_, errno);
}

DurableFile::~DurableFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!published_) ::unlink(temporary_.c_str());
}

void DurableFile::write(const void* bytes, std::size_t count) { write_to(descriptor_, path_, bytes, count); }

void DurableFile::finish() {
  if (::fsync(descriptor_) != 0) throw_file_error("write " + path_, errno);
  // Some file systems report a full disk only here.
  if (::close(std::exchange(descriptor_, -1)) != 0) throw_file_error("write " + path_, errno);
}

void DurableFile::publish() {
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) throw_file_error("write " + path_, errno);
  published_ = true;
}

void write_durable_file(const std::string& path, std::string_view bytes) {
  DurableFile file(path);
  file.write(bytes);
  file.finish();
  file.publish();
  sync_directory(folder_of(path));
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

std::string folder_of(const std::string& path) {
  const auto parent = std::filesystem::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

std::string target_of_temporary(const std::string& name) {
  if (!name.ends_with(kTemporarySuffix)) return "";
  std::string target = name.substr(0, name.size() - kTemporarySuffix.size());
  const std::size_t dot = target.rfind('.');
  if (dot == std::string::npos || target.size() - dot - 1 != kDigits) return target;
  const bool unique = std::all_of(target.begin() + static_cast<std::ptrdiff_t>(dot) + 1, target.end(),
                                  [](unsigned char letter) { return std::isxdigit(letter) != 0; });
  return unique ? target.substr(0, dot) : target;
}

}  // namespace kolo
