// The rows of a table as they stand in its files, before its words have numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kolo::models::detail {

/// Of one file after the other.
struct CsvRows {
  std::vector<float> values = {};        // [rows, features]; NaN: no number stands there
  std::vector<double> labels = {};       // [rows, labels]; -1 as above
  std::vector<std::int64_t> lines = {};  // of each row in its file
  std::vector<std::size_t> ends = {};    // of each file, in rows
  std::vector<bool> kept = {};           // false: the row is left out, for an empty cell
};

}  // namespace kolo::models::detail
