// The parts of a plot's page that are the same on each: its style, and the script that shows values.
#pragma once

namespace kolo::launcher {

extern const char kPlotStyle[];
extern const char kPlotScript[];
/// Colours that kPlotStyle names --c0, --c1, …
inline constexpr int kPlotColors = 12;

}  // namespace kolo::launcher
