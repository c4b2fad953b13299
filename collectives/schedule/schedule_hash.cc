#include <kolo/collectives/schedule/schedule_hash.h>

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <sstream>

namespace kolo {
namespace {

constexpr char kGradientMark = '"';  // option lines start with a letter

struct Description {
  std::vector<std::string> options;
  std::vector<std::string> gradients;
};

Description parse(const std::string& text) {
  Description description;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    (line[0] == kGradientMark ? description.gradients : description.options).push_back(line);
  return description;
}

const char kMissing[] = "missing";

std::string line_of(const std::vector<std::string>& lines, std::size_t i) {
  return i < lines.size() ? lines[i] : kMissing;
}

std::string without_type(const std::string& gradient) { return gradient.substr(0, gradient.rfind(' ')); }

// first, rank: who says a, who says b.
std::string gradient_difference(std::string_view what, std::size_t index, const std::string& a,
                                const std::string& b, int first, int rank) {
  const bool only_type = a != kMissing && b != kMissing && without_type(a) == without_type(b);
  const auto shown = [&](const std::string& line) {
    return line == kMissing || only_type ? line : without_type(line);
  };
  return fmt::format("{} {} is {} on rank {} but {} on rank {}", what, index, shown(a), first, shown(b),
                     rank);
}

}  // namespace

std::string describe_schedule(const Reduction& reduction,
                              std::span<const std::pair<std::string, std::string>> options,
                              std::span<const GradientSpec> gradients) {
  std::string text = fmt::format("the reduction={}\n", name(reduction.op));
  if (reduction.is_scaled())
    text += fmt::format("the scales={} and {}\n", reduction.prescale, reduction.postscale);
  for (const auto& [key, value] : options) text += fmt::format("{}={}\n", key, value);
  for (const auto& gradient : gradients)
    text += fmt::format("{}{}\" {} {}\n", kGradientMark, gradient.name, gradient.shape,
                        numpy_name(gradient.dtype));
  return text;
}

std::string schedule_hash(const std::string& description) {
  const XXH128_hash_t hash = XXH3_128bits(description.data(), description.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string first_disagreement(std::span<const std::string> descriptions, std::string_view what,
                               std::span<const int> numbers) {
  std::vector<Description> ranks;
  const auto number = [&](std::size_t rank) {
    return numbers.empty() ? static_cast<int>(rank) : numbers[rank];
  };
  std::size_t gradients = 0;
  for (const auto& text : descriptions) {
    ranks.push_back(parse(text));
    gradients = std::max(gradients, ranks.back().gradients.size());
  }
  for (std::size_t i = 0; i < gradients; ++i)
    for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
      const std::string a = line_of(ranks[0].gradients, i), b = line_of(ranks[rank].gradients, i);
      if (a != b) return gradient_difference(what, i, a, b, number(0), number(rank));
    }
  for (std::size_t i = 0; i < ranks[0].options.size(); ++i)
    for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
      const std::string a = ranks[0].options[i], b = line_of(ranks[rank].options, i);
      if (a == b) continue;
      const auto value = [](const std::string& line) { return line.substr(line.find('=') + 1); };
      return fmt::format("{} is {} on rank {} but {} on rank {}", a.substr(0, a.find('=')), value(a),
                         number(0), value(b), number(rank));
    }
  return "";
}

}  // namespace kolo
