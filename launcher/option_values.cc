#include <kolo/launcher/option_values.h>

#include <algorithm>

#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>

namespace kolo::launcher {
namespace {

constexpr double kDay_s = 86400;

}  // namespace

std::int64_t whole_number(const char* option, const std::string& text, std::int64_t min, std::int64_t max) {
  const auto value = parse_int64(text);
  if (!value || *value < min || *value > max)
    throw InvalidArgumentError("{} \"{}\" is not valid; allowed: a whole number from {} to {}", option, text,
                               min, max);
  return *value;
}

double seconds_of(const char* option, const std::string& text) {
  const auto value = parse_double(text);
  if (!value || *value < 0 || *value > kDay_s)
    throw InvalidArgumentError("{} \"{}\" is not valid; allowed: seconds from 0 to {}", option, text, kDay_s);
  return *value;
}

size_t choice(const char* option, const std::string& word, const std::vector<std::string>& allowed) {
  const auto found = std::find(allowed.begin(), allowed.end(), word);
  if (found != allowed.end()) return found - allowed.begin();
  std::string list;
  for (const auto& name : allowed) list += (list.empty() ? "" : ", ") + name;
  throw InvalidArgumentError("{} \"{}\" is not valid; allowed: {}{}", option, word, list,
                             did_you_mean(word, allowed));
}

}  // namespace kolo::launcher
