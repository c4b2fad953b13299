// One process writes a checkpoint folder at a time.
#pragma once

#include <chrono>
#include <string>

namespace kolo::detail {

inline constexpr char kLockFile[] = "checkpoint.lock";

/// Holds `directory` from its construction to its destruction. The lock is flock's on the file kLockFile,
/// which says who holds it: the system gives it up with the process, however that ends, and what a killed one
/// leaves of it is in nobody's way. On NFS the server knows of it, too (Linux makes a lock of the file's
/// bytes of it). One thread.
class FolderLock {
 public:
  /// How long a job that is started again waits for its predecessor, whose end may take a moment.
  static constexpr std::chrono::seconds kPatience{10};

  /// Throws FailedPreconditionError that names process and host of the holder: after `patience`, and at once
  /// where it is this process. On a file system without locks it holds nothing and warns. Throws what
  /// throw_file_error throws where the folder cannot be written.
  explicit FolderLock(const std::string& directory, std::chrono::milliseconds patience = kPatience);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  /// False on a file system without locks.
  bool is_held() const { return descriptor_ >= 0; }

 private:
  enum class Attempt { held, taken_by_another, impossible };
  Attempt try_once();
  bool is_at_its_path(int descriptor) const;
  std::string holder() const;

  std::string path_;
  int descriptor_ = -1;
};

}  // namespace kolo::detail
