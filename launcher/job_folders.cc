#include <kolo/launcher/job_folders.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <utility>

namespace kolo::launcher {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "kolo-mpi-";
constexpr const char* kUnlocked = "new-";  // before the name of a folder whose owner has not locked it yet

// What Open MPI calls a folder, on the command line and in the environment.
struct Name {
  const char* option;
  const char* setting;
  const char* variables;  // their names' start
};
constexpr Name kSession = {"--mca", "orte_tmpdir_base", "OMPI_MCA_"},
               kSharedMemory = {"--mca", "btl_vader_backing_directory", "OMPI_MCA_"},
               kSessionOfPrte = {"--prtemca", "prte_tmpdir_base", "PRTE_MCA_"},
               kSharedMemoryOf5 = {"--mca", "btl_sm_backing_directory", "OMPI_MCA_"};

OwnedFd locked(const fs::path& folder, int how) {
  OwnedFd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (fd.get() >= 0 && flock(fd.get(), LOCK_EX | how) != 0) fd = OwnedFd();
  return fd;
}

// The system takes a lock away when its process ends, and knows it in every PID namespace, where numbers of
// processes mean nothing to another.
void remove_left_folders(const fs::path& parent, const std::string& prefix, std::chrono::seconds to_lock) {
  std::error_code error;
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end; entry.increment(error)) {
    if (!entry->path().filename().string().starts_with(prefix)) continue;
    const OwnedFd lock = locked(entry->path(), LOCK_NB);
    struct stat found = {};
    if (lock.get() < 0 || fstat(lock.get(), &found) != 0 || found.st_uid != geteuid()) continue;
    std::error_code ignored;
    if (std::time(nullptr) - found.st_ctime >= to_lock.count()) fs::remove_all(entry->path(), ignored);
  }
}

// And whether Open MPI's session goes there.
std::vector<std::pair<bool, fs::path>> parents(const std::string& shared) {
  std::error_code error;
  const fs::path temporary = fs::temp_directory_path(error);
  std::vector<std::pair<bool, fs::path>> all = {{true, temporary}, {false, shared}};
  std::erase_if(all, [](const auto& entry) { return entry.second.empty(); });
  return all;
}

bool is_set(const Name& name, const std::vector<std::string>& mpi_args,
            const std::vector<std::string>& variables) {
  const auto holds = [](const std::vector<std::string>& words, const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  return holds(mpi_args, name.setting) || holds(variables, std::string(name.variables) + name.setting);
}

}  // namespace

OwnFolder::OwnFolder(const std::string& parent, const std::string& prefix, std::chrono::seconds to_lock) {
  remove_left_folders(parent, prefix, std::chrono::seconds(0));
  remove_left_folders(parent, kUnlocked + prefix, to_lock);
  std::string path = (fs::path(parent) / (kUnlocked + prefix)).string() + "XXXXXX";
  if (mkdtemp(path.data()) == nullptr) return;
  path_ = std::move(path);
  lock_ = locked(path_, 0);  // waits for another that looks at it just now
  const std::string name = fs::path(path_).filename().string().substr(std::strlen(kUnlocked));
  std::error_code failed;
  fs::rename(path_, fs::path(parent) / name, failed);
  if (!failed) path_ = fs::path(parent) / name;
}

OwnFolder::~OwnFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

JobFolders::JobFolders(const std::string& shared, std::chrono::seconds to_lock) {
  for (const auto& [of_session, parent] : parents(shared)) {
    OwnFolder folder(parent, kPrefix, to_lock);
    if (!folder.path().empty()) folders_.push_back({of_session, std::move(folder)});
  }
}

void JobFolders::remove_left(const std::string& shared) {
  for (const auto& [of_session, parent] : parents(shared))
    remove_left_folders(parent, kPrefix, std::chrono::seconds(0));
}

std::vector<std::string> JobFolders::settings(const Mpi& mpi, const std::vector<std::string>& mpi_args,
                                              const std::vector<std::string>& variables) const {
  std::vector<std::string> words;
  for (const auto& [of_session, folder] : folders_) {
    const Name& name = of_session ? (mpi.has_prte() ? kSessionOfPrte : kSession)
                                  : (mpi.has_prte() ? kSharedMemoryOf5 : kSharedMemory);
    if (!is_set(name, mpi_args, variables))
      words.insert(words.end(), {name.option, name.setting, folder.path()});
  }
  return words;
}

}  // namespace kolo::launcher
