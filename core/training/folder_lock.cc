#include <kolo/core/training/folder_lock.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include <kolo/core/base/batch_job.h>
#include <kolo/core/base/env.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/file_error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/process.h>
#include <kolo/core/base/text.h>

namespace kolo::detail {
namespace {

using Clock = std::chrono::steady_clock;

// Of lines in the lock's file.
constexpr std::string_view kStart = "start ", kArray = "array ";
constexpr auto kBetweenAttempts = std::chrono::milliseconds(50);

std::string this_process() { return fmt::format("process {} on {}", getpid(), process().hostname); }

struct JobStart {
  std::string job;
  std::int64_t number = 0;  // from 1
};

// `<job>:<number>`, as kolorun writes it.
std::optional<JobStart> parse_start(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  const auto number = parse_int64(text.substr(colon + 1));
  return number ? std::optional(JobStart{std::string(text.substr(0, colon)), *number}) : std::nullopt;
}

// For who finds the folder locked. Not needed for the lock: a full disk is told of when something is saved.
void write_holder(int descriptor) {
  const std::string start = env_string("KOLO_JOB_START").value_or("");
  const BatchJob job = find_batch_job();
  std::string text = this_process() + "\n";
  if (!start.empty()) text += fmt::format("{}{}\n", kStart, start);
  if (!job.array.empty()) text += fmt::format("{}{} {}\n", kArray, job.array, job.job);
  if (::ftruncate(descriptor, 0) != 0) return;
  [[maybe_unused]] const ssize_t written = ::pwrite(descriptor, text.data(), text.size(), 0);
}

// What follows `words` in its line of the file; "" if there is none.
std::string entry(const std::string& file, std::string_view words) {
  for (size_t line = 0; (line = file.find('\n', line)) != std::string::npos;)
    if (const size_t begin = ++line; file.compare(begin, words.size(), words) == 0)
      return file.substr(begin + words.size(), file.find('\n', begin) - begin - words.size());
  return "";
}

}  // namespace

FolderLock::FolderLock(const std::string& directory, std::chrono::milliseconds patience)
    : path_((std::filesystem::path(directory) / kLockFile).string()) {
  const auto begin = Clock::now(), deadline = begin + patience;
  for (bool told = false;; told = true) {
    const Attempt attempt = try_once();
    if (attempt == Attempt::held) return;
    if (attempt == Attempt::impossible) {
      log_warning("the file system of {} knows no locks: nothing keeps a second training from writing there",
                  directory);
      return;
    }
    const std::string other = holder();
    if (Clock::now() - begin >= kPatienceWithOwnJob && is_of_earlier_start()) {
      log_warning(
          "{} still holds the lock of the checkpoint folder {}, which it has from an earlier start of this "
          "job; it is taken away",
          other, directory);
      ::unlink(path_.c_str());
      continue;
    }
    // A task of a job array would only wait to go on with the training of another.
    const bool is_of_array = is_of_another_task();
    if (other == this_process() || is_of_array || Clock::now() >= deadline)
      throw FailedPreconditionError(
          "the checkpoint folder {} is in use: {} writes it and has locked {}; one training at a time can: "
          "{}, or give this one a folder of its own{}",
          directory, other == this_process() ? "this process itself" : other, path_,
          other == this_process() ? "close the session that does so first" : "wait until it has ended",
          is_of_array ? " (another task of this job array: put {array} into --checkpoint-dir)" : "");
    if (!told) log_info("waiting for {}, which writes the checkpoint folder {}", other, directory);
    // There is no event to wait for: flock has no deadline of its own.
    std::this_thread::sleep_for(kBetweenAttempts);
  }
}

FolderLock::~FolderLock() {
  if (descriptor_ < 0) return;
  // While it is locked: whoever opens the path from here on gets a new file.
  if (is_at_its_path(descriptor_)) ::unlink(path_.c_str());
  ::close(descriptor_);
}

FolderLock::Attempt FolderLock::try_once() {
  for (;;) {
    // For writing, without which NFS gives no exclusive lock.
    const int descriptor = ::open(path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (descriptor < 0) throw_file_error("write " + path_, errno);
    int result = 0;
    while ((result = ::flock(descriptor, LOCK_EX | LOCK_NB)) != 0 && errno == EINTR) continue;
    const int error_number = result == 0 ? 0 : errno;
    // Its last holder may have removed the file between the two calls: then the lock is one of nothing.
    if (result == 0 && is_at_its_path(descriptor)) {
      descriptor_ = descriptor;
      write_holder(descriptor);
      return Attempt::held;
    }
    ::close(descriptor);
    switch (error_number) {
      case 0:
      case ESTALE: continue;  // removed by another host
      case EWOULDBLOCK: return Attempt::taken_by_another;
      case ENOLCK:
      case ENOSYS:
      case EOPNOTSUPP: ::unlink(path_.c_str()); return Attempt::impossible;
      default: throw_file_error("lock " + path_, error_number);
    }
  }
}

bool FolderLock::is_at_its_path(int descriptor) const {
  struct stat opened = {}, found = {};
  return ::fstat(descriptor, &opened) == 0 && ::lstat(path_.c_str(), &found) == 0 &&
         opened.st_dev == found.st_dev && opened.st_ino == found.st_ino;
}

void FolderLock::require_unbroken() const {
  if (descriptor_ < 0 || is_at_its_path(descriptor_)) return;
  throw FailedPreconditionError(
      "{} is not this process's any more: a later start of the job has taken the folder, and nothing is "
      "saved "
      "there by this one",
      path_);
}

// Anything may stand in the file.
std::string FolderLock::text() const {
  std::array<char, 400> text = {};
  const int descriptor = ::open(path_.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  const ssize_t bytes = descriptor < 0 ? 0 : ::pread(descriptor, text.data(), text.size(), 0);
  if (descriptor >= 0) ::close(descriptor);
  return std::string(text.data(), std::max<ssize_t>(bytes, 0));
}

// As it says itself.
std::string FolderLock::holder() const {
  const std::string said = text();
  const auto end =
      std::find_if(said.begin(), said.end(), [](char letter) { return letter < ' ' || letter > '~'; });
  return end == said.begin() ? "another process" : std::string(said.begin(), end);
}

bool FolderLock::is_of_earlier_start() const {
  const auto its = parse_start(entry(text(), kStart));
  const auto own = parse_start(env_string("KOLO_JOB_START").value_or(""));
  return its && own && its->job == own->job && its->number < own->number;
}

bool FolderLock::is_of_another_task() const {
  const BatchJob own = find_batch_job();
  const std::string its = entry(text(), kArray);
  return !own.array.empty() && its.starts_with(own.array + " ") && its != own.array + " " + own.job;
}

}  // namespace kolo::detail
