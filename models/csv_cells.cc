#include <kolo/models/csv_cells.h>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include <kolo/core/base/error.h>
#include <kolo/models/csv_fields.h>

namespace kolo::models::detail {
namespace {

CellPlace place_of_cell(const CsvFile& file, std::size_t column, std::string_view field) {
  constexpr std::size_t kMostTold = 40;
  return {.file = file.name(),
          .line = file.line(),
          .column = column,
          .text = std::string(field.substr(0, kMostTold))};
}

// 1,234 and -1,234,567.8
bool has_thousands(std::string_view field) {
  if (field.starts_with('-') || field.starts_with('+')) field.remove_prefix(1);
  field = field.substr(0, field.find('.'));
  const auto are_digits = [](std::string_view part) {
    return !part.empty() &&
           std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  std::size_t end = field.find(',');
  if (end > 3 || field.starts_with('0')) return false;  // npos, too
  if (!are_digits(field.substr(0, end))) return false;
  for (; end < field.size(); end += 4)
    if (field[end] != ',' || field.size() < end + 4 || !are_digits(field.substr(end + 1, 3))) return false;
  return true;
}

[[noreturn]] void refuse(const CellPlace& cell, const std::string& why) {
  throw InvalidArgumentError("{}, line {}, column {}: {:?}: {}", cell.file, cell.line, cell.column + 1,
                             cell.text, why);
}

constexpr char kOtherCells[] = "; all numbers of a column are written alike";

}  // namespace

void ColumnCells::Cells::add(const CsvFile& file, std::size_t column, std::string_view field) {
  if (++count == 1) first = place_of_cell(file, column, field);
}

void ColumnCells::count_point(const CsvFile& file, std::size_t column, std::string_view field) {
  const bool has_comma = field.find(',') != std::string_view::npos;
  const std::size_t point = field.find('.');
  with_commas += has_comma ? 1 : 0;
  if (point == std::string_view::npos) {
    decimal_commas_ += has_comma ? 1 : 0;
  } else if (!is_grouped_by_points(field)) {
    points_.add(file, column, field);
  } else if (has_comma || field.find('.', point + 1) != std::string_view::npos) {
    thousands_.add(file, column, field);
  } else {
    unclear_.add(file, column, field);
    are_commas_between_ |= file.separator() == ',';
  }
}

std::optional<double> ColumnCells::add(const CsvFile& file, std::size_t column, std::string_view field) {
  const bool has_commas_between = file.separator() == ',';
  if (const auto value = number_in(field, !has_commas_between)) {
    ++numbers;
    sum += *value;
    count_point(file, column, field);
    return value;
  }
  if (is_empty_cell(field)) {
    if (++empty == 1) first_empty = place_of_cell(file, column, field);
    return std::nullopt;
  }
  if (has_commas_between && field.find(',') != std::string_view::npos) {
    const auto value = number_in(field, true);
    const bool is_grouped = has_thousands(field);
    if (value || is_grouped) {
      commas_.add(file, column, field);
      if (!is_grouped) ++decimal_;
      if (!value) ++grouped_;
      sum_of_commas_ += value.value_or(0);
      return value;
    }
  }
  if (field.find('|') != std::string_view::npos) ++bars;
  if (is_out_of_range(field)) ++numbers;  // a wrong number, and not a category
  if (++words == 1) first_word = place_of_cell(file, column, field);
  return std::nullopt;
}

bool ColumnCells::shows_commas() const {
  return words <= numbers && (has_decimal_commas || decimal_commas_ > 0 || thousands_.count > 0);
}

// A cell that is not as the training's, which would otherwise be read as another number than there.
void ColumnCells::check_known(const TableColumn& known) const {
  const auto contradict = [](const CellPlace& cell, const char* what) {
    refuse(cell,
           fmt::format("the training's numbers of this column have {}, and later tables must be written "
                       "as that one",
                       what));
  };
  if (known.has_decimal_commas && points_.count > 0) contradict(points_.first, "decimal commas");
  if (known.has_decimal_commas && unclear_.count > 0) contradict(unclear_.first, "decimal commas");
  if (known.has_thousands_points && points_.count > 0) contradict(points_.first, "points of thousands");
  if (known.has_thousands_points && unclear_.count > 0 && are_commas_between_)
    contradict(unclear_.first, "points of thousands");
  if (known.has_decimal_points && thousands_.count > 0) contradict(thousands_.first, "decimal points");
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
  check_known(known);
  if (thousands_.count > 0 && points_.count > 0) {
    const bool is_point = points_.count < thousands_.count;
    refuse(is_point ? points_.first : thousands_.first,
           fmt::format("it has {}, and other numbers of the column have {}, as {:?} in line {}{}",
                       is_point ? "a decimal point" : "points of thousands",
                       is_point ? "points of thousands" : "decimal points",
                       is_point ? thousands_.first.text : points_.first.text,
                       is_point ? thousands_.first.line : points_.first.line, kOtherCells));
  }
  has_thousands_points = signs.is_known ? known.has_thousands_points : thousands_.count > 0;
  if (has_thousands_points) return;
  has_decimal_points = points_.count > 0 || unclear_.count > 0;
  if (!is_unclear(known, signs)) return;
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

void ColumnCells::finish_commas(const TableColumn& known) {
  if (commas_.count == 0) return;
  const std::int64_t pointed = points_.count + unclear_.count;
  if (words == 0 && pointed == 0 && grouped_ == 0 && (decimal_ > 0 || known.has_decimal_commas)) {
    numbers += commas_.count;
    sum += sum_of_commas_;
    has_decimal_commas = true;
    return;
  }
  if (words == 0 && decimal_ == 0)
    refuse(
        commas_.first,
        "a comma may be a decimal one or of thousands; write the number with a point, or without the comma");
  // Few cells of many make no column of words.
  if (words > 0 && 9 * words <= numbers + commas_.count) throw_no_number(first_word);
  if (words == 0 && pointed > 0 && 9 * pointed <= commas_.count) {
    const CellPlace& cell = points_.count > 0 ? points_.first : unclear_.first;
    refuse(cell,
           fmt::format("it has a point, and other numbers of the column have commas, as {:?} in line {}{}",
                       commas_.first.text, commas_.first.line, kOtherCells));
  }
  if (words == 0) first_word = commas_.first;
  words += commas_.count;
}

bool finish_numbers(const std::vector<ColumnCells*>& cells, const std::vector<TableColumn>& known,
                    NumberSigns signs) {
  for (std::size_t i = 0; i < cells.size(); ++i) cells[i]->finish_commas(known[i]);
  signs.has_decimal_commas |=
      std::any_of(cells.begin(), cells.end(), [](const ColumnCells* one) { return one->shows_commas(); });
  for (std::size_t i = 0; i < cells.size(); ++i) cells[i]->finish_points(known[i], signs);
  return signs.has_decimal_commas;
}

std::string separator_note(char separator, const std::vector<ColumnCells>& cells) {
  if (separator == ',') return "";
  std::int64_t with_commas = 0;
  for (const ColumnCells& one : cells) with_commas += one.with_commas;
  return fmt::format("fields between {}{}", separator == ';' ? "\";\"" : "tabs",
                     with_commas == 0 ? "" : fmt::format(", {} numbers with decimal commas", with_commas));
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
  return notes;
}

std::string place_text(const CellPlace& cell, bool of_several_files) {
  const std::string file = std::filesystem::path(cell.file).filename().string();
  return fmt::format("{}line {}, column {}", of_several_files ? file + ", " : "", cell.line, cell.column + 1);
}

void throw_no_number(const CellPlace& cell) {
  throw InvalidArgumentError("{}, line {}, column {}: {:?} is no number that f32 holds", cell.file, cell.line,
                             cell.column + 1, cell.text);
}

}  // namespace kolo::models::detail
