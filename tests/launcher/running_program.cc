#include "tests/launcher/running_program.h"
#include "tests/support/paths.h"

#include <kolo/core/base/child_program.h>

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>

namespace kolo::launcher {
namespace {

using Clock = std::chrono::steady_clock;

// Takes what is there; closes the stream at its end.
void read_into(OwnedFd& fd, std::string& text) {
  char bytes[65536];
  ssize_t count = 0;
  while (fd.get() >= 0 && (count = read(fd.get(), bytes, sizeof bytes)) >= 0) {
    if (count == 0) fd = OwnedFd();
    text.append(bytes, count);
  }
}

int occurrences(const std::string& all, const std::string& text) {
  int count = 0;
  for (size_t at = all.find(text); at != std::string::npos; at = all.find(text, at + 1)) ++count;
  return count;
}

}  // namespace

RunningProgram::RunningProgram(const std::vector<std::string>& command) : child_(start_child(command)) {}

RunningProgram::~RunningProgram() {
  if (finished_) return;
  kill(child_.pid, SIGKILL);
  waitpid(child_.pid, nullptr, 0);
}

bool RunningProgram::read_some(int wait_ms) {
  pollfd fds[] = {{child_.out.get(), POLLIN, 0}, {child_.err.get(), POLLIN, 0}};
  poll(fds, 2, wait_ms);
  read_into(child_.out, out_);
  read_into(child_.err, err_);
  return child_.out.get() >= 0 || child_.err.get() >= 0;
}

bool RunningProgram::wait_for(const std::string& text, int times) {
  const auto deadline = Clock::now() + std::chrono::seconds(30);
  while (occurrences(out_, text) < times)
    if (Clock::now() > deadline || !read_some(100)) return occurrences(out_, text) >= times;
  return true;
}

std::vector<int> RunningProgram::numbers_after(const std::string& text) const {
  std::vector<int> numbers;
  for (size_t at = out_.find(text); at != std::string::npos; at = out_.find(text, at + 1))
    numbers.push_back(std::atoi(out_.c_str() + at + text.size()));
  return numbers;
}

void RunningProgram::signal(int number) const { kill(child_.pid, number); }

int RunningProgram::finish() {
  const auto deadline = Clock::now() + std::chrono::seconds(60);
  int status = 0;
  while (waitpid(child_.pid, &status, WNOHANG) == 0) {
    if (Clock::now() > deadline) {
      kill(child_.pid, SIGKILL);
      waitpid(child_.pid, nullptr, 0);
      finished_ = true;
      return -1;
    }
    if (!read_some(20)) poll(nullptr, 0, 20);
  }
  finished_ = true;
  read_some(0);
  return detail::shell_code(status);
}

std::vector<std::string> kolorun(std::vector<std::string> arguments, std::vector<std::string> variables) {
  std::vector<std::string> command = {"env"};  // becomes kolorun, so that signals reach it
  command.insert(command.end(), variables.begin(), variables.end());
  command.push_back(program_path("kolorun"));
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

}  // namespace kolo::launcher
