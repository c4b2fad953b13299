#include <kolo/models/csv_labels.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>

#include <kolo/core/base/count_of.h>
#include <kolo/core/base/csv_line.h>
#include <kolo/core/base/error.h>
#include <kolo/models/csv_columns.h>

namespace kolo::models::detail {
namespace {

bool is_whole(double label) { return label == std::floor(label); }
bool is_mark(double label) { return label == 0 || label == 1; }
bool is_class(double label) {
  return label >= 0 && label <= std::numeric_limits<std::int32_t>::max() && is_whole(label);
}

}  // namespace

LabelKind label_kind_of_cells(const LabelCells& cells, const std::optional<LabelKind>& asked) {
  LabelKind found = LabelKind::one_class;
  if (cells.has_bars || cells.are_marks) found = LabelKind::several;
  else if (cells.columns > 1 || (!cells.of_words && cells.have_fractions)) found = LabelKind::numbers;
  const LabelKind kind = asked.value_or(found);
  if (cells.of_words && cells.columns > 1)
    throw InvalidArgumentError("{}: column {} holds words; of several targets each holds numbers", cells.file,
                               cells.column);
  if (cells.of_words && kind == LabelKind::numbers)
    throw InvalidArgumentError(
        "{}: column {} holds words, such as {:?}, and --loss asks for numbers; a number is written as "
        "1234.5, "
        "and for classes leave --loss out",
        cells.file, cells.column, cells.word);
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

void LabelSpellings::add(std::string_view cell, double value) {
  constexpr std::size_t kMostNumbers = 1000;
  if (first_.size() > kMostNumbers || two_) return;
  std::string text = unquoted(cell);
  const auto is_digit = [&](std::size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '9'; };
  const bool has_zeros = is_digit(0) && text[0] == '0' && is_digit(1);
  const auto [known, is_new] = first_.try_emplace(value, has_zeros ? text : "");
  if (is_new || known->second == (has_zeros ? text : "")) return;
  if (known->second.empty()) two_ = {fmt::format("{}", value), std::move(text)};
  else two_ = {known->second, std::move(text)};
}

std::string LabelSpellings::warning(const std::string& column) const {
  if (!two_) return "";
  return fmt::format(
      "the label, column {}: {:?} and {:?} are one class, because all labels are numbers; where these are "
      "two, "
      "write all labels as words, such as n{} and n{}",
      column, two_->first, two_->second, two_->first, two_->second);
}

std::string CsvLabels::warning_of_spellings() const {
  if (schema_.label_kind != LabelKind::one_class) return "";
  return spellings_.warning(column_text(schema_.labels.front().place, schema_.labels.front().name));
}

std::string labels_text(LabelKind kind, bool is_split, const std::vector<std::string>& columns) {
  constexpr std::size_t kMostNamed = 8;
  const char* const what = kind == LabelKind::numbers ? "target" : "label";
  const bool is_one = columns.size() == 1;
  if (columns.size() > kMostNamed) return fmt::format("{}s: {} columns", what, columns.size());
  return fmt::format("{}{}: column{} {}", what, is_one && !is_split ? "" : "s", is_one ? "" : "s",
                     fmt::join(columns, ", "));
}

void CsvLabels::choose_kind(std::span<const ColumnCells> cells) {
  const auto of_words = std::find_if(cells.begin(), cells.end(),
                                     [](const ColumnCells& one) { return one.are_words(/*is_label=*/true); });
  const bool has_words = of_words != cells.end();
  const TableColumn& told =
      schema_.labels[has_words ? static_cast<std::size_t>(of_words - cells.begin()) : 0];
  schema_.label_kind = label_kind_of_cells({.file = files_.front().name(),
                                            .column = column_text(told.place, told.name),
                                            .columns = columns(),
                                            .of_words = has_words,
                                            .has_bars = has_words && columns() == 1 && of_words->bars > 0,
                                            .are_marks = columns() > 1 && !find(is_mark),
                                            .have_fractions = !has_words && find(is_whole).has_value(),
                                            .word = has_words ? of_words->first_word.text : ""},
                                           options_.label_kind);
}

// Where the first label of the kept rows stands that is not as it should be.
template <typename IsRight>
std::optional<std::size_t> CsvLabels::find(const IsRight& is_right) const {
  for (std::size_t i = 0; i < rows_.labels.size(); ++i)
    if (rows_.kept[i / columns()] && !is_right(rows_.labels[i])) return i;
  return std::nullopt;
}

template <typename IsRight>
void CsvLabels::check(const IsRight& is_right, const char* right) const {
  const auto wrong = find(is_right);
  if (!wrong) return;
  const std::size_t row = *wrong / columns();
  const auto file = std::upper_bound(rows_.ends.begin(), rows_.ends.end(), row) - rows_.ends.begin();
  const CsvFile& of_row = files_[static_cast<std::size_t>(file)];
  throw InvalidArgumentError("{}, line {}, column {}: label {}; {}", of_row.name(), rows_.lines[row],
                             of_row.labels[*wrong % columns()] + 1, rows_.labels[*wrong], right);
}

Tensor CsvLabels::of_rows(std::int64_t count, const ColumnWords* words) {
  if (!options_.labelled) return Tensor::zeros(DType::i32, {count});
  if (schema_.label_kind == LabelKind::one_class) return classes(count, words);
  return words != nullptr ? marks(count, *words) : numbers(count);
}

Tensor CsvLabels::numbers(std::int64_t count) const {
  if (schema_.label_kind == LabelKind::several) check(is_mark, kMarksAreRight);
  Tensor made(DType::f32, {count, static_cast<std::int64_t>(columns())});
  float* to = made.data<float>();
  for (std::size_t i = 0; i < rows_.labels.size(); ++i)
    if (rows_.kept[i / columns()]) *to++ = static_cast<float>(rows_.labels[i]);
  return made;
}

Tensor CsvLabels::classes(std::int64_t count, const ColumnWords* words) {
  Tensor made = Tensor::zeros(DType::i32, {count});
  if (words == nullptr)
    check(is_class,
          "labels are whole numbers from 0 on, words are classes by their names, as n1 for -1, and --loss "
          "mse finds numbers");
  std::int32_t* to = made.data<std::int32_t>();
  for (std::size_t row = 0; row < rows_.lines.size(); ++row)
    if (rows_.kept[row])
      *to++ = words != nullptr ? words->of_row(row).front() : static_cast<std::int32_t>(rows_.labels[row]);
  if (words == nullptr && !options_.known) count_from_zero(made);
  return made;
}

// Where they are 1 to K, each of them there.
void CsvLabels::count_from_zero(Tensor& classes) {
  const auto labels = classes.span<std::int32_t>();
  const std::set<std::int32_t> found(labels.begin(), labels.end());
  if (found.size() < 2 || *found.begin() != 1 || *found.rbegin() != std::ssize(found)) return;
  for (std::int32_t& label : labels) --label;
  for (const std::int32_t label : found) schema_.labels.front().words.push_back(std::to_string(label));
  notes_.push_back(fmt::format("labels 1 to {} are the classes (predictions name them so)", found.size()));
}

// 1 for each label in a row's cell.
Tensor CsvLabels::marks(std::int64_t count, const ColumnWords& words) {
  Tensor made = Tensor::zeros(DType::f32, {count, schema_.outputs()});
  float* to = made.data<float>();
  std::int64_t without = 0;
  for (std::size_t row = 0; row < rows_.lines.size(); ++row) {
    if (!rows_.kept[row]) continue;
    for (const std::int32_t label : words.of_row(row)) to[label] = 1;
    without += words.of_row(row).empty() ? 1 : 0;
    to += schema_.outputs();
  }
  if (without > 0) notes_.push_back(fmt::format("{} without a label", count_of(without, "line")));
  return made;
}

std::string CsvLabels::columns_text() const {
  std::vector<std::string> names;
  for (const TableColumn& label : schema_.labels) names.push_back(column_text(label.place, label.name));
  return labels_text(schema_.label_kind, are_split(), names);
}

}  // namespace kolo::models::detail
