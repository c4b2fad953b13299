#include <kolo/models/csv_labels.h>

#include <fmt/format.h>

#include <kolo/core/base/error.h>

namespace kolo::models::detail {

LabelKind label_kind_of_cells(const LabelCells& cells, const std::optional<LabelKind>& asked) {
  LabelKind found = LabelKind::one_class;
  if (cells.has_bars || cells.are_marks) found = LabelKind::several;
  else if (cells.columns > 1 || (!cells.of_words && cells.have_fractions)) found = LabelKind::numbers;
  const LabelKind kind = asked.value_or(found);
  if (cells.of_words && cells.columns > 1)
    throw InvalidArgumentError("{}: column {} holds words; of several targets each holds numbers", cells.file,
                               cells.column);
  if (cells.of_words && kind == LabelKind::numbers)
    throw InvalidArgumentError("{}: column {} holds words, and --loss asks for numbers; leave --loss out",
                               cells.file, cells.column);
  if (kind == LabelKind::one_class && cells.columns > 1)
    throw InvalidArgumentError("{}: --target names {} columns, and --loss softmax is for one; leave it out",
                               cells.file, cells.columns);
  if (kind == LabelKind::several && cells.columns == 1 && !cells.has_bars)
    throw InvalidArgumentError(
        "{}: column {} has one label in each line; --loss bce takes words with | between them, or "
        "columns of 0 and 1 as in --target a,b",
        cells.file, cells.column);
  return kind;
}

std::string labels_text(LabelKind kind, bool is_split, const std::vector<std::string>& columns) {
  constexpr std::size_t kMostNamed = 8;
  const char* const what = kind == LabelKind::numbers ? "target" : "label";
  const bool is_one = columns.size() == 1;
  if (columns.size() > kMostNamed) return fmt::format("{}s: {} columns", what, columns.size());
  return fmt::format("{}{}: column{} {}", what, is_one && !is_split ? "" : "s", is_one ? "" : "s",
                     fmt::join(columns, ", "));
}

}  // namespace kolo::models::detail
