// Small texts: numbers and words as users type them, and what an exception says.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kolo {

// Numbers are taken whole or not at all: "12x", "", "nan" and overflow are no numbers.
/// Decimal, with an optional leading '-'. Nothing else may stand before or after it.
std::optional<std::int64_t> parse_int64(std::string_view text);
/// Fixed or scientific notation; finite only.
std::optional<double> parse_double(std::string_view text);

/// Numbers as text with all of their bits, in hexadecimal, with spaces between them. Includes NaN and
/// infinities. No locale changes it, as it changes printf and strtod.
std::string exact_text(const std::vector<double>& numbers);
/// What exact_text wrote; "0x" in front of a number is understood, too. Throws DataLossError for other text.
std::vector<double> parse_exact(std::string_view text);

/// The candidate with the smallest edit distance to `word` (first of equals), or "" if all differ in more
/// than half of their letters. Case counts as half a difference. Candidates that begin with the word, of
/// three letters or more, come before all others: "resnet" is resnet20 rather than lenet.
std::string nearest_name(std::string_view word, const std::vector<std::string>& candidates);

/// `; did you mean "adam"?`, or "" without a near name: the ending of an error message.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

/// With ASCII's capital letters as small ones. No locale changes it.
constexpr char lower_case(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}
std::string lower_case(std::string_view text);

/// what() of the exception, or a sentence that says that it has none. `error` is not null.
std::string message_of(const std::exception_ptr& error);
/// The same, behind its code for an Error: "NotFound: <what()>". An Error that nobody catches ends the
/// process with this line, and exit code 1.
std::string described(const std::exception_ptr& error);

}  // namespace kolo
