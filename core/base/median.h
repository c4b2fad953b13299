// What a row of a benchmark, or of a profile, tells of its times.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace kolo {

/// Of at least one value; of an even number the upper of the two in the middle.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// To so many digits behind the point, as rows print numbers.
inline double rounded(double value, int digits = 3) {
  const double scale = std::pow(10, digits);
  return std::round(value * scale) / scale;
}

}  // namespace kolo
