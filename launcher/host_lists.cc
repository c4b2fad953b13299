#include <kolo/launcher/host_lists.h>

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include <kolo/core/base/text.h>

namespace kolo::launcher {
namespace {

constexpr std::int64_t kMostEntries = std::int64_t{1} << 20;

// At the commas that stand in no bracket. Nothing if a bracket is not closed, or closed twice.
std::optional<std::vector<std::string_view>> split_outside_brackets(std::string_view text) {
  std::vector<std::string_view> words;
  size_t start = 0;
  int depth = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '[') ++depth;
    if (i < text.size() && text[i] == ']') --depth;
    if (depth < 0 || depth > 1) return std::nullopt;
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    words.push_back(text.substr(start, i - start));
    start = i + 1;
  }
  return depth == 0 ? std::optional(words) : std::nullopt;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// `07-09` is 07, 08, 09: as wide as the first one is written.
bool expand_range(std::string_view range, std::vector<std::string>& numbers) {
  const size_t dash = range.find('-');
  const std::string_view first_text = range.substr(0, dash);
  const std::string_view last_text = dash == std::string_view::npos ? first_text : range.substr(dash + 1);
  if (!is_number(first_text) || !is_number(last_text)) return false;
  const auto first = parse_int64(first_text), last = parse_int64(last_text);
  if (!first || !last || *last < *first || *last - *first >= kMostEntries) return false;
  for (std::int64_t number = *first; number <= *last; ++number)
    numbers.push_back(fmt::format("{:0{}}", number, first_text.size()));
  return true;
}

// One word of the list: text and brackets in turn.
bool expand_word(std::string_view word, std::vector<std::string>& names) {
  if (word.empty()) return false;
  std::vector<std::string> found = {""};
  while (!word.empty()) {
    const size_t open = std::min(word.find('['), word.size());
    for (std::string& name : found) name += word.substr(0, open);
    if (open == word.size()) break;
    const size_t close = word.find(']');
    std::vector<std::string> numbers;
    const auto ranges = split_outside_brackets(word.substr(open + 1, close - open - 1));
    for (const std::string_view range : *ranges)
      if (!expand_range(range, numbers)) return false;
    if (static_cast<std::int64_t>(found.size() * numbers.size()) > kMostEntries) return false;
    std::vector<std::string> longer;
    for (const std::string& name : found)
      for (const std::string& number : numbers) longer.push_back(name + number);
    found = std::move(longer);
    word.remove_prefix(close + 1);
  }
  names.insert(names.end(), found.begin(), found.end());
  return static_cast<std::int64_t>(names.size()) <= kMostEntries;
}

}  // namespace

std::vector<std::string> expand_host_list(std::string_view text) {
  std::vector<std::string> names;
  const auto words = split_outside_brackets(text);
  const bool good = words && std::all_of(words->begin(), words->end(),
                                         [&](std::string_view word) { return expand_word(word, names); });
  return good ? names : std::vector<std::string>{};
}

std::vector<int> expand_counts(std::string_view text) {
  std::vector<int> counts;
  for (size_t start = 0; start <= text.size();) {
    std::string_view entry = text.substr(start, text.find(',', start) - start);
    start += entry.size() + 1;
    std::optional<std::int64_t> times = 1;
    if (const auto bracket = entry.find("(x"); bracket != std::string_view::npos && entry.back() == ')') {
      times = parse_int64(entry.substr(bracket + 2, entry.size() - bracket - 3));
      entry = entry.substr(0, bracket);
    }
    const auto count = parse_int64(entry);
    if (!count || !times || *count < 1 || *times < 1 || *count > std::numeric_limits<int>::max() ||
        *times > kMostEntries - static_cast<std::int64_t>(counts.size()))
      return {};
    counts.insert(counts.end(), *times, static_cast<int>(*count));
  }
  return counts;
}

std::string word_after(std::string_view text, std::string_view words) {
  const size_t found = text.find(words);
  if (found == std::string_view::npos) return "";
  text.remove_prefix(found + words.size());
  return std::string(text.substr(0, text.find_first_of(" \n")));
}

}  // namespace kolo::launcher
