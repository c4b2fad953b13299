#include <kolo/launcher/hosts.h>

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <numeric>
#include <sstream>

#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>

namespace kolo::launcher {
namespace {

constexpr int kMostSlots = 1 << 20;

int parse_slots(std::string_view text, std::string_view where) {
  const auto slots = parse_int64(text);
  if (!slots || *slots < 1 || *slots > kMostSlots)
    throw InvalidArgumentError(
        "{}: \"{}\" is not a number of slots; allowed: a whole number of at least 1, as in node1:2", where,
        text);
  return static_cast<int>(*slots);
}

Host parse_host(std::string_view word, std::string_view where) {
  const size_t colon = word.find(':');
  const std::string_view name = word.substr(0, colon);
  // A leading '-' would be read as an option by ssh.
  if (name.empty() || name.front() == '-' || name.find_first_of(" \t'\"\\$;&|<>()") != std::string_view::npos)
    throw InvalidArgumentError("{}: \"{}\" does not name a host; allowed: node1 or node1:2", where, word);
  return {std::string(name),
          colon == std::string_view::npos ? 1 : parse_slots(word.substr(colon + 1), where)};
}

void add_host(std::vector<Host>& hosts, Host host) {
  const auto same = [&](const Host& other) { return other.name == host.name; };
  const auto known = std::find_if(hosts.begin(), hosts.end(), same);
  if (known == hosts.end()) hosts.push_back(std::move(host));
  else known->slots += host.slots;
}

Host parse_hostfile_line(const std::string& line, const std::string& where) {
  std::istringstream words(line);
  std::string word;
  words >> word;
  Host host = parse_host(word, where);
  while (words >> word) {
    if (word.rfind("slots=", 0) != 0)
      throw InvalidArgumentError("{}: \"{}\" is not understood; allowed: node1 slots=2", where, word);
    host.slots = parse_slots(std::string_view(word).substr(6), where);
  }
  return host;
}

}  // namespace

std::vector<Host> parse_hosts(std::string_view list) {
  std::vector<Host> hosts;
  while (true) {
    const size_t comma = list.find(',');
    add_host(hosts, parse_host(list.substr(0, comma), "--host"));
    if (comma == std::string_view::npos) return hosts;
    list.remove_prefix(comma + 1);
  }
}

std::vector<Host> read_hostfile(const std::string& path) {
  std::ifstream file(path);
  std::vector<Host> hosts;
  std::string line;
  // Opening a directory succeeds; only reading from it fails.
  if (!file || (file.peek(), file.bad()))
    throw NotFoundError("--hostfile: {} cannot be read: {}", path, std::strerror(errno));
  for (int number = 1; std::getline(file, line); ++number) {
    line = line.substr(0, line.find('#'));
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    add_host(hosts, parse_hostfile_line(line, fmt::format("{}:{}", path, number)));
  }
  if (hosts.empty())
    throw InvalidArgumentError("--hostfile: {} names no host; write one a line, as in: node1 slots=2", path);
  return hosts;
}

std::string format_hosts(const std::vector<Host>& hosts) {
  std::string text;
  for (const Host& host : hosts)
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", host.name, host.slots);
  return text;
}

int total_slots(const std::vector<Host>& hosts) {
  return std::accumulate(hosts.begin(), hosts.end(), 0,
                         [](int sum, const Host& host) { return sum + host.slots; });
}

std::vector<int> ranks_per_host(const std::vector<Host>& hosts, int ranks) {
  std::vector<int> counts;
  for (const Host& host : hosts) {
    counts.push_back(std::min(host.slots, ranks));
    ranks -= counts.back();
  }
  for (size_t i = 0; ranks > 0 && !counts.empty(); i = (i + 1) % counts.size(), --ranks) ++counts[i];
  return counts;
}

bool is_same_host(std::string_view a, std::string_view b) {
  return a == b || a == b.substr(0, b.find('.')) || b == a.substr(0, a.find('.'));
}

bool is_this_machine(std::string_view name, std::string_view hostname) {
  if (name == "localhost" || name == "127.0.0.1" || name == "::1" || name == hostname) return true;
  return name == hostname.substr(0, hostname.find('.'));
}

}  // namespace kolo::launcher
