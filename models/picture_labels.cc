#include <kolo/models/picture_labels.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include <kolo/core/base/count_of.h>
#include <kolo/core/base/csv_line.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>
#include <kolo/models/alike_names.h>
#include <kolo/models/csv_columns.h>
#include <kolo/models/csv_fields.h>
#include <kolo/models/csv_labels.h>

namespace kolo::models::detail {

PictureLabels::PictureLabels(const std::vector<std::size_t>& columns, const std::vector<std::string>& names)
    : columns_(columns), cells_(columns.size()) {
  for (const std::size_t column : columns_) names_.push_back(names.empty() ? "" : names[column]);
}

void PictureLabels::add(const CsvFile& file, const Fields& fields) {
  file_ = file.name();
  separator_ = file.separator();
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const auto value = cells_[i].add(file, columns_[i], fields[columns_[i]]);
    values_.push_back(value.value_or(std::numeric_limits<double>::quiet_NaN()));
    with_points_.push_back(number_with_thousands('.', fields[columns_[i]]).value_or(values_.back()));
    with_commas_.push_back(number_with_thousands(',', fields[columns_[i]]).value_or(values_.back()));
  }
  const std::string_view only = fields[columns_.front()];
  if (columns_.size() == 1) words_.push_back(is_empty_cell(only) ? "" : unquoted(only));
  lines_.push_back(file.line());
}

void PictureLabels::finish(const NamedImagesOptions& options, ImageFolder& found) {
  std::vector<ColumnCells*> cells;
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < cells_.size(); ++i)
    cells.push_back(&cells_[i]), texts.push_back(column_named(i));
  const bool is_known = options.known && options.known->labels.size() == cells.size();
  const bool has_commas = finish_numbers(
      cells, is_known ? options.known->labels : std::vector<TableColumn>(cells.size()),
      {.is_known = is_known, .had_decimal_commas = is_known && options.known->has_decimal_commas});
  if (const std::string note = separator_note(separator_, cells_); !note.empty()) notes_.push_back(note);
  for (std::string& note : number_notes(cells, texts)) notes_.push_back(std::move(note));
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    const auto mark = cells_[i].thousands_mark();
    for (std::size_t at = i; mark && at < values_.size(); at += cells_.size())
      values_[at] = *mark == '.' ? with_points_[at] : with_commas_[at];
  }
  choose_kind(options);
  for (std::size_t i = 0; i < cells_.size() && !options.is_known; ++i)
    if (cells_[i].numbers_rows())
      found.warnings.push_back(fmt::format(
          "the label, column {}, rises by 1 from row to row; if it only numbers them, --target names another "
          "column",
          column_named(i)));
  if (kind_ == LabelKind::numbers || columns_.size() > 1) take_numbers(found);
  else take_words(found);
  if (!options.is_known) add_warnings(found);
  if (kind_ == LabelKind::numbers) found.label_table = is_known ? options.known : label_table(has_commas);
}

// Of classes: whole numbers that may be meant as numbers to find, and names that look alike.
void PictureLabels::add_warnings(ImageFolder& found) const {
  constexpr std::size_t kFewClasses = 20;
  const auto& classes = found.classes;
  if (kind_ == LabelKind::numbers) return;
  if (std::string alike = warning_of_alike("classes", classes); !alike.empty())
    found.warnings.push_back(std::move(alike));
  const bool are_numbers = std::all_of(classes.begin(), classes.end(),
                                       [](const std::string& one) { return parse_int64(one).has_value(); });
  if (kind_ != LabelKind::one_class || !are_numbers || classes.size() < kFewClasses ||
      2 * classes.size() <= found.files.size())
    return;
  found.warnings.push_back(fmt::format(
      "the label, column {}, has {} classes, whole numbers, in {} rows; --loss mse finds numbers, "
      "and --target names another column",
      column_named(0), classes.size(), found.files.size()));
}

std::shared_ptr<const TableSchema> PictureLabels::label_table(bool has_decimal_commas) const {
  TableSchema schema{.label_kind = kind_, .has_decimal_commas = has_decimal_commas};
  schema.labels.clear();
  for (std::size_t i = 0; i < cells_.size(); ++i)
    schema.labels.push_back({.name = names_[i],
                             .place = columns_[i],
                             .has_decimal_commas = cells_[i].has_decimal_commas,
                             .has_thousands_points = cells_[i].has_thousands_points,
                             .has_thousands_commas = cells_[i].has_thousands_commas,
                             .has_decimal_points = cells_[i].has_decimal_points});
  return std::make_shared<const TableSchema>(std::move(schema));
}

