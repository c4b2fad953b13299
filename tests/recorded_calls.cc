#include "tests/recorded_calls.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <map>
#include <mutex>
#include <utility>

#include <kolo/core/base/durable_file.h>

namespace kolo {
namespace {

struct Record {
  std::string folder;
  std::vector<std::string> calls;
  std::map<std::string, int> failures;
  std::map<std::string, std::function<void()>> actions;
};

std::mutex mutex;
Record* record = nullptr;  // of the RecordedCalls that lives

std::string path_of(int descriptor) {
  char path[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  const ssize_t bytes = readlink(link.c_str(), path, sizeof path);
  return {path, static_cast<std::size_t>(std::max<ssize_t>(bytes, 0))};
}

// "" for what is not in the folder.
std::string name_of(const std::string& path) {
  if (path == record->folder) return ".";
  if (path.rfind(record->folder + "/", 0) != 0) return "";
  const std::string name = path.substr(record->folder.size() + 1);
  const std::string target = target_of_temporary(name);
  return target.empty() ? name : target + ".tmp";
}

// The errno with which the call is to fail, 0 for none.
int note(const char* call, const std::string& path, bool changes) {
  const int before = errno;
  std::unique_lock lock(mutex);
  if (record == nullptr) return 0;
  const std::string name = name_of(path);
  errno = before;
  if (name.empty()) return 0;
  const std::string text = std::string(call) + " " + name;
  const bool again = !record->calls.empty() && record->calls.back() == text && text.rfind("write", 0) == 0;
  if (changes && !again) record->calls.push_back(text);
  const auto failure = record->failures.find(text);
  const int result = failure == record->failures.end() ? 0 : failure->second;
  const auto action = record->actions.extract(text);
  lock.unlock();
  if (action) action.mapped()();
  return result;
}

// The C library's, or a sanitizer's.
template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

int failed(int error_number) {
  errno = error_number;
  return -1;
}

}  // namespace

RecordedCalls::RecordedCalls(const std::string& folder) {
  const std::lock_guard lock(mutex);
  record = new Record{folder, {}, {}, {}};
}

RecordedCalls::~RecordedCalls() {
  const std::lock_guard lock(mutex);
  delete record;
  record = nullptr;
}

std::vector<std::string> RecordedCalls::calls() const {
  const std::lock_guard lock(mutex);
  return record->calls;
}

bool RecordedCalls::is_before(const std::string& first, const std::string& second) const {
  const auto all = calls();
  const auto last_of_first = std::find(all.rbegin(), all.rend(), first);
  const auto first_of_second = std::find(all.begin(), all.end(), second);
  return last_of_first != all.rend() && first_of_second != all.end() &&
         last_of_first.base() <= first_of_second;
}

void RecordedCalls::fail(const std::string& call, int error_number) {
  const std::lock_guard lock(mutex);
  record->failures[call] = error_number;
}

void RecordedCalls::before(const std::string& call, std::function<void()> action) {
  const std::lock_guard lock(mutex);
  record->actions[call] = std::move(action);
}

}  // namespace kolo

extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  if (const int error = kolo::note("open", path, false)) return kolo::failed(error);
  static const auto real = kolo::next<int(const char*, int, ...)>("open");
  return real(path, flags, mode);
}

ssize_t write(int descriptor, const void* bytes, size_t count) {
  if (const int error = kolo::note("write", kolo::path_of(descriptor), true)) return kolo::failed(error);
  static const auto real = kolo::next<ssize_t(int, const void*, size_t)>("write");
  return real(descriptor, bytes, count);
}

ssize_t pread(int descriptor, void* bytes, size_t count, off_t offset) {
  if (const int error = kolo::note("read", kolo::path_of(descriptor), false)) return kolo::failed(error);
  static const auto real = kolo::next<ssize_t(int, void*, size_t, off_t)>("pread");
  return real(descriptor, bytes, count, offset);
}

int fsync(int descriptor) {
  if (const int error = kolo::note("fsync", kolo::path_of(descriptor), true)) return kolo::failed(error);
  static const auto real = kolo::next<int(int)>("fsync");
  return real(descriptor);
}

int rename(const char* from, const char* to) noexcept {
  if (const int error = kolo::note("rename", to, true)) return kolo::failed(error);
  static const auto real = kolo::next<int(const char*, const char*)>("rename");
  return real(from, to);
}

int unlink(const char* path) noexcept {
  if (const int error = kolo::note("unlink", path, true)) return kolo::failed(error);
  static const auto real = kolo::next<int(const char*)>("unlink");
  return real(path);
}

int flock(int descriptor, int operation) noexcept {
  if (const int error = kolo::note("lock", kolo::path_of(descriptor), false)) return kolo::failed(error);
  static const auto real = kolo::next<int(int, int)>("flock");
  return real(descriptor, operation);
}

dirent* readdir(DIR* directory) {
  if (const int error = kolo::note("list", kolo::path_of(dirfd(directory)), false)) {
    errno = error;
    return nullptr;
  }
  static const auto real = kolo::next<dirent*(DIR*)>("readdir");
  return real(directory);
}

}  // extern "C"
