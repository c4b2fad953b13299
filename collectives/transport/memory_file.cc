#include <kolo/collectives/transport/memory_file.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/mount.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

// Pages of memfd_create() are huge only if the administrator has changed a setting of the whole system
// (shmem_enabled). A file system of one's own may have them by itself: one that is mounted nowhere, and goes
// with its last file. Returns a file of it, or −1. Plain system calls: it also runs in a process that was
// cloned from one with several threads.
int file_in_huge_pages() {
  const auto system = static_cast<int>(syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC));
  if (system < 0) return -1;
  const bool made = syscall(SYS_fsconfig, system, FSCONFIG_SET_STRING, "huge", "advise", 0) == 0 &&
                    syscall(SYS_fsconfig, system, FSCONFIG_SET_STRING, "size", "0", 0) == 0 &&  // no limit
                    syscall(SYS_fsconfig, system, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) == 0;
  const auto mount = made ? static_cast<int>(syscall(SYS_fsmount, system, FSMOUNT_CLOEXEC, 0)) : -1;
  syscall(SYS_close, system);
  if (mount < 0) return -1;
  const auto file =
      static_cast<int>(syscall(SYS_openat, mount, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR));
  syscall(SYS_close, mount);
  return file;
}

bool write_text(const char* path, const std::string& text) {
  const auto file = static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC));
  if (file < 0) return false;
  const bool written = syscall(SYS_write, file, text.data(), text.size()) == static_cast<long>(text.size());
  syscall(SYS_close, file);
  return written;
}

// Who may mount nothing may do so in a namespace of his own. A child enters it, which shares our files and
// puts its own in the place of `file`.
void replace_in_own_namespace(int file) {
  const std::string user = fmt::format("{0} {0} 1", geteuid()), group = fmt::format("{0} {0} 1", getegid());
  sigset_t all, before;  // no handler of the program runs in the child
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const auto child = static_cast<pid_t>(syscall(SYS_clone, CLONE_FILES, 0, 0, 0, 0));
  if (child == 0) {
    int made = -1;
    if (syscall(SYS_unshare, CLONE_NEWUSER | CLONE_NEWNS) == 0 && write_text("/proc/self/uid_map", user) &&
        write_text("/proc/self/setgroups", "deny") && write_text("/proc/self/gid_map", group))
      made = file_in_huge_pages();
    if (made >= 0) syscall(SYS_dup3, made, file, O_CLOEXEC);
    if (made >= 0) syscall(SYS_close, made);
    syscall(SYS_exit_group, 0);
  }
  while (child > 0 && waitpid(child, nullptr, __WALL) < 0 && errno == EINTR) {
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

int make_memory_file() {
  if (const int file = file_in_huge_pages(); file >= 0) return file;
  const int file = memfd_create("kolo", MFD_CLOEXEC);
  if (file < 0) throw UnavailableError("memory for the ranks of a node: memfd_create: {}", strerror(errno));
  replace_in_own_namespace(file);
  return file;
}

}  // namespace kolo
