#include <kolo/launcher/host_watch.h>

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>

// The process writes lines: `round <requests seen> <hosts>`, `host <slots> <name>` for each of the list,
// `there <index>` or `silent <index> <why>` for each as soon as it is known, `over`; and `warning <text>` at
// any time. It reads bytes: kLook to look at once, kRest to look no more until then.
namespace kolo::launcher {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr char kLook = '?', kRest = '.';

class Watcher {
 public:
  Watcher(const WatchPlan& plan, int in, int out)
      : plan_(plan), in_(in), out_(out), probe_(plan.agent), hosts_(plan.listed) {}
  [[noreturn]] void run();

 private:
  void say(std::string line);
  void discover();
  void look(bool looks_up);
  bool wait();

  const WatchPlan& plan_;
  const int in_, out_;
  HostProbe probe_;
  std::vector<Host> hosts_;
  int requests_ = 0;
  bool rests_ = false;
  bool warned_ = false;
};

void Watcher::say(std::string line) {
  line += '\n';
  for (size_t at = 0; at < line.size();) {
    const ssize_t count = write(out_, line.data() + at, line.size() - at);
    if (count < 0 && errno != EINTR) _exit(0);  // nobody reads any more
    at += std::max<ssize_t>(count, 0);
  }
}

void Watcher::discover() {
  if (plan_.discover.empty()) return;
  std::string why;
  try {
    const CapturedRun run = run_captured({"sh", "-c", plan_.discover}, plan_.discover_limit, nullptr);
    if (run.good) {
      hosts_ = parse_discovered(run.out, plan_.listed, plan_.slots_per_host);
      warned_ = false;
      return;
    }
    why = run.err.empty() ? run.why : run.err.substr(0, run.err.find('\n'));
  } catch (const Error& error) {
    why = error.what();
  }
  if (!std::exchange(warned_, true))
    say(fmt::format("warning --discover {}: {}; the hosts stay as they were", plan_.discover, why));
}

void Watcher::look(bool looks_up) {
  say(fmt::format("round {} {}", requests_, hosts_.size()));
  for (const Host& host : hosts_) say(fmt::format("host {} {}", host.slots, host.name));
  probe_.look(hosts_, looks_up, [this](const Host& host, const std::string& why_not) {
    const auto same = [&](const Host& other) { return other.name == host.name; };
    const auto index = std::find_if(hosts_.begin(), hosts_.end(), same) - hosts_.begin();
    say(why_not.empty() ? fmt::format("there {}", index) : fmt::format("silent {} {}", index, why_not));
  });
  say("over");
}

// True for a request.
bool Watcher::wait() {
  for (;;) {
    pollfd request = {in_, POLLIN, 0};
    const int period = rests_ ? -1 : static_cast<int>(milliseconds(plan_.every).count());
    if (poll(&request, 1, period) <= 0) return false;
    std::array<char, 64> bytes;
    const ssize_t count = ::read(in_, bytes.data(), bytes.size());
    if (count <= 0) _exit(0);
    const int before = requests_;
    for (ssize_t i = 0; i < count; ++i) {
      rests_ = bytes[i] == kRest;
      if (!rests_) ++requests_;
    }
    if (requests_ > before) return true;
  }
}

void Watcher::run() {
  for (bool asked = false;; asked = wait()) {
    if (!asked) discover();
    look(!asked);
  }
}

}  // namespace

HostWatch::HostWatch(WatchPlan plan) : plan_(std::move(plan)) { start(); }

HostWatch::~HostWatch() { end(); }

