// Lines of comma-separated values as fields (RFC 4180).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kolo {

/// Replaces `fields` with those of the line: without blanks around them, and without the quotes. Doubled
/// quotes within quotes stay doubled, see unquoted. Separators within quotes are part of a field.
void split_fields(std::string_view line, char separator, std::vector<std::string_view>& fields);

/// A field's words: of doubled quotes one stays, and a line break within the field is a blank.
std::string unquoted(std::string_view field);

/// Where a field of the line begins with a quote that the line does not close, and that may be closed in a
/// later one; npos where there is none. separators: those that may stand between its fields.
std::size_t open_quote(std::string_view line, std::string_view separators);
/// The place of the quote that ends what the one at `open` begins; npos where there is none.
std::size_t closing_quote(std::string_view text, std::size_t open);

/// The fields of a line as the words that they are. Empty ones are left out. So options take names: with
/// commas between them, and a name with a comma in quotes.
std::vector<std::string> names_in(std::string_view line);

}  // namespace kolo
