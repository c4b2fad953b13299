#include <kolo/launcher/host_probe.h>

#include <fcntl.h>
#include <fmt/core.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <optional>
#include <sstream>
#include <utility>

#include <kolo/core/base/child_program.h>
#include <kolo/core/base/error.h>
#include <kolo/launcher/child.h>

namespace kolo::launcher {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kToConnect{1};
constexpr std::chrono::seconds kToRun{5};
constexpr int kCommandLooks_ms = 20;  // between looks at commands that run

int ms_until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  return std::max<int>(0, static_cast<int>(left.count()));
}

// Begun, or done; an fd of −1, and errno says why, for an address that cannot be reached.
OwnedFd begin_connecting(const std::string& address) {
  const auto* const to = reinterpret_cast<const sockaddr*>(address.data());
  OwnedFd fd(socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) return fd;
  const bool begun =
      connect(fd.get(), to, static_cast<socklen_t>(address.size())) == 0 || errno == EINPROGRESS;
  const int why_not = errno;
  if (!begun) fd = OwnedFd(), errno = why_not;
  return fd;
}

// 0 if there is one now.
int error_of_connection(const OwnedFd& fd) {
  int error = 0;
  socklen_t size = sizeof error;
  return getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

std::string no_answer_within(std::chrono::seconds limit) {
  return fmt::format("no answer within {} s", limit.count());
}

// How a command has ended that was to show that a host is there.
std::string why_it_failed(const Child& child, int code, bool late) {
  if (late) return no_answer_within(kToRun);
  char bytes[4096];
  const ssize_t count = read(child.err.get(), bytes, sizeof bytes);
  std::string words(bytes, std::max<ssize_t>(count, 0));
  words.erase(
      std::find_if(words.rbegin(), words.rend(), [](unsigned char c) { return !std::isspace(c); }).base(),
      words.end());
  words.erase(0, words.rfind('\n') + 1);
  return words.empty() ? fmt::format("exit code {}", code) : words;
}

std::map<std::string, std::string> settings_of_ssh(std::vector<std::string> command,
                                                   const std::string& host) {
  command.insert(command.end(), {"-G", host});
  std::istringstream lines(ask_program(command).value_or(""));
  std::map<std::string, std::string> settings;
  for (std::string line; std::getline(lines, line);) {
    const size_t space = std::min(line.find(' '), line.size());
    settings.emplace(line.substr(0, space), line.substr(std::min(space + 1, line.size())));
  }
  return settings;
}

bool is_ssh(const std::vector<std::string>& command) {
  return !command.empty() && command[0].substr(command[0].rfind('/') + 1) == "ssh";
}

}  // namespace

HostProbe::Place& HostProbe::place_of(const std::string& host) {
  const auto known = places_.find(host);
  if (known != places_.end()) return known->second;
  Place place;
  place.name = host;
  place.port = std::to_string(agent_.port);
  if (const auto daemon = agent_.daemons.find(host); daemon != agent_.daemons.end()) {
    place.name = daemon->second.name;
    place.port = std::to_string(daemon->second.port);
  }
  if (agent_.port == 0) {
    place.by_command = true;
    if (is_ssh(agent_.command)) {
      const auto settings = settings_of_ssh(agent_.command, host);
      const auto has = [&](const char* name) {
        const auto found = settings.find(name);
        return found != settings.end() && found->second != "none";
      };
      place.by_command = has("proxycommand") || has("proxyjump") || !has("hostname") || !has("port");
      if (!place.by_command) place.name = settings.at("hostname"), place.port = settings.at("port");
    }
  }
  return places_.emplace(host, std::move(place)).first->second;
}

void HostProbe::look(const std::vector<Host>& hosts, bool looks_up, const Told& told) {
  std::vector<Host> to_connect, to_run;
  for (const Host& host : hosts) {
    if (is_this_machine(host.name, agent_.hostname)) {
      told(host, "");
      continue;
    }
    Place& place = place_of(host.name);
    place.why_not.clear();
    (place.by_command ? to_run : to_connect).push_back(host);
    // A pod that is made again has another address.
    const bool is_known = !place.addresses.empty() && (place.answered || !looks_up);
    if (place.by_command || is_known) continue;
    addrinfo hints = {}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    if (const int error = getaddrinfo(place.name.c_str(), place.port.c_str(), &hints, &found); error != 0) {
      place.why_not = gai_strerror(error);
      continue;
    }
    place.addresses.clear();
    for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next)
      place.addresses.push_back(
          {std::string(reinterpret_cast<const char*>(entry->ai_addr), entry->ai_addrlen)});
    freeaddrinfo(found);
  }
  connect_to(to_connect, told);
  run_commands(to_run, told);
}

void HostProbe::connect_to(const std::vector<Host>& hosts, const Told& told) {
  struct Attempt {
    size_t host;
    OwnedFd fd;
  };
  std::vector<Attempt> attempts;
  std::vector<bool> answered(hosts.size(), false);
  for (size_t host = 0; host < hosts.size(); ++host)
    for (const Address& address : place_of(hosts[host].name).addresses)
      if (OwnedFd fd = begin_connecting(address.bytes); fd.get() >= 0)
        attempts.push_back({host, std::move(fd)});
      else place_of(hosts[host].name).why_not = std::strerror(errno);
  const auto deadline = Clock::now() + kToConnect;
  while (!attempts.empty() && Clock::now() < deadline) {
    std::vector<pollfd> fds;
    for (const Attempt& attempt : attempts) fds.push_back({attempt.fd.get(), POLLOUT, 0});
    if (poll(fds.data(), fds.size(), ms_until(deadline)) <= 0) continue;
    for (size_t i = fds.size(); i-- > 0;) {
      if (fds[i].revents == 0) continue;
      const size_t host = attempts[i].host;
      const int error = error_of_connection(attempts[i].fd);
      if (error != 0) place_of(hosts[host].name).why_not = std::strerror(error);
      else if (!answered[host]) answered[host] = true, told(hosts[host], "");
      attempts.erase(attempts.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  for (size_t host = 0; host < hosts.size(); ++host) {
    Place& place = place_of(hosts[host].name);
    place.answered = answered[host];
    if (place.why_not.empty()) place.why_not = no_answer_within(kToConnect);
    if (!answered[host]) told(hosts[host], place.why_not);
  }
}

void HostProbe::run_commands(const std::vector<Host>& hosts, const Told& told) {
  std::vector<std::pair<const Host*, Child>> running;
  for (const Host& host : hosts) {
    std::vector<std::string> command = agent_.command;
    command.insert(command.end(), {host.name, "true"});
    try {
      running.emplace_back(&host, start_child(command));
    } catch (const Error& error) {
      told(host, error.what());
    }
  }
  // What they say is read when they have ended: a few lines fit into their pipes.
  const auto deadline = Clock::now() + kToRun;
  while (!running.empty()) {
    const bool late = Clock::now() >= deadline;
    for (auto& [host, child] : running) {
      if (late) kill(-child.pid, SIGKILL);
      const auto code = detail::code_of_child(child.pid, late);
      if (!code) continue;
      child.pid = -1;
      told(*host, code == 0 ? "" : why_it_failed(child, *code, late));
    }
    std::erase_if(running, [](const auto& entry) { return entry.second.pid < 0; });
    if (!running.empty()) poll(nullptr, 0, kCommandLooks_ms);
  }
}

}  // namespace kolo::launcher
