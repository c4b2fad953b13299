// One process writes a checkpoint folder at a time.
#pragma once

#include <chrono>
#include <string>

namespace kolo::detail {

inline constexpr char kLockFile[] = "checkpoint.lock";

/// Holds `directory` from its construction to its destruction. The lock is flock's on the file kLockFile,
/// which says who holds it: the system gives it up with the process, however that ends, and what a killed one
/// leaves of it is in nobody's way. On NFS the server knows of it, too (Linux makes a lock of the file's
/// bytes of it). NFS may keep the lock of a host that is lost: a later start of the same job of kolorun's
/// (KOLO_JOB_START) then takes the file away and a new one in its place. One thread.
class FolderLock {
 public:
  /// How long a job that is started again waits for its predecessor, whose end may take a moment.
  static constexpr std::chrono::seconds kPatience{10};
  /// How long a later start of its job waits before it takes the lock away. Its processes are killed by then.
  static constexpr std::chrono::seconds kPatienceWithOwnJob{1};

  /// Throws FailedPreconditionError that names process and host of the holder: after `patience`, and at once
  /// where it is this process. On a file system without locks it holds nothing and warns. Throws what
  /// throw_file_error throws where the folder cannot be written.
  explicit FolderLock(const std::string& directory, std::chrono::milliseconds patience = kPatience);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  /// False on a file system without locks.
  bool is_held() const { return descriptor_ >= 0; }
  /// Throws FailedPreconditionError if a later start of this job has taken the folder: this process has then
  /// no right to write there any more.
  void require_unbroken() const;

 private:
  enum class Attempt { held, taken_by_another, impossible };
  Attempt try_once();
  bool is_at_its_path(int descriptor) const;
  std::string text() const;
  std::string holder() const;
  bool is_of_earlier_start() const;
  bool is_of_another_task() const;

  std::string path_;
  int descriptor_ = -1;
};

}  // namespace kolo::detail
