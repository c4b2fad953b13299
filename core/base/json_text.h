// JSON as text, in one way for all that kolo writes.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace kolo {

/// `value` on one line, or over several lines with `indent` spaces a level. Names and paths come from
/// outside: bytes that are not UTF-8 become U+FFFD, where dump() alone would throw in the middle of a report.
template <typename Json>
std::string json_text(const Json& value, int indent = -1) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace kolo
