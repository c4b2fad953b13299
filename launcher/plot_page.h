// Curves of trainings as one HTML page that needs no other file and no network. Without scripts it shows the
// charts and the last values; its script adds the values at the pointer.
#pragma once

#include <string>
#include <vector>

#include <kolo/launcher/training_curves.h>

namespace kolo::launcher {

struct PlotPageOptions {
  int refresh_seconds = 0;              // the page loads itself again after so long; 0: never
  std::vector<std::string> notes = {};  // sentences under the heading
};

/// A chart (inline SVG) for each title, with the curves of all runs over each other, and the last values as a
/// table. A run has a colour and, from the seventh run on, another shape at its curves' ends. A curve breaks
/// where it is NaN or infinite, with a cross at the chart's edge. Light and dark by the reader's setting, on
/// phones and in print.
std::string plot_page(const std::vector<TrainingRun>& runs, const PlotPageOptions& options = {});

/// About `count` round numbers that cover [low, high], the first and the last one outside or on its ends.
std::vector<double> ticks(double low, double high, int count);

}  // namespace kolo::launcher
