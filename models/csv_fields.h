// Which separator a line of values has, and fields as numbers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kolo::models::detail {

/// A tab or ';' where the line holds more of them than commas, outside of quotes, or where all its commas are
/// those of numbers between them; else ','.
char separator_of(std::string_view line);

/// Nothing where it is no number, NaN, or more than f32 holds. decimal_comma: "1,5" is one, and so are
/// "1.100,5" and "1.234.567", whose points cannot be decimal ones.
std::optional<double> number_in(std::string_view field, bool decimal_comma = false);

/// A number with the mark, a point or a comma, as that of thousands, and the other one as the decimal one: of
/// points 1.100 and -12.345,6, of commas 1,100 and -12,345.6.
bool is_grouped_by(char mark, std::string_view field);
/// The number that it is then; of other fields as number_in has it with the other mark as the decimal one.
std::optional<double> number_with_thousands(char mark, std::string_view field);

/// True for what is a number in some way of writing.
bool may_be_number(std::string_view field);

/// True for what number_in does not take although it is a number.
bool is_out_of_range(std::string_view field);

/// "", NA, N/A, NaN, null and ?, in letters of any size.
bool is_empty_cell(std::string_view field);

/// "cat | dog" as cat and dog: what stands between the separators, without blanks around it; parts that are
/// empty are left out.
std::vector<std::string> parts_of(std::string_view text, char separator);

/// Throws InvalidArgumentError, with the line's number, for a file of `text` that is not UTF-8.
void check_utf8(const std::string& name, std::string_view text, char line_end);

/// Equal but for the letters' size.
bool is_same_name(std::string_view a, std::string_view b);

}  // namespace kolo::models::detail
