// Short programs of others, such as scontrol, started by a process that has threads and MPI.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace kolo::detail {

/// Starts argv[0], sought in PATH, in a process group of its own with the signals of a new program; it reads
/// /dev/null. out, err: descriptors for what it writes, −1: /dev/null. By posix_spawn: fork() would copy what
/// MPI and a GPU have mapped. Returns −1, and errno says why, if it cannot be started. Any thread.
pid_t spawn_program(const std::vector<std::string>& argv, int out = -1, int err = -1);

struct ProgramEnd {
  bool good = false;               // it ended by itself, in time, with code 0
  std::string out = {}, err = {};  // what it wrote; err says so where it could not be started
};

/// Runs a program to its end. After `limit` it is killed, with its process group. Any thread.
ProgramEnd run_program(const std::vector<std::string>& argv, std::chrono::milliseconds limit);

/// Who runs a program and waits for its end: run_program with a limit, or a test's.
using RunProgram = std::function<ProgramEnd(const std::vector<std::string>& argv)>;
/// run_program with 5 s: for a question that a system answers at once.
ProgramEnd ask_program(const std::vector<std::string>& argv);

}  // namespace kolo::detail
