// Curves of trainings as one HTML page that needs nothing else: no script, no network.
#pragma once

#include <string>
#include <vector>

#include <kolo/launcher/training_curves.h>

namespace kolo::launcher {

/// A chart (inline SVG) for each title, with the curves of all runs over each other, each run in a colour of
/// its own, and the last values as a table. Light and dark by the reader's setting, on phones and in print.
std::string plot_page(const std::vector<TrainingRun>& runs);

/// About `count` round numbers that cover [low, high], the first and the last one outside or on its ends.
std::vector<double> ticks(double low, double high, int count);

}  // namespace kolo::launcher
