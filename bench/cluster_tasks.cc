#include <bench/cluster_tasks.h>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/free_ports.h>

namespace kolo::bench {
namespace {

constexpr std::chrono::seconds kPatience{10};
constexpr int kNotStarted = 127;

}  // namespace

ClusterSpec loopback_cluster(int servers, int workers) {
  const FreePorts ports(servers + workers);
  std::vector<std::string> addresses;
  for (int i = 0; i < servers + workers; ++i) addresses.push_back(fmt::format("127.0.0.1:{}", ports[i]));
  const auto first_worker = addresses.begin() + servers;
  const std::vector<std::string> of_servers(addresses.begin(), first_worker),
      of_workers(first_worker, addresses.end());
  return ClusterSpec({{"ps", of_servers}, {"worker", of_workers}});
}

TaskProcess::TaskProcess(const std::string& program, std::vector<std::string> arguments) {
  const auto path = std::filesystem::read_symlink("/proc/self/exe").parent_path() / program;
  std::vector<char*> words = {const_cast<char*>(path.c_str())};
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw UnavailableError("kolo-bench: the system gives no pipe");
  child_ = ::fork();
  if (child_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(ends[1], STDOUT_FILENO);
    ::execv(path.c_str(), words.data());
    ::_exit(kNotStarted);
  }
  ::close(ends[1]);
  output_ = ends[0];
  if (child_ < 0) throw UnavailableError("kolo-bench: the system gives no process");
}

TaskProcess::TaskProcess(TaskProcess&& other) noexcept
    : child_(std::exchange(other.child_, -1)),
      output_(std::exchange(other.output_, -1)),
      read_(std::move(other.read_)) {}

TaskProcess::~TaskProcess() {
  if (output_ >= 0) ::close(output_);
  if (child_ <= 0) return;
  ::kill(child_, SIGTERM);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (::waitpid(child_, nullptr, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > end) ::kill(child_, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

bool TaskProcess::next_line(std::string& line) {
  while (true) {
    if (const auto end = read_.find('\n'); end != std::string::npos) {
      line = read_.substr(0, end);
      read_.erase(0, end + 1);
      return true;
    }
    char block[4096];
    const auto came = ::read(output_, block, sizeof(block));
    if (came <= 0) return false;
    read_.append(block, static_cast<std::size_t>(came));
  }
}

int TaskProcess::wait() {
  int status = 0;
  ::waitpid(std::exchange(child_, -1), &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::int64_t TaskProcess::resident_bytes() const {
  std::ifstream file(fmt::format("/proc/{}/statm", child_));
  std::int64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

std::vector<TaskProcess> start_servers(const ClusterSpec& cluster) {
  std::vector<TaskProcess> servers;
  for (int i = 0; i < cluster.num_tasks("ps"); ++i)
    servers.emplace_back("kolo-server", std::vector<std::string>{"--cluster", cluster.to_json(), "--job",
                                                                 "ps", "--task", std::to_string(i)});
  return servers;
}

}  // namespace kolo::bench
