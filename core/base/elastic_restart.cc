#include <kolo/core/base/elastic_restart.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include <kolo/core/base/env.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>

namespace kolo {
namespace {

constexpr char kVariable[] = "KOLO_RESTART";

[[noreturn]] void refuse(const std::string& text) {
  throw InvalidArgumentError("{}=\"{}\" is not valid; kolorun sets it, as in 1:6:84:7.9:node3,node4",
                             kVariable, text);
}

// The four fields before the hosts, whose names may have colons.
std::array<std::string, 5> fields_of(const std::string& text) {
  std::array<std::string, 5> fields;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const std::size_t colon = text.find(':', begin);
    if (colon == std::string::npos) refuse(text);
    fields[i] = text.substr(begin, colon - begin);
    begin = colon + 1;
  }
  fields[4] = text.substr(begin);
  return fields;
}

}  // namespace

ElasticRestart elastic_restart() {
  const std::string text = env_string(kVariable).value_or("");
  if (text.empty()) return {};
  const auto fields = fields_of(text);
  const auto number = parse_int64(fields[0]), ranks = parse_int64(fields[1]);
  const auto seconds = parse_double(fields[3]);
  ElasticRestart restart;
  restart.last_step = parse_int64(fields[2]);
  if (!number || *number < 1 || *number > INT32_MAX || !ranks || *ranks < 1 || *ranks > INT32_MAX ||
      !seconds || (!restart.last_step && !fields[2].empty()))
    refuse(text);
  restart.number = static_cast<int>(*number);
  restart.ranks_before = static_cast<int>(*ranks);
  restart.seconds = *seconds;
  for (std::size_t begin = 0; begin < fields[4].size();) {
    const std::size_t comma = std::min(fields[4].find(',', begin), fields[4].size());
    restart.lost_hosts.push_back(fields[4].substr(begin, comma - begin));
    begin = comma + 1;
  }
  return restart;
}

std::string detail::to_text(const ElasticRestart& restart) {
  return fmt::format("{}:{}:{}:{:.1f}:{}", restart.number, restart.ranks_before,
                     restart.last_step ? std::to_string(*restart.last_step) : "", restart.seconds,
                     fmt::join(restart.lost_hosts, ","));
}

}  // namespace kolo
