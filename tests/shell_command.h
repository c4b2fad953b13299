// Runs a command as a user would, and takes what it prints.
#pragma once

#include <stdio.h>
#include <sys/wait.h>

#include <array>
#include <string>

namespace kolo {

struct Ended {
  int code = 0;  // 128 + the signal where one ended it
  std::string output;
};

/// output: what it prints on stdout; end the command with 2>&1 for all.
inline Ended run_command(const std::string& command) {
  Ended ended;
  FILE* const pipe = popen(command.c_str(), "r");
  std::array<char, 4096> piece;
  for (std::size_t bytes; (bytes = fread(piece.data(), 1, piece.size(), pipe)) > 0;)
    ended.output.append(piece.data(), bytes);
  const int status = pclose(pipe);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ended;
}

}  // namespace kolo
