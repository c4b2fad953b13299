// How well a model finds several labels of each sample.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace kolo::models {

/// Counts over samples, of which each rank has a part. A label is found where its probability is above 0.5,
/// its logit above 0. One thread.
class LabelScores {
 public:
  /// names: of the labels, as many as there are.
  explicit LabelScores(std::vector<std::string> names);

  /// One sample; as many numbers as labels.
  void add(const float* logits, const float* labels);
  /// For another rank, whose counts take them in.
  std::vector<double> numbers() const;
  void add_numbers(const std::vector<double>& theirs);

  std::int64_t labels() const { return static_cast<std::int64_t>(names_.size()); }
  const std::string& name(std::int64_t label) const { return names_[static_cast<std::size_t>(label)]; }
  std::int64_t samples(std::int64_t label) const;             // that have it
  std::optional<double> precision(std::int64_t label) const;  // none: it was found nowhere
  std::optional<double> recall(std::int64_t label) const;     // none: no sample has it
  /// 2 · precision · recall ÷ (precision + recall); none: it was found nowhere and no sample has it.
  std::optional<double> f1(std::int64_t label) const;
  std::int64_t all_right() const { return all_right_; }  // samples with all labels right

 private:
  struct Counts {
    std::int64_t there = 0, found = 0, right = 0;  // right: both
  };
  const Counts& of(std::int64_t label) const { return counts_[static_cast<std::size_t>(label)]; }
  std::vector<std::string> names_;
  std::vector<Counts> counts_;  // by label
  std::int64_t all_right_ = 0;
};

/// A table for a terminal: count, precision, recall and F1 of each label; of more than 100 labels the 20 of
/// least F1.
std::string to_text(const LabelScores& scores);
/// {"labels": [{"label", "count", "precision", "recall", "f1"}]}
nlohmann::ordered_json to_json(const LabelScores& scores);

}  // namespace kolo::models
