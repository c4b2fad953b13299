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

}  // namespace

std::optional<double> ColumnCells::add(const CsvFile& file, std::size_t column, std::string_view field) {
  const bool has_commas_between = file.separator() == ',';
  if (const auto value = number_in(field, !has_commas_between)) {
    ++numbers;
    sum += *value;
    const bool has_comma = field.find(',') != std::string_view::npos;
    const std::size_t point = field.find('.');
    if (point == std::string_view::npos) decimal_commas_ += has_comma ? 1 : 0;
    else if (has_commas_between || !is_grouped_by_points(field)) ++points_;
    else if (has_comma || field.find('.', point + 1) != std::string_view::npos) {
      if (++thousands_ == 1) first_thousands_ = place_of_cell(file, column, field);
    } else if (++unclear_ == 1) {
      first_unclear_ = place_of_cell(file, column, field);
    }
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
      if (++commas_ == 1) first_comma_ = place_of_cell(file, column, field);
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

void ColumnCells::finish(const TableColumn& known) {
  finish_points(known.has_thousands_points);
  finish_commas(known.has_decimal_commas);
}

void ColumnCells::finish_points(bool is_known) {
  if (thousands_ > 0 && points_ > 0) {  // as 1.100,50 and 2.5
    if (words == 0) first_word = first_thousands_;
    words += thousands_;
    numbers -= thousands_;
    return;
  }
  has_thousands_points = thousands_ > 0 || (unclear_ > 0 && is_known);
  if (has_thousands_points || unclear_ == 0 || decimal_commas_ == 0 || points_ > 0 || words > numbers) return;
  throw InvalidArgumentError(
      "{}, line {}, column {}: {:?}: a point may be a decimal one or of thousands, and other numbers of the "
      "column have decimal commas; write the number without the point, or with a decimal comma",
      first_unclear_.file, first_unclear_.line, first_unclear_.column + 1, first_unclear_.text);
}

void ColumnCells::finish_commas(bool is_known) {
  if (commas_ == 0) return;
  if (words == 0 && points_ == 0 && grouped_ == 0 && (decimal_ > 0 || is_known)) {
    numbers += commas_;
    sum += sum_of_commas_;
    has_decimal_commas = true;
    return;
  }
  if (words == 0 && decimal_ == 0)
    throw InvalidArgumentError(
        "{}, line {}, column {}: {:?}: a comma may be a decimal one or of thousands; write the "
        "number with a point, or without the comma",
        first_comma_.file, first_comma_.line, first_comma_.column + 1, first_comma_.text);
  if (words == 0) first_word = first_comma_;
  words += commas_;
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
