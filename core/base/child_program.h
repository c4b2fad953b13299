// Short programs of others, such as scontrol, started by a process that has threads and MPI.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace kolo::detail {

/// Starts argv[0], sought in PATH, in a process group of its own with the signals of a new program; it reads
/// /dev/null. out, err: descriptors for what it writes, −1: /dev/null. By posix_spawn: fork() would copy what
/// MPI and a GPU have mapped. Returns −1, and errno says why, if it cannot be started. Any thread.
pid_t spawn_program(const std::vector<std::string>& argv, int out = -1, int err = -1);

/// A shell's exit code of a process that a signal ended is this and the signal's number.
inline constexpr int kBySignal = 128;
/// The exit code as a shell tells it.
int shell_code(int wait_status);

/// Where a process ignores SIGCHLD the system keeps no exit code of its children: they may have failed.
inline constexpr int kLostCode = -1;
inline constexpr char kCodeIsLost[] = "its exit code is lost, as this program ignores SIGCHLD";
/// The shell_code of a child that has ended, or kLostCode; nothing while it runs. waits: until it has ended.
/// Tells each end once. Any thread.
std::optional<int> code_of_child(pid_t pid, bool waits = false);

struct ProgramEnd {
  bool good = false;  // it ended by itself, in time, with code 0
  // What it wrote. err also says why it could not be started or be waited for.
  std::string out = {}, err = {};
  bool is_code_lost = false;        // it ended in time, and nobody knows how
  bool is_ended_by_signal = false;  // of another: it was not run_program's limit
};

/// Runs a program to its end. After `limit` it is killed, with its process group. Any thread.
ProgramEnd run_program(const std::vector<std::string>& argv, std::chrono::milliseconds limit);

/// Who runs a program and waits for its end: run_program with a limit, or a test's.
using RunProgram = std::function<ProgramEnd(const std::vector<std::string>& argv)>;
/// run_program with 5 s: for a question that a system answers at once.
ProgramEnd ask_program(const std::vector<std::string>& argv);

}  // namespace kolo::detail
