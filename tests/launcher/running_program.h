// A program under test: started, watched, signalled and waited for with deadlines.
#pragma once

#include <string>
#include <vector>

#include <kolo/launcher/child.h>

namespace kolo::launcher {

class RunningProgram {
 public:
  explicit RunningProgram(const std::vector<std::string>& command);
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;
  /// Kills it if finish() was not called.
  ~RunningProgram();

  /// True when `text` has come `times` times on stdout; false after 30 s or at the end of the stream.
  bool wait_for(const std::string& text, int times = 1);
  /// The words that follow `text` on lines of stdout, in the order in which they came.
  std::vector<int> numbers_after(const std::string& text) const;
  void signal(int number) const;
  /// Reads on to the end: the exit code as a shell tells it. After 60 s: kills it and returns -1.
  int finish();
  void stop_reading() { child_.out = OwnedFd(); }

  pid_t pid() const { return child_.pid; }
  const std::string& out() const { return out_; }
  const std::string& err() const { return err_; }

 private:
  bool read_some(int wait_ms);

  Child child_;
  std::string out_, err_;
  bool finished_ = false;
};

/// kolorun of this build with these arguments; `variables` as NAME=VALUE.
std::vector<std::string> kolorun(std::vector<std::string> arguments, std::vector<std::string> variables = {});

}  // namespace kolo::launcher
