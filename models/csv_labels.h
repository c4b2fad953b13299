// What the labels of a table are: classes, several labels of each sample, or numbers to find.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <kolo/models/samples.h>

namespace kolo::models::detail {

/// What is known of the columns of labels.
struct LabelCells {
  std::string file, column;  // for messages; column: of the first one with words, else of the first one
  std::size_t columns = 1;
  bool of_words = false;        // in one of the columns at least
  bool has_bars = false;        // | between words of the only column
  bool are_marks = false;       // each cell of several columns is 0 or 1
  bool have_fractions = false;  // of numbers
};

/// Words are classes, or labels where | stands between them. Of numbers those with fractions are no classes.
/// asked: the kind that --loss says. Throws InvalidArgumentError where it does not fit.
LabelKind label_kind_of_cells(const LabelCells& cells, const std::optional<LabelKind>& asked);

/// `label: column 5 "species"`, `targets: columns 2, 3`; columns: their texts.
std::string labels_text(LabelKind kind, bool is_split, const std::vector<std::string>& columns);

/// What to say of a label that is neither 0 nor 1 in one of several columns.
inline constexpr char kMarksAreRight[] = "labels of several columns are 0 or 1, and --loss mse finds numbers";

}  // namespace kolo::models::detail
