// The pen strokes of the ten digits, in the ways people write them.
#pragma once

#include <vector>

namespace kolo::models::detail {

struct Point {
  double x, y;  // 0 … 100 from left and from top of the digit's box
};

/// The pen's way: a smooth curve through the points; closed if the last point is the first.
using Stroke = std::vector<Point>;
using Glyph = std::vector<Stroke>;

/// The glyphs of `digit`, 0 … 9. A corner is where one stroke ends and the next begins.
const std::vector<Glyph>& glyphs(int digit);

}  // namespace kolo::models::detail
