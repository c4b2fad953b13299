#include <kolo/core/base/env.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>

namespace kolo {
namespace {

constexpr std::int64_t kMostThreads = 4096;

}  // namespace

std::optional<std::string> env_string(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::int64_t env_int64(const char* name, std::int64_t fallback, std::int64_t min, std::int64_t max) {
  const auto text = env_string(name);
  if (!text) return fallback;
  const auto value = parse_int64(*text);
  if (!value || *value < min || *value > max)
    throw InvalidArgumentError(
        "{}=\"{}\" is not valid; allowed: a whole number {}", name, *text,
        max == INT64_MAX ? fmt::format("of at least {}", min) : fmt::format("from {} to {}", min, max));
  return *value;
}

double env_double(const char* name, double fallback, double min, double max) {
  const auto text = env_string(name);
  if (!text) return fallback;
  const auto value = parse_double(*text);
  if (!value || *value < min || *value > max)
    throw InvalidArgumentError("{}=\"{}\" is not valid; allowed: a number from {} to {}", name, *text, min,
                               max);
  return *value;
}

std::optional<int> omp_num_threads() {
  const std::string text = env_string("OMP_NUM_THREADS").value_or("");
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  if (std::all_of(text.begin(), text.end(), is_blank)) return std::nullopt;
  std::string_view first = std::string_view(text).substr(0, text.find(','));
  while (!first.empty() && is_blank(first.front())) first.remove_prefix(1);
  while (!first.empty() && is_blank(first.back())) first.remove_suffix(1);
  const auto threads = parse_int64(first);
  if (!threads || *threads < 1 || *threads > kMostThreads)
    throw InvalidArgumentError(
        "OMP_NUM_THREADS=\"{}\" is not valid; allowed: a whole number from 1 to {}, or a list of them", text,
        kMostThreads);
  return static_cast<int>(*threads);
}

std::string env_choice(const char* name, const std::string& fallback,
                       const std::vector<std::string>& allowed) {
  const auto text = env_string(name);
  if (!text) return fallback;
  if (std::find(allowed.begin(), allowed.end(), *text) != allowed.end()) return *text;
  std::string list;
  for (const auto& word : allowed) list += (list.empty() ? "" : ", ") + word;
  throw InvalidArgumentError("{}=\"{}\" is not valid; allowed: {}{}", name, *text, list,
                             did_you_mean(*text, allowed));
}

std::vector<std::string> unknown_kolo_variables(const std::vector<std::string>& known) {
  std::vector<std::string> lines;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string name(text.substr(0, text.find('=')));
    if (name.rfind("KOLO_", 0) != 0 || std::find(known.begin(), known.end(), name) != known.end()) continue;
    lines.push_back(name + " is not an option of kolo" + did_you_mean(name, known));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

}  // namespace kolo
