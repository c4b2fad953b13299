#include <kolo/models/csv_cells.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <kolo/core/base/count_of.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>
#include <kolo/core/base/utf8.h>
#include <kolo/models/csv_fields.h>

namespace kolo::models::detail {
namespace {

CellPlace place_of_cell(const CsvFile& file, std::size_t column, std::string_view field) {
  constexpr std::size_t kMostTold = 40;
  return {.file = file.name(),
          .line = file.line(),
          .column = column,
          .text = std::string(utf8_prefix(field, kMostTold))};
}

[[noreturn]] void refuse(const CellPlace& cell, const std::string& why) {
  throw InvalidArgumentError("{}, line {}, column {}: {:?}: {}", cell.file, cell.line, cell.column + 1,
                             cell.text, why);
}

}  // namespace

void ColumnCells::Cells::add(const CsvFile& file, std::size_t column, std::string_view field) {
  if (++count == 1) first = place_of_cell(file, column, field);
}

void ColumnCells::count_comma(const CsvFile& file, std::size_t column, std::string_view field) {
  if (!is_grouped_by(',', field)) return decimal_.add(file, column, field);
  if (number_in(field, true)) {
    if (unclear_commas_.count == 0) separator_ = file.separator();
    unclear_commas_.add(file, column, field);
  } else {
    grouped_.add(file, column, field);
  }
}

// Of a number as it stands in its file.
void ColumnCells::count_marks(const CsvFile& file, std::size_t column, std::string_view field) {
  const bool has_comma = field.find(',') != std::string_view::npos;
  const std::size_t point = field.find('.');
  with_commas_ += has_comma ? 1 : 0;
  if (point == std::string_view::npos) {
    if (has_comma) count_comma(file, column, field);
    if (has_comma && (file.separator() == ';' || !is_grouped_by(',', field))) ++decimal_commas_;
  } else if (!is_grouped_by('.', field)) {
    points_.add(file, column, field);
  } else if (has_comma || field.find('.', point + 1) != std::string_view::npos) {
    thousands_.add(file, column, field);
  } else {
    unclear_.add(file, column, field);
    are_commas_between_ |= file.separator() == ',';
  }
}

std::optional<double> ColumnCells::add(const CsvFile& file, std::size_t column, std::string_view field) {
  if (const auto value = number_in(field, file.separator() != ',')) {
    rises_by_one_ &= numbers == 0 ? *value == std::floor(*value) : *value == last_ + 1;
    last_ = *value;
    ++numbers;
    sum += *value;
    note_rounding(*value);
    count_marks(file, column, field);
    return value;
  }
  if (is_empty_cell(field)) {
    if (++empty == 1) first_empty = place_of_cell(file, column, field);
    return std::nullopt;
  }
  if (field.find(',') != std::string_view::npos && may_be_number(field)) {
    auto value = number_in(field, true);
    if (!value) value = number_with_thousands(',', field);
    open_.add(file, column, field);
    count_comma(file, column, field);
    sum_of_open_ += value.value_or(0);
    return value;
  }
  if (field.find('|') != std::string_view::npos) ++bars;
  if (is_out_of_range(field)) ++numbers;  // a wrong number, and not a category
  if (++words == 1) first_word = place_of_cell(file, column, field);
  return std::nullopt;
}

bool ColumnCells::shows_commas() const {
  if (words > numbers || grouped_.count > 0 || has_thousands_commas) return false;
  return has_decimal_commas || decimal_commas_ > 0 || thousands_.count > 0;
}

void ColumnCells::note_rounding(double value) {
  least_ = std::min(least_, value);
  most_ = std::max(most_, value);
  rounding_ = std::max(rounding_, std::abs(value - static_cast<double>(static_cast<float>(value))));
}

std::string ColumnCells::rounding_text() const {
  constexpr double kTooMuch = 0.01;
  if (numbers < 2 || words > numbers || !(rounding_ > kTooMuch * (most_ - least_)) || most_ == least_)
    return "";
  return fmt::format(
      "its numbers differ by at most {:g}, and f32, which holds 7 digits, rounds them by up to "
      "{:g}; subtract the least one from all of them, or another number",
      most_ - least_, rounding_);
}

bool ColumnCells::numbers_rows() const {
  constexpr std::int64_t kFewRows = 20;
  return numbers >= kFewRows && words == 0 && empty == 0 && open_.count == 0 && rises_by_one_;
}

std::optional<char> ColumnCells::thousands_mark() const {
  if (has_thousands_points && unclear_.count > 0) return '.';
  return has_thousands_commas && unclear_commas_.count > 0 ? std::optional(',') : std::nullopt;
}

// Cells that are not as the training's, which would otherwise be read as other numbers than there.
[[noreturn]] void contradict(const CellPlace& cell, const char* what) {
  refuse(cell, fmt::format("the training's numbers of this column have {}, and later tables must be written "
                           "as that one",
                           what));
}

void ColumnCells::check_known(const TableColumn& known) const {
  if (known.has_decimal_commas && points_.count > 0) contradict(points_.first, "decimal commas");
  if (known.has_decimal_commas && unclear_.count > 0) contradict(unclear_.first, "decimal commas");
  if (known.has_decimal_commas && grouped_.count > 0) contradict(grouped_.first, "decimal commas");
  if (known.has_thousands_points && points_.count > 0) contradict(points_.first, "points of thousands");
  if (known.has_thousands_points && unclear_.count > 0 && are_commas_between_)
    contradict(unclear_.first, "points of thousands");
  if (known.has_thousands_commas && decimal_.count > 0) contradict(decimal_.first, "commas of thousands");
  if (known.has_thousands_commas && thousands_.count > 0) contradict(thousands_.first, "commas of thousands");
  if (known.has_decimal_points && thousands_.count > 0) contradict(thousands_.first, "decimal points");
}

// The rarer ones are refused, with one of the others.
void ColumnCells::check_alike(const Cells& a, const Mark& of_a, const Cells& b, const Mark& of_b) {
  if (a.count == 0 || b.count == 0) return;
  if (b.count < a.count) return check_alike(b, of_b, a, of_a);
  refuse(a.first, fmt::format("it has {}, and other numbers of the column have {}, as {:?} in line {}; all "
                              "numbers of a column are written alike",
                              of_a.one, of_b.several, b.first.text, b.first.line));
}

// Whether numbers as 1,100 have commas of thousands because others are as 950.25: spreadsheets quote a number
// for its comma alone, and a column is written alike. Between semicolons commas are decimal ones.
bool ColumnCells::points_tell() const {
  return unclear_commas_.count > 0 && points_.count > 0 && decimal_.count == 0 && thousands_.count == 0 &&
         decimal_commas_ == 0;
}

// Of numbers as 1,100: whether nothing says what their commas are, or two things say otherwise. For a later
// table each cell must be clear alone, as below.
bool ColumnCells::are_commas_unclear(const TableColumn& known, const NumberSigns& signs) const {
  if (unclear_commas_.count == 0 || known.has_decimal_commas) return false;
  if (signs.is_known) return !has_thousands_commas && (separator_ == ',' || !signs.had_decimal_commas);
  if (grouped_.count > 0 || decimal_.count > 0) return false;
  if (points_tell()) return signs.has_decimal_commas;
  if (separator_ == ',' || points_.count > 0) return true;
  return separator_ == '\t' && !signs.has_decimal_commas;
}

void ColumnCells::refuse_commas(const NumberSigns& signs) const {
  if (signs.is_known)
    refuse(unclear_commas_.first,
           "a comma may be a decimal one or of thousands; write the number with a point, or without the "
           "comma: the training's numbers of this column do not tell");
  const std::string found =
      points_.count == 0
          ? ""
          : fmt::format(", and {:?} in line {} would make it one of thousands, while {} a decimal one",
                        points_.first.text, points_.first.line,
                        points_tell() ? "other columns have decimal commas, which would make it"
                                      : "semicolons between the fields make it");
  refuse(unclear_commas_.first,
         fmt::format("a comma may be a decimal one or of thousands{}; write the number with a point, or "
                     "without the comma, or the column with a number that tells: 1,100.50 and 1,234,567 "
                     "have commas of thousands, and 1,5 a decimal one",
                     found));
}

// Of numbers as 1.100 in a column without points of thousands. What an earlier table has said must hold for
// each cell alone: the others of this one may only refuse it.
bool ColumnCells::is_unclear(const TableColumn& known, const NumberSigns& signs) const {
  if (unclear_.count == 0) return false;
  if (!signs.is_known) return signs.has_decimal_commas && points_.count == 0;
  if (signs.had_decimal_commas) return !known.has_decimal_points;
  return signs.has_decimal_commas;
}

void ColumnCells::finish_points(const TableColumn& known, const NumberSigns& signs) {
  if (words > numbers) return;
  if (are_commas_unclear(known, signs)) refuse_commas(signs);
  has_thousands_points = signs.is_known ? known.has_thousands_points : thousands_.count > 0;
  if (has_thousands_points) return;
  has_decimal_points = points_.count > 0 || unclear_.count > 0;
  if (has_thousands_commas || !is_unclear(known, signs)) return;
  const std::string_view why = decimal_commas_ > 0 || thousands_.count > 0
                                   ? "other numbers of the column have decimal commas"
                               : signs.has_decimal_commas ? "other columns have decimal commas"
                                                          : "the training's table has decimal commas";
  refuse(unclear_.first,
         fmt::format("a point may be a decimal one or of thousands, and {}; {}", why,
                     signs.is_known
                         ? "write the number without the point, or with a decimal comma"
                         : "write the column without points, or with a number that tells: 1.100,50 and "
                           "1.234.567 have points of thousands, and 1.5 a decimal one"));
}

void ColumnCells::finish_commas(const TableColumn& known, const NumberSigns& signs) {
  // Few cells of many make no column of words.
  if (words > 0 && open_.count > 0 && 9 * words <= numbers + open_.count) throw_no_number(first_word);
  if (words > 0) words += open_.count;
  if (words > numbers) return;
  check_known(known);
  const Mark decimal_comma{"a decimal comma", "decimal commas"},
      decimal_point{"a decimal point", "decimal points"},
      commas{"commas of thousands", "commas of thousands"},
      points{"points of thousands", "points of thousands"};
  check_alike(thousands_, points, points_, decimal_point);
  check_alike(grouped_, commas, decimal_, decimal_comma);
  check_alike(grouped_, commas, thousands_, points);
  if (open_.count > 0 && grouped_.count == 0) {
    check_alike(decimal_, decimal_comma, points_, decimal_point);
    check_alike(decimal_, decimal_comma, unclear_, decimal_point);
  }
  has_thousands_commas = signs.is_known ? known.has_thousands_commas : grouped_.count > 0 || points_tell();
  has_decimal_commas = !has_thousands_commas && words == 0 && open_.count > grouped_.count;
  if (words > 0) return;
  numbers += open_.count;
  sum += sum_of_open_;
}

bool finish_numbers(const std::vector<ColumnCells*>& cells, const std::vector<TableColumn>& known,
                    NumberSigns signs) {
  for (std::size_t i = 0; i < cells.size(); ++i) cells[i]->finish_commas(known[i], signs);
  signs.has_decimal_commas |=
      std::any_of(cells.begin(), cells.end(), [](const ColumnCells* one) { return one->shows_commas(); });
  for (std::size_t i = 0; i < cells.size(); ++i) cells[i]->finish_points(known[i], signs);
  return signs.has_decimal_commas;
}

std::string separator_note(char separator, const std::vector<ColumnCells>& cells) {
  if (separator == ',') return "";
  std::int64_t with_commas = 0;
  for (const ColumnCells& one : cells) with_commas += one.told_commas();
  return fmt::format(
      "fields between {}{}", separator == ';' ? "\";\"" : "tabs",
      with_commas == 0 ? "" : fmt::format(", {} with decimal commas", count_of(with_commas, "number")));
}

std::vector<std::string> number_notes(const std::vector<ColumnCells*>& cells,
                                      const std::vector<std::string>& texts) {
  std::vector<std::string> notes;
  const auto add = [&](const char* what, bool ColumnCells::*which) {
    std::vector<std::string> columns;
    for (std::size_t i = 0; i < cells.size(); ++i)
      if (cells[i]->*which) columns.push_back(texts[i]);
    if (!columns.empty())
      notes.push_back(
          fmt::format("{} in column{} {}", what, columns.size() == 1 ? "" : "s", fmt::join(columns, ", ")));
  };
  add("decimal commas", &ColumnCells::has_decimal_commas);
  add("points of thousands", &ColumnCells::has_thousands_points);
  add("commas of thousands", &ColumnCells::has_thousands_commas);
  return notes;
}

std::string place_text(const CellPlace& cell, bool of_several_files) {
  const std::string file = std::filesystem::path(cell.file).filename().string();
  return fmt::format("{}line {}, column {}", of_several_files ? file + ", " : "", cell.line, cell.column + 1);
}

void throw_no_number(const CellPlace& cell, bool in_training) {
  const std::string word = lower_case(std::string_view(cell.text));
  bool is_flag = false;
  for (const char* const flag : {"yes", "no", "true", "false", "y", "n", "on", "off"})
    is_flag |= word == flag;
  throw InvalidArgumentError(
      "{}, line {}, column {}: {:?} is no number that f32 holds, and {} of numbers{}", cell.file, cell.line,
      cell.column + 1, cell.text, in_training ? "in the training its column was one" : "its column is one",
      is_flag ? "; write such words as numbers, as 1 and 0"
              : "; an empty cell, NA, NaN, null or ? stands for a number that is not known");
}

}  // namespace kolo::models::detail
