// "Did you mean": the known word nearest to a mistyped one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kolo {

/// The candidate with the smallest edit distance to `word` (first of equals), or "" if all differ in more
/// than half of their letters. Case counts as half a difference.
std::string nearest_name(std::string_view word, const std::vector<std::string>& candidates);

/// `; did you mean "adam"?`, or "" without a near name: the ending of an error message.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace kolo
