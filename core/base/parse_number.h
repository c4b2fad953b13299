// Numbers as users type them, taken whole or not at all: "12x", "", "nan" and overflow are no numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace kolo {

/// Decimal, with an optional leading '-'. Nothing else may stand before or after it.
std::optional<std::int64_t> parse_int64(std::string_view text);
/// Fixed or scientific notation; finite only.
std::optional<double> parse_double(std::string_view text);

}  // namespace kolo
