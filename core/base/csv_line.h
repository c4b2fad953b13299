// Lines of comma-separated values as fields (RFC 4180).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kolo {

/// Replaces `fields` with those of the line: without blanks around them, and without the quotes. Doubled
/// quotes within quotes stay doubled, see unquoted. Separators within quotes are part of a field.
void split_fields(std::string_view line, char separator, std::vector<std::string_view>& fields);

/// A field's words: of doubled quotes one stays.
std::string unquoted(std::string_view field);

}  // namespace kolo
