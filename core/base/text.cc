#include <kolo/core/base/text.h>

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

template <typename Number>
std::optional<Number> parse_whole(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<std::int64_t> parse_int64(std::string_view text) { return parse_whole<std::int64_t>(text); }

std::optional<double> parse_double(std::string_view text) {
  const auto value = parse_whole<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::string exact_text(const std::vector<double>& numbers) {
  std::string text;
  for (const double number : numbers) {
    char digits[64];
    const auto end = std::to_chars(digits, digits + sizeof digits, number, std::chars_format::hex).ptr;
    text.append(text.empty() ? "" : " ").append(digits, end);
  }
  return text;
}

std::vector<double> parse_exact(std::string_view text) {
  std::vector<double> numbers;
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    std::string_view word = text.substr(0, space);
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
    const bool negative = word.starts_with('-');
    if (negative) word.remove_prefix(1);
    if (word.starts_with("0x")) word.remove_prefix(2);
    double value = 0;
    const auto [end, error] =
        std::from_chars(word.data(), word.data() + word.size(), value, std::chars_format::hex);
    if (error != std::errc() || end != word.data() + word.size() || word.starts_with('-'))
      throw DataLossError("\"{}\" is no number in hexadecimal", word);
    numbers.push_back(negative ? -value : value);
  }
  return numbers;
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& letter : result) letter = lower_case(letter);
  return result;
}

namespace {

int change_cost(char a, char b) {
  if (a == b) return 0;
  return lower_case(a) == lower_case(b) ? 1 : 2;
}

// Levenshtein distance in half letters, so that a change of case can cost half.
int distance(std::string_view a, std::string_view b) {
  std::vector<int> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = 2 * static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = 2 * static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replaced = diagonal + change_cost(a[i - 1], b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 2, row[j - 1] + 2, replaced});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest_name(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr std::size_t kTellingLetters = 3;  // with fewer, many a name begins by chance
  std::string best;
  int best_distance = 0;
  bool best_begins = false;
  for (const std::string& candidate : candidates) {
    const bool begins = word.size() >= kTellingLetters && lower_case(candidate).starts_with(lower_case(word));
    const int d = distance(word, candidate);
    if (!begins && (best_begins || d > static_cast<int>(std::max(word.size(), candidate.size())))) continue;
    const bool is_better = best.empty() || begins != best_begins || d < best_distance;
    if (is_better) best = candidate, best_distance = d, best_begins = begins;
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string nearest = nearest_name(word, candidates);
  return nearest.empty() ? "" : fmt::format("; did you mean \"{}\"?", nearest);
}

std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

std::string described(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& known) {
    return fmt::format("{}: {}", name(known.code()), known.what());
  } catch (...) {
    return message_of(error);
  }
}

}  // namespace kolo
