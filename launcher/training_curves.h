// What trainings have written down of themselves, as curves: kolo-train's metrics.jsonl, Keras' CSV.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace kolo::launcher {

struct Curve {
  std::string name;  // "", "validation", "rank 1"
  std::vector<std::pair<double, double>> points;
};

/// Curves that belong onto one chart.
struct CurveGroup {
  std::string title;  // "loss", "learning rate", …
  std::vector<Curve> curves;
};

/// One training.
struct TrainingRun {
  std::string name;
  std::vector<CurveGroup> groups;
  bool by_epoch = false;  // what x is: epochs, else steps
};

/// path: a folder with metrics.jsonl, such a file, or a `.csv` with a column `epoch`. by_epoch: x in epochs,
/// as a CSV has it anyway. A training that was begun anew from an earlier step replaces what came behind
/// that. Throws std::runtime_error that names the file: where it cannot be read, holds nothing to plot, or a
/// line is not what it should be; a cut last line is passed over.
TrainingRun read_training(const std::string& path, bool by_epoch);
bool is_csv(const std::string& path);

}  // namespace kolo::launcher
