// kolorun as a program under test, over mpirun on this machine.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/launcher/running_program.h"

namespace kolo::launcher {

inline const std::string kRank = STOPPING_RANK;
// Says that it is ready and then ignores requests to stop.
inline const std::vector<std::string> kStubborn = {
    "sh", "-c", "trap '' TERM USR1; echo ready $$; while :; do sleep 0.1; done"};

struct Ended {
  int code;
  std::string out, err;
};

inline Ended run(std::vector<std::string> arguments, std::vector<std::string> variables = {}) {
  RunningProgram program(kolorun(std::move(arguments), std::move(variables)));
  const int code = program.finish();
  return {code, program.out(), program.err()};
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

inline std::vector<std::string> command(std::vector<std::string> arguments,
                                        const std::vector<std::string>& program) {
  arguments.push_back("--");
  arguments.insert(arguments.end(), program.begin(), program.end());
  return kolorun(arguments);
}

// Until it has a child with this word in its command line; at most 10 s.
inline bool wait_for_child(const RunningProgram& program, const std::string& word) {
  for (int look = 0; look < 10000; ++look) {
    for (const auto& child : children_of(program.pid())) {
      std::ifstream file("/proc/" + std::to_string(child.pid) + "/cmdline");
      const std::string line((std::istreambuf_iterator<char>(file)), {});
      if (line.find(word) != std::string::npos) return true;
    }
    poll(nullptr, 0, 1);
  }
  return false;
}

inline bool is_alive(int pid) { return kill(pid, 0) == 0; }

inline int mpirun_of(const RunningProgram& program) {
  const auto children = children_of(program.pid());
  EXPECT_THAT(children, testing::SizeIs(1));
  return children.empty() ? 0 : children[0].pid;
}

}  // namespace kolo::launcher
