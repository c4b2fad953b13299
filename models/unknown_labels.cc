#include <kolo/models/unknown_labels.h>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include <kolo/core/base/count_of.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>
#include <kolo/models/alike_names.h>

namespace kolo::models::detail {
namespace {

constexpr std::size_t kMostNamed = 12;

std::string joined(const std::vector<std::string>& names) {
  if (names.size() <= kMostNamed) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{} … {}", fmt::join(names.begin(), names.begin() + kMostNamed - 1, ", "), names.back());
}

struct Range {
  std::int64_t least, most;
};
// Nothing where one is no number.
std::optional<Range> range_of(const std::vector<std::string>& labels) {
  std::optional<Range> range;
  for (const std::string& label : labels) {
    const auto number = parse_int64(label);
    if (!number) return std::nullopt;
    if (!range) range = Range{*number, *number};
    range = Range{std::min(range->least, *number), std::max(range->most, *number)};
  }
  return range;
}

std::string advice(const UnknownLabels& unknown, const std::string& file, const std::string& trained) {
  std::vector<std::string> own = unknown.others;
  for (const auto& [label, count] : unknown.counts) own.push_back(label);
  for (const auto& [label, count] : unknown.counts)
    for (const std::string& known : unknown.classes)
      if (const std::string why = why_alike(label, known); !why.empty())
        return fmt::format("{:?} and {:?} look alike, but {}", label, known, why);
  const auto here = range_of(own), there = range_of(unknown.classes);
  const bool counts_otherwise = here && there && here->least + there->least == 1 &&
                                here->most - here->least <= there->most - there->least;
  if (counts_otherwise)
    return fmt::format(
        "the labels of {} are {} to {}, counted from {}, and those of {} {} to {}, counted from {}; "
        "both must be counted alike",
        file, here->least, here->most, here->least, trained, there->least, there->most, there->least);
  // Which name a number means the file does not say.
  if (here && !there)
    return fmt::format(
        "the labels of {} are numbers, and those of {} are names; write the names, or in arrays their "
        "places, 0 "
        "to {}",
        file, trained, unknown.classes.size() - 1);
  return "leave such samples out, or train with some of them";
}

}  // namespace

std::string unknown_labels_text(const UnknownLabels& unknown) {
  const std::string file = std::filesystem::path(unknown.file).filename().string(),
                    trained = unknown.trained.empty() ? "the training" : unknown.trained;
  std::vector<std::string> counts;
  for (const auto& [label, count] : unknown.counts) {
    if (counts.size() == kMostNamed) break;
    counts.push_back(
        fmt::format("{} of {}", counts.empty() ? count_of(count, "sample") : std::to_string(count), label));
  }
  if (unknown.counts.size() > kMostNamed)
    counts.push_back(fmt::format("and {}", count_of(unknown.counts.size() - kMostNamed, "other label")));
  return fmt::format("is none of the {}, {}, of {}; {} has {}; {}",
                     count_of(unknown.classes.size(), unknown.what), joined(unknown.classes), trained, file,
                     fmt::join(counts, ", "), advice(unknown, file, trained));
}

void check_known_labels(const Tensor& y, std::int64_t classes, const std::string& path,
                        const std::string& trained) {
  std::map<std::int32_t, std::int64_t> found;
  for (const std::int32_t label : y.span<std::int32_t>()) ++found[label];
  UnknownLabels unknown{.file = path, .trained = trained, .counts = {}, .classes = {}};
  std::optional<std::int32_t> first;
  for (const auto& [label, count] : found) {
    if (label >= 0 && label < classes) {
      unknown.others.push_back(std::to_string(label));
      continue;
    }
    unknown.counts[std::to_string(label)] = count;
    if (!first) first = label;
  }
  if (!first) return;
  for (std::int64_t i = 0; i < classes; ++i) unknown.classes.push_back(std::to_string(i));
  throw InvalidArgumentError("{}: label {} {}", path, *first, unknown_labels_text(unknown));
}

}  // namespace kolo::models::detail
