// Options from the environment, parsed strictly: a value that does not parse is an error that names the
// variable, the value and what is allowed; it never falls back silently to a default.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kolo {

/// The variable's text; nothing if it is unset. An empty value counts as set.
std::optional<std::string> env_string(const char* name);
/// `fallback` if unset. Throws InvalidArgumentError `<NAME>="<value>" is not valid; allowed: a whole number
/// from <min> to <max>`, or `of at least <min>`.
std::int64_t env_int64(const char* name, std::int64_t fallback, std::int64_t min,
                       std::int64_t max = INT64_MAX);
/// `fallback` if unset. Throws InvalidArgumentError as env_int64; nan and infinities are never valid.
double env_double(const char* name, double fallback, double min, double max);
/// One of `allowed`, `fallback` if unset; the error names the nearest.
std::string env_choice(const char* name, const std::string& fallback,
                       const std::vector<std::string>& allowed);

/// OMP_NUM_THREADS as OpenMP reads it: the first number of its list for nested regions, nothing if the
/// variable is unset or blank. Throws InvalidArgumentError as env_int64 for anything but 1 to 4096.
std::optional<int> omp_num_threads();

/// The KOLO_* variables of this process that `known` lacks, sorted, each with the nearest known name:
/// `KOLO_BUCKET_BYTE is not an option of kolo; did you mean "KOLO_BUCKET_BYTES"?`
std::vector<std::string> unknown_kolo_variables(const std::vector<std::string>& known);

}  // namespace kolo
