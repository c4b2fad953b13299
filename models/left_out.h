// Counts of what lies among data and nobody takes.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace kolo::models {

/// How many files of which kind are not read: ".heic" → 180.
using LeftOut = std::map<std::string, std::int64_t>;
/// "left out: 180 .heic, 18 broken links"; "" for nothing.
std::string left_out_text(const LeftOut& left_out);

}  // namespace kolo::models

namespace kolo::models::detail {

/// "180 .heic", "1 picture in no folder of a class": of a kind whose name is that of several.
std::string count_of_kind(std::int64_t count, const std::string& kind);

}  // namespace kolo::models::detail
