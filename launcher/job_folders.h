// Folders of one job's own for what Open MPI keeps while it runs.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <kolo/launcher/child.h>
#include <kolo/launcher/mpi.h>

namespace kolo::launcher {

/// A folder of this user's alone (0700), for as long as the object lives. To make one removes those of the
/// same prefix in `parent` that belong to this user and whose owner, a process that was killed, does not live
/// any more.
class OwnFolder {
 public:
  static constexpr std::chrono::seconds kToLock{60};
  /// to_lock: a folder is made under another name, which it has until it is locked. What has that name and is
  /// younger stays.
  OwnFolder(const std::string& parent, const std::string& prefix, std::chrono::seconds to_lock = kToLock);
  ~OwnFolder();
  OwnFolder(OwnFolder&& other) noexcept
      : path_(std::exchange(other.path_, "")), lock_(std::move(other.lock_)) {}
  OwnFolder& operator=(OwnFolder&&) = delete;
  /// "" where it could not be made; errno then says why.
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  OwnedFd lock_;  // held while the job lives, so that no other kolorun takes the folder for a left one
};

/// One folder for Open MPI's session and one in /dev/shm for the memory that its ranks share. Open MPI names
/// both after host name and process id, which two containers can have in common. The constructor removes what
/// jobs of this user left whose kolorun was killed. One thread.
class JobFolders {
 public:
  /// shared: in place of /dev/shm. to_lock: as OwnFolder's.
  explicit JobFolders(const std::string& shared = "/dev/shm",
                      std::chrono::seconds to_lock = OwnFolder::kToLock);

  /// For a job that needs no such folders: removes what the constructor would.
  static void remove_left(const std::string& shared = "/dev/shm");

  /// What tells mpirun, as this MPI has it, of the folders. A folder that cannot be made is left out, and so
  /// is a setting that stands in `mpi_args` or that `variables` (names of the environment) hold.
  std::vector<std::string> settings(const Mpi& mpi, const std::vector<std::string>& mpi_args,
                                    const std::vector<std::string>& variables) const;

 private:
  struct Folder {
    bool of_session = false;  // else of the memory that ranks share
    OwnFolder folder;
  };
  std::vector<Folder> folders_;
};

}  // namespace kolo::launcher
