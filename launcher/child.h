// Child processes whose output comes through pipes, and the processes below them; signals as events in a poll
// loop; short programs of kolorun's own, run to their end.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kolo::launcher {

/// Owns a file descriptor.
class OwnedFd {
 public:
  explicit OwnedFd(int fd = -1) : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept { return std::swap(fd_, other.fd_), *this; }
  ~OwnedFd();
  int get() const { return fd_; }

 private:
  int fd_;
};

struct Child {
  pid_t pid = -1;
  OwnedFd out, err;  // read ends, non-blocking
};

/// Opens /dev/null on each of the descriptors 0, 1 and 2 that is closed, as daemons and cron wrappers leave
/// them. A pipe of kolorun's own would otherwise take the number of an output. Call it before anything is
/// opened.
void fill_standard_descriptors();

/// Has the system tell how children end, also where this process was started with SIGCHLD ignored. Call it
/// before any child is started.
void learn_how_children_end();

enum class Input { none, inherited };  // what a child reads: /dev/null, or this process's standard input

/// Starts argv[0] (sought in PATH) in a process group of its own, so that Ctrl-C reaches kolorun alone, which
/// then decides what the job gets. It ends when kolorun ends, however that happens. Throws NotFoundError if
/// it cannot be executed.
Child start_child(const std::vector<std::string>& argv, Input input = Input::none);

/// A file's bytes up to the first error, as when a process goes whose file in /proc is read; "" for no file.
std::string contents_of(const std::string& path);

/// Since the process was started or forked, not since its program began; the longest time there is for one
/// that has ended.
std::chrono::milliseconds age_of(pid_t pid);

struct ProcessId {
  pid_t pid = 0, group = 0;
};
/// The living children of `parent`.
std::vector<ProcessId> children_of(pid_t parent);

/// Signals each child of `parent` but `spared` with its whole process group, as mpirun does. Returns how many
/// there were.
int signal_children_of(pid_t parent, int signal, pid_t spared = -1);

/// Kills each child of this process but `spared` with its whole process group, and waits for their ends, two
/// seconds at most.
void kill_children(pid_t spared);

/// Signals the children of `mpirun` that are ranks, not what it has started for itself, as ssh. Returns how
/// many.
int signal_ranks_below(pid_t mpirun, int signal);
/// How many there are whose program has begun: a child of mpirun that has not come so far handles signals as
/// mpirun does, and would have it end the job.
int count_ranks_below(pid_t mpirun);

/// While it lives, SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2 and SIGCHLD wait here instead of acting on the
/// process, and SIGPIPE is ignored. A signal that was ignored at the start stays ignored: nohup ignores
/// SIGHUP, and a shell ignores SIGINT for a job that a script starts with &. One per process, made before any
/// thread. Children made by start_child do not inherit this.
class SignalQueue {
 public:
  SignalQueue();
  /// For poll: readable when next() has one.
  int fd() const { return fd_.get(); }
  /// The next signal's number; never waits.
  std::optional<int> next();
  /// Signals act on the process again, and those that wait do so now.
  void give_back();

 private:
  sigset_t before_;
  void (*pipe_before_)(int);
  OwnedFd fd_;
};

struct CapturedRun {
  bool good = false;  // it ended by itself, in time, with code 0
  std::string out, err;
  std::string why = {};     // it is not good, in a few words
  bool is_stopped = false;  // by a signal that came to this process
};

/// Ends the program, with its process group, when `limit` has passed, it has written 16 MiB or a signal has
/// come; the signal is then given to this process again, so that `signals` still has it. Without `signals`
/// those of this process are left alone. Throws NotFoundError if it cannot be started.
CapturedRun run_captured(const std::vector<std::string>& command, std::chrono::seconds limit,
                         SignalQueue* signals);

/// What a short program writes to stdout; nothing if it is not there, fails or takes over 5 s.
std::optional<std::string> ask_program(const std::vector<std::string>& command);

}  // namespace kolo::launcher
