// Which classes a model takes for which, and how well it tells two apart.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace kolo::models {

/// Counts of samples by their class and by the model's answer.
class Confusion {
 public:
  /// names: of the classes, as many as there are.
  explicit Confusion(std::vector<std::string> names);

  std::int64_t classes() const { return static_cast<std::int64_t>(names_.size()); }
  void add(std::int64_t label, std::int64_t answer, std::int64_t samples = 1);
  std::int64_t samples(std::int64_t label, std::int64_t answer) const { return counts_[at(label, answer)]; }
  std::int64_t labelled(std::int64_t label) const;         // samples of the class
  std::int64_t answered(std::int64_t answer) const;        // samples that were taken for it
  std::optional<double> precision(std::int64_t of) const;  // none: nothing was taken for it
  std::optional<double> recall(std::int64_t of) const;     // none: it has no samples
  const std::string& name(std::int64_t of) const { return names_[static_cast<std::size_t>(of)]; }
  /// Row by row, a row for each label.
  const std::vector<std::int64_t>& counts() const { return counts_; }

 private:
  std::size_t at(std::int64_t label, std::int64_t answer) const {
    return static_cast<std::size_t>(label * classes() + answer);
  }
  std::vector<std::string> names_;
  std::vector<std::int64_t> counts_;
};

/// A table for a terminal: count, precision and recall of each class, and of up to 12 classes the matrix, a
/// row for each label. Of more than 100 classes the 20 of least recall.
std::string to_text(const Confusion& confusion);
/// {"classes": [{"class", "count", "precision", "recall"}], "confusion": [[…]]}, the matrix up to 1,000
/// classes.
nlohmann::ordered_json to_json(const Confusion& confusion);

/// A sample of two classes: how far the model leans to the second, and whether it is of the second.
using Scored = std::pair<double, bool>;
/// The area under the ROC curve: the share of pairs, one of each class, whose sample of the second class has
/// the higher score; equal scores count half (Mann, Whitney, Ann. Math. Statist. 18 (1947)). None where a
/// class has no samples, and for a score that is NaN.
std::optional<double> area_under_curve(std::vector<Scored> scores);

}  // namespace kolo::models