void PictureLabels::choose_kind(const NamedImagesOptions& options) {
  const auto has_words = [](const ColumnCells& cells) {
    return cells.words > cells.numbers || cells.bars > 0;
  };
  const auto of_words = std::find_if(cells_.begin(), cells_.end(), has_words);
  const auto all = [&](bool (*is_it)(double)) { return std::all_of(values_.begin(), values_.end(), is_it); };
  if (options.is_known && options.label_kind) {
    kind_ = *options.label_kind;
    return;
  }
  kind_ = label_kind_of_cells(
      {.file = file_,
       .column =
           column_named(of_words == cells_.end() ? 0 : static_cast<std::size_t>(of_words - cells_.begin())),
       .columns = columns_.size(),
       .of_words = of_words != cells_.end(),
       .has_bars = columns_.size() == 1 && cells_.front().bars > 0,
       .are_marks = columns_.size() > 1 && all([](double one) { return one == 0 || one == 1; }),
       .have_fractions = !all([](double one) { return std::isnan(one) || one == std::floor(one); }),
       .word = of_words == cells_.end() ? "" : of_words->first_word.text},
      options.label_kind);
}

std::vector<std::string> PictureLabels::words_in(const std::string& word) const {
  return is_split() ? parts_of(word, '|') : std::vector{word};
}

// Classes, or labels with | between them; sorted, and numbers by their size.
void PictureLabels::take_words(ImageFolder& found) const {
  std::set<std::string> words;
  for (std::size_t row = 0; row < words_.size(); ++row) {
    if (words_[row].empty() && !is_split())
      throw InvalidArgumentError(
          "{}, line {}: the picture {:?} has no class; write one, or take the line out", file_, lines_[row],
          found.files[row].filename().string());
    for (std::string& word : words_in(words_[row])) words.insert(std::move(word));
  }
  found.classes.assign(words.begin(), words.end());
  if (std::all_of(words.begin(), words.end(),
                  [](const std::string& word) { return parse_int64(word).has_value(); }))
    std::stable_sort(found.classes.begin(), found.classes.end(),
                     [](const auto& a, const auto& b) { return *parse_int64(a) < *parse_int64(b); });
  std::map<std::string, std::int32_t> numbers;
  for (const std::string& word : found.classes)
    numbers.emplace(word, static_cast<std::int32_t>(numbers.size()));
  if (is_split()) found.several.emplace(words_.size());
  for (std::size_t row = 0; row < words_.size(); ++row)
    for (const std::string& word : words_in(words_[row]))
      (is_split() ? (*found.several)[row] : found.labels).push_back(numbers.at(word));
}

// Numbers to find, or in each of several columns 0 or 1.
void PictureLabels::take_numbers(ImageFolder& found) const {
  for (const ColumnCells& cells : cells_) {
    if (cells.words > 0) throw_no_number(cells.first_word);
    if (cells.empty > 0)
      throw InvalidArgumentError("{}, line {}, column {}: an empty cell; a picture needs its {}", file_,
                                 cells.first_empty.line, cells.first_empty.column + 1,
                                 kind_ == LabelKind::numbers ? "number" : "label");
  }
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const std::string otherwise =
        kind_ == LabelKind::numbers ? fmt::format("number_{}", i + 1) : std::to_string(i);
    found.classes.push_back(names_[i].empty() ? otherwise : names_[i]);
  }
  const std::size_t rows = lines_.size();
  if (kind_ == LabelKind::numbers) found.numbers.emplace(rows);
  else found.several.emplace(rows);
  for (std::size_t place = 0; place < values_.size(); ++place) {
    const double value = values_[place];
    const std::size_t row = place / columns_.size(), i = place % columns_.size();
    if (found.numbers) (*found.numbers)[row].push_back(static_cast<float>(value));
    else if (value == 1) (*found.several)[row].push_back(static_cast<std::int32_t>(i));
    else if (value != 0)
      throw InvalidArgumentError("{}, line {}, column {}: label {}; {}", file_, lines_[row], columns_[i] + 1,
                                 value, kMarksAreRight);
  }
}

std::string PictureLabels::column_named(std::size_t i) const { return column_text(columns_[i], names_[i]); }

std::string PictureLabels::note() const {
  std::vector<std::string> columns;
  for (std::size_t i = 0; i < columns_.size(); ++i) columns.push_back(column_named(i));
  std::string text = labels_text(kind_, is_split(), columns);
  for (const std::string& note : notes_) text += ", " + note;
  const auto without = std::count(words_.begin(), words_.end(), "");
  if (without > 0) text += fmt::format(", {} without a label", count_of(without, "picture"));
  return text;
}

}  // namespace kolo::models::detail