void HostWatch::start() {
  int from[2], to[2];
  if (pipe2(from, O_CLOEXEC) != 0)
    throw ResourceExhaustedError("cannot make a pipe: {}", std::strerror(errno));
  from_ = OwnedFd(from[0]);
  const OwnedFd its_out(from[1]);
  if (pipe2(to, O_CLOEXEC) != 0) throw ResourceExhaustedError("cannot make a pipe: {}", std::strerror(errno));
  to_ = OwnedFd(to[1]);
  const OwnedFd its_in(to[0]);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) throw ResourceExhaustedError("cannot start a process: {}", std::strerror(errno));
  if (pid_ == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    from_ = OwnedFd(), to_ = OwnedFd();
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    Watcher(plan_, its_in.get(), its_out.get()).run();
  }
  fcntl(from_.get(), F_SETFL, O_NONBLOCK);
  asked_ = 0;
  started_line_.clear();
  round_ = {};
}

// With all that it has started.
void HostWatch::end() {
  from_ = OwnedFd(), to_ = OwnedFd();
  if (pid_ < 0) return;
  signal_children_of(pid_, SIGKILL);
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

bool HostWatch::read() {
  std::array<char, 4096> bytes;
  ssize_t count = 0;
  while (from_.get() >= 0 && (count = ::read(from_.get(), bytes.data(), bytes.size())) > 0) {
    started_line_.append(bytes.data(), count);
    for (size_t end; (end = started_line_.find('\n')) != std::string::npos;) {
      take_line(started_line_.substr(0, end));
      started_line_.erase(0, end + 1);
    }
  }
  if (count == 0) from_ = OwnedFd();
  return std::exchange(list_is_new_, false);
}

void HostWatch::take_line(const std::string& line) {
  const size_t space = std::min(line.find(' '), line.size());
  const std::string word = line.substr(0, space), rest = line.substr(std::min(space + 1, line.size()));
  const auto number = parse_int64(rest.substr(0, rest.find(' ')));
  if (word == "warning") warnings_.push_back(rest);
  if (word == "round") {
    const auto listed = parse_int64(rest.substr(rest.find(' ') + 1));
    round_ = {.number = static_cast<int>(number.value_or(0)),
              .listed = static_cast<size_t>(listed.value_or(0)),
              .over = false,
              .hosts = {},
              .told = {}};
  }
  if (word == "host") {
    round_.hosts.push_back({{rest.substr(rest.find(' ') + 1), static_cast<int>(number.value_or(1))}});
    round_.told.push_back(false);
  }
  if ((word == "there" || word == "silent") && number && *number < static_cast<int>(round_.hosts.size())) {
    round_.hosts[*number].answers = word == "there";
    round_.hosts[*number].why_not =
        word == "there" ? "" : rest.substr(std::min(rest.find(' '), rest.size() - 1) + 1);
    round_.told[*number] = true;
  }
  if (word == "over") {
    round_.over = true;
    list_ = round_.hosts;
    list_is_new_ = true;
  }
}

void HostWatch::rest() { [[maybe_unused]] const ssize_t written = write(to_.get(), &kRest, 1); }

std::vector<std::string> HostWatch::take_warnings() { return std::exchange(warnings_, {}); }

bool HostWatch::round_is_enough(const std::vector<std::string>& without) const {
  if (round_.number < asked_ || round_.hosts.empty() || round_.hosts.size() < round_.listed) return false;
  if (round_.over) return true;
  for (size_t i = 0; i < round_.hosts.size(); ++i) {
    const bool is_needed = std::none_of(without.begin(), without.end(), [&](const std::string& name) {
      return is_same_host(name, round_.hosts[i].host.name);
    });
    if (is_needed && !round_.told[i]) return false;
  }
  return true;
}

bool HostWatch::look_now(const std::vector<std::string>& without, milliseconds limit) {
  if (from_.get() < 0) end(), start();
  const auto deadline = Clock::now() + limit;
  ++asked_;
  if (write(to_.get(), &kLook, 1) != 1) return false;
  while (!round_is_enough(without)) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
    if (left <= 0 || from_.get() < 0) return false;
    pollfd news = {from_.get(), POLLIN, 0};
    poll(&news, 1, static_cast<int>(left));
    read();
  }
  list_ = round_.hosts;
  list_is_new_ = false;
  return true;
}

}  // namespace kolo::launcher
