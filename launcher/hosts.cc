#include <kolo/launcher/hosts.h>

#include <fmt/core.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <numeric>
#include <sstream>

#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>

namespace kolo::launcher {
namespace {

constexpr int kMostSlots = 1 << 20;

bool is_loopback(std::string_view address) { return address.starts_with("127.") || address == "::1"; }

std::set<std::string> own_addresses() {
  std::set<std::string> found;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return found;
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr) continue;
    const auto length = one->ifa_addr->sa_family == AF_INET    ? sizeof(sockaddr_in)
                        : one->ifa_addr->sa_family == AF_INET6 ? sizeof(sockaddr_in6)
                                                               : 0;
    std::array<char, NI_MAXHOST> text{};
    if (length > 0 && getnameinfo(one->ifa_addr, static_cast<socklen_t>(length), text.data(), text.size(),
                                  nullptr, 0, NI_NUMERICHOST) == 0)
      found.emplace(text.data());
  }
  freeifaddrs(first);
  return found;
}

int parse_slots(std::string_view text, std::string_view where) {
  const auto slots = parse_int64(text);
  if (!slots || *slots < 1 || *slots > kMostSlots)
    throw InvalidArgumentError(
        "{}: \"{}\" is not a number of slots; allowed: a whole number of at least 1, as in node1:2", where,
        text);
  return static_cast<int>(*slots);
}

Host parse_host(std::string_view word, std::string_view where, int slots = 1) {
  const size_t at = word.find('@');
  const std::string_view place = word.substr(at == std::string_view::npos ? 0 : at + 1);
  const bool ipv6 = std::count(place.begin(), place.end(), ':') > 1;
  const size_t colon = ipv6 ? std::string_view::npos : place.find(':');
  const std::string_view name = place.substr(0, colon);
  // A leading '-' would be read as an option by ssh.
  if (name.empty() || name.front() == '-' || word.front() == '-' ||
      word.find_first_of(" \t'\"\\$;&|<>()") != std::string_view::npos)
    throw InvalidArgumentError("{}: \"{}\" does not name a host; allowed: node1 or node1:2", where, word);
  return {std::string(name),
          colon == std::string_view::npos ? slots : parse_slots(place.substr(colon + 1), where),
          ipv6 || at != std::string_view::npos};
}

void add_host(std::vector<Host>& hosts, Host host) {
  const auto same = [&](const Host& other) { return other.name == host.name; };
  const auto known = std::find_if(hosts.begin(), hosts.end(), same);
  if (known == hosts.end()) hosts.push_back(std::move(host));
  else known->slots += host.slots;
}

// `slots = 2` as `slots=2`.
std::string without_spaces_around_equals(const std::string& line) {
  std::string text;
  for (const char c : line) {
    const bool after_equals = !text.empty() && text.back() == '=';
    if (c == '=') text.erase(text.find_last_not_of(" \t") + 1);
    if (!after_equals || (c != ' ' && c != '\t')) text += c;
  }
  return text;
}

Host parse_hostfile_line(const std::string& line, const std::string& where, int slots) {
  std::istringstream words(without_spaces_around_equals(line));
  std::string word;
  words >> word;
  Host host = parse_host(word, where, slots);
  int most = kMostSlots;
  while (words >> word) {
    const size_t equals = std::min(word.find('='), word.size());
    const std::string key = word.substr(0, equals);
    const auto value = std::string_view(word).substr(std::min(equals + 1, word.size()));
    if (key == "slots") host.slots = parse_slots(value, where);
    else if (key == "max-slots" || key == "max_slots") most = parse_slots(value, where);
    else
      throw InvalidArgumentError("{}: \"{}\" is not understood; allowed: node1 slots=2 max-slots=4", where,
                                 word);
  }
  host.slots = std::min(host.slots, most);
  return host;
}

}  // namespace

std::vector<Host> parse_hosts(std::string_view list) {
  std::vector<Host> hosts;
  while (true) {
    const size_t comma = list.find(',');
    const Host host = parse_host(list.substr(0, comma), "--host");
    if (host.hostfile_alone)
      throw InvalidArgumentError(
          "--host: mpirun takes \"{}\" from a hostfile only; write it there and give --hostfile FILE",
          list.substr(0, comma));
    add_host(hosts, host);
    if (comma == std::string_view::npos) return hosts;
    list.remove_prefix(comma + 1);
  }
}

std::vector<Host> parse_host_lines(std::istream& text, const std::string& source, int slots) {
  std::vector<Host> hosts;
  std::string line;
  for (int number = 1; std::getline(text, line); ++number) {
    if (number == 1 && line.starts_with("\xef\xbb\xbf")) line.erase(0, 3);
    line = line.substr(0, line.find('#'));
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    add_host(hosts, parse_hostfile_line(line, fmt::format("{}:{}", source, number), slots));
  }
  return hosts;
}

std::vector<Host> read_hostfile(const std::string& path) {
  std::ifstream file(path);
  // Opening a directory succeeds; only reading from it fails.
  if (!file || (file.peek(), file.bad()))
    throw NotFoundError("--hostfile: {} cannot be read: {}", path, std::strerror(errno));
  std::vector<Host> hosts = parse_host_lines(file, path);
  if (hosts.empty())
    throw InvalidArgumentError("--hostfile: {} names no host; write one a line, as in: node1 slots=2", path);
  return hosts;
}

std::vector<Host> parse_discovered(const std::string& text, const std::vector<Host>& listed,
                                   std::optional<int> slots_per_host) {
  std::istringstream lines(text);
  std::vector<Host> hosts = parse_host_lines(lines, "line", 0);
  if (hosts.empty()) throw InvalidArgumentError("it names no host");
  for (Host& host : hosts) {
    if (host.slots > 0) continue;
    const auto known = std::find_if(listed.begin(), listed.end(),
                                    [&](const Host& other) { return other.name == host.name; });
    host.slots = slots_per_host.value_or(known == listed.end() ? 1 : known->slots);
  }
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

std::string names_of(const std::vector<Host>& hosts, std::string_view between) {
  std::string text;
  for (const Host& host : hosts) text.append(text.empty() ? "" : between).append(host.name);
  return text;
}

bool contains_host(const std::vector<Host>& hosts, std::string_view name) {
  return std::any_of(hosts.begin(), hosts.end(),
                     [&](const Host& host) { return is_same_host(host.name, name); });
}

std::set<std::string> names_of_addresses(std::istream& lines, const std::set<std::string>& addresses) {
  std::set<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string address;
    words >> address;
    if (!is_loopback(address) && !addresses.contains(address)) continue;
    for (std::string name; words >> name;) names.insert(lower_case(name));
  }
  return names;
}

bool is_this_machine(std::string_view name, std::string_view hostname) {
  constexpr std::string_view kLocal[] = {
      "localhost",  "localhost.localdomain",   "localhost4",    "localhost4.localdomain4",
      "localhost6", "localhost6.localdomain6", "ip6-localhost", "ip6-loopback"};
  if (name == hostname || name == hostname.substr(0, hostname.find('.')) || is_loopback(name)) return true;
  if (std::find(std::begin(kLocal), std::end(kLocal), name) != std::end(kLocal)) return true;
  static const std::set<std::string> own_names = [] {
    std::ifstream lines("/etc/hosts");
    return names_of_addresses(lines, own_addresses());
  }();
  return own_names.contains(lower_case(name));
}

}  // namespace kolo::launcher
