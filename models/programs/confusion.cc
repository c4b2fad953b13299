#include <kolo/models/programs/confusion.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <kolo/models/programs/shares.h>

namespace kolo::models {
namespace {

constexpr std::int64_t kMostInMatrix = 12, kMostInJson = 1000;
constexpr std::size_t kLeastColumn = 6;

}  // namespace

Confusion::Confusion(std::vector<std::string> names)
    : names_(std::move(names)), counts_(names_.size() * names_.size()) {}

void Confusion::add(std::int64_t label, std::int64_t answer, std::int64_t samples) {
  counts_[at(label, answer)] += samples;
}

std::int64_t Confusion::labelled(std::int64_t label) const {
  const auto row = counts_.begin() + static_cast<std::ptrdiff_t>(at(label, 0));
  return std::accumulate(row, row + classes(), std::int64_t{0});
}

std::int64_t Confusion::answered(std::int64_t answer) const {
  std::int64_t sum = 0;
  for (std::int64_t label = 0; label < classes(); ++label) sum += samples(label, answer);
  return sum;
}

std::optional<double> Confusion::precision(std::int64_t of) const {
  return share_of(samples(of, of), answered(of));
}
std::optional<double> Confusion::recall(std::int64_t of) const {
  return share_of(samples(of, of), labelled(of));
}

std::string to_text(const Confusion& confusion) {
  const bool has_matrix = confusion.classes() <= kMostInMatrix;
  const std::vector<std::int64_t> listed =
      listed_of(confusion.classes(), [&](std::int64_t of) { return confusion.recall(of); });
  std::size_t width = 5;
  for (const std::int64_t one : listed)
    width = std::max(width, std::min(confusion.name(one).size(), kWidestName));
  const auto column = [&](std::int64_t of) { return std::max(confusion.name(of).size(), kLeastColumn); };
  std::string text =
      fmt::format("{:<{}}  {:>8}  {:>9}  {:>6}", "class", width, "count", "precision", "recall");
  if (has_matrix) text += "  taken for";
  for (const std::int64_t one : has_matrix ? listed : std::vector<std::int64_t>())
    text += fmt::format("  {:>{}}", confusion.name(one), column(one));
  text += "\n";
  for (const std::int64_t one : listed) {
    text += fmt::format("{:<{}}  {:>8}  {:>9}  {:>6}", confusion.name(one), width, confusion.labelled(one),
                        share_text(confusion.precision(one)), share_text(confusion.recall(one)));
    if (has_matrix) text += fmt::format("{:11}", "");
    for (const std::int64_t other : has_matrix ? listed : std::vector<std::int64_t>())
      text += fmt::format("  {:>{}}", confusion.samples(one, other), column(other));
    text += "\n";
  }
  if (listed.size() < static_cast<std::size_t>(confusion.classes()))
    text += fmt::format("({} of {} classes, those of least recall; --json has all)\n", listed.size(),
                        confusion.classes());
  return text;
}

nlohmann::ordered_json to_json(const Confusion& confusion) {
  nlohmann::ordered_json json;
  for (std::int64_t one = 0; one < confusion.classes(); ++one)
    json["classes"].push_back({{"class", confusion.name(one)},
                               {"count", confusion.labelled(one)},
                               {"precision", share_json(confusion.precision(one))},
                               {"recall", share_json(confusion.recall(one))}});
  if (confusion.classes() > kMostInJson) return json;
  for (std::int64_t label = 0; label < confusion.classes(); ++label) {
    nlohmann::ordered_json row;
    for (std::int64_t answer = 0; answer < confusion.classes(); ++answer)
      row.push_back(confusion.samples(label, answer));
    json["confusion"].push_back(std::move(row));
  }
  return json;
}

std::optional<double> area_under_curve(std::vector<Scored> scores) {
  if (std::any_of(scores.begin(), scores.end(), [](const Scored& one) { return std::isnan(one.first); }))
    return std::nullopt;
  std::sort(scores.begin(), scores.end());
  double of_first = 0, of_second = 0, pairs = 0;  // of lower scores, so far
  for (std::size_t i = 0; i < scores.size();) {
    double firsts = 0, seconds = 0;  // of this score
    for (const double score = scores[i].first; i < scores.size() && scores[i].first == score; ++i)
      (scores[i].second ? seconds : firsts) += 1;
    pairs += seconds * (of_first + firsts / 2);
    of_first += firsts;
    of_second += seconds;
  }
  return of_first == 0 || of_second == 0 ? std::nullopt : std::optional(pairs / (of_first * of_second));
}

}  // namespace kolo::models
