// Values of options: taken as text and parsed by kolo, so that "2x" and "nan" are refused by the same words
// everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kolo::launcher {

constexpr int kMostNumber = 1 << 20;  // of ranks, restarts, steps: the most that an option takes

/// Each throws InvalidArgumentError `<option> "<text>" is not valid; allowed: …`.
std::int64_t whole_number(const char* option, const std::string& text, std::int64_t min, std::int64_t max);
/// At most a day.
double seconds_of(const char* option, const std::string& text);
/// The index of the word among `allowed`.
size_t choice(const char* option, const std::string& word, const std::vector<std::string>& allowed);

}  // namespace kolo::launcher
