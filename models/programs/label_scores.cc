#include <kolo/models/programs/label_scores.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <kolo/models/programs/shares.h>

namespace kolo::models {

LabelScores::LabelScores(std::vector<std::string> names) : names_(std::move(names)), counts_(names_.size()) {}

void LabelScores::add(const float* logits, const float* labels) {
  bool are_right = true;
  for (Counts& counts : counts_) {
    const bool is_found = *logits++ > 0, is_there = *labels++ == 1;
    counts.found += is_found ? 1 : 0;
    counts.there += is_there ? 1 : 0;
    counts.right += is_found && is_there ? 1 : 0;
    are_right &= is_found == is_there;
  }
  all_right_ += are_right ? 1 : 0;
}

std::vector<double> LabelScores::numbers() const {
  std::vector<double> all = {static_cast<double>(all_right_)};
  for (const Counts& counts : counts_)
    for (const std::int64_t count : {counts.there, counts.found, counts.right})
      all.push_back(static_cast<double>(count));
  return all;
}

void LabelScores::add_numbers(const std::vector<double>& theirs) {
  all_right_ += std::llround(theirs.at(0));
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    counts_[i].there += std::llround(theirs.at(3 * i + 1));
    counts_[i].found += std::llround(theirs.at(3 * i + 2));
    counts_[i].right += std::llround(theirs.at(3 * i + 3));
  }
}

std::int64_t LabelScores::samples(std::int64_t label) const { return of(label).there; }
std::optional<double> LabelScores::precision(std::int64_t label) const {
  return share_of(of(label).right, of(label).found);
}
std::optional<double> LabelScores::recall(std::int64_t label) const {
  return share_of(of(label).right, of(label).there);
}
std::optional<double> LabelScores::f1(std::int64_t label) const {
  return share_of(2 * of(label).right, of(label).found + of(label).there);
}

std::string to_text(const LabelScores& scores) {
  const std::vector<std::int64_t> listed =
      listed_of(scores.labels(), [&](std::int64_t label) { return scores.f1(label); });
  std::size_t width = 5;
  for (const std::int64_t one : listed)
    width = std::max(width, std::min(scores.name(one).size(), kWidestName));
  std::string text = fmt::format("{:<{}}  {:>8}  {:>9}  {:>6}  {:>6}\n", "label", width, "count", "precision",
                                 "recall", "F1");
  for (const std::int64_t one : listed)
    text += fmt::format("{:<{}}  {:>8}  {:>9}  {:>6}  {:>6}\n", scores.name(one), width, scores.samples(one),
                        share_text(scores.precision(one)), share_text(scores.recall(one)),
                        share_text(scores.f1(one)));
  if (listed.size() < static_cast<std::size_t>(scores.labels()))
    text +=
        fmt::format("({} of {} labels, those of least F1; --json has all)\n", listed.size(), scores.labels());
  return text;
}

nlohmann::ordered_json to_json(const LabelScores& scores) {
  nlohmann::ordered_json json;
  for (std::int64_t one = 0; one < scores.labels(); ++one)
    json["labels"].push_back({{"label", scores.name(one)},
                              {"count", scores.samples(one)},
                              {"precision", share_json(scores.precision(one))},
                              {"recall", share_json(scores.recall(one))},
                              {"f1", share_json(scores.f1(one))}});
  return json;
}

}  // namespace kolo::models
