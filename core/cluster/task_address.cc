#include <kolo/core/cluster/task_address.h>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/un.h>

#include <algorithm>
#include <cctype>

#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>

namespace kolo::detail {
namespace {

constexpr std::string_view kUnix = "unix:";
constexpr std::size_t kLongestPath = sizeof(sockaddr_un::sun_path) - 1;
constexpr std::size_t kLongestHost = 253;  // of DNS

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::optional<int> parse_port(std::string_view text) {
  const auto port =
      text.size() <= 5 && std::all_of(text.begin(), text.end(), is_digit) ? parse_int64(text) : std::nullopt;
  return port && *port <= 65535 ? std::optional(static_cast<int>(*port)) : std::nullopt;
}

bool is_v4(const std::string& host) {
  in_addr address{};
  return inet_pton(AF_INET, host.c_str(), &address) == 1;
}

bool is_host_name(const std::string& host) {
  if (host.empty() || host.size() > kLongestHost) return false;
  const auto is_allowed = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  };
  // What looks like a.b.c.d has to be one: 1.2.3 and 300.1.1.1 are no names either.
  const bool is_numeric =
      std::all_of(host.begin(), host.end(), [](char c) { return is_digit(c) || c == '.'; });
  return std::all_of(host.begin(), host.end(), is_allowed) && (!is_numeric || is_v4(host));
}

// In its short form; "" if it is none. A zone (%eth0) stays behind it.
std::string canonical_v6(const std::string& host) {
  const std::size_t zone = std::min(host.find('%'), host.size());
  in6_addr address{};
  if (inet_pton(AF_INET6, host.substr(0, zone).c_str(), &address) != 1 || zone + 1 == host.size()) return "";
  char text[INET6_ADDRSTRLEN];
  return inet_ntop(AF_INET6, &address, text, sizeof(text)) + host.substr(zone);
}

}  // namespace

std::string TaskAddress::to_string() const {
  if (!path.empty()) return fmt::format("{}{}", kUnix, path);
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                             : fmt::format("[{}]:{}", host, port);
}

std::optional<TaskAddress> parse_task_address(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) return std::nullopt;  // where C would see the end
  if (text.substr(0, kUnix.size()) == kUnix) {
    const std::string_view path = text.substr(kUnix.size());
    const bool is_path = path.size() > 1 && path[0] == '/' && path.size() <= kLongestPath;
    return is_path ? std::optional(TaskAddress{.host = "", .port = 0, .path = std::string(path)})
                   : std::nullopt;
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto port = parse_port(text.substr(colon + 1));
  if (!port) return std::nullopt;
  std::string host(text.substr(0, colon));
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = canonical_v6(host.substr(1, host.size() - 2));
    return host.empty() ? std::nullopt : std::optional(TaskAddress{.host = host, .port = *port});
  }
  return is_host_name(host) ? std::optional(TaskAddress{.host = lower_case(host), .port = *port})
                            : std::nullopt;
}

TaskAddress task_address_of(std::string_view text) {
  auto address = parse_task_address(text);
  if (!address) throw InvalidArgumentError("Could not interpret \"{}\" as a host-port pair.", text);
  return *std::move(address);
}

}  // namespace kolo::detail
