// What trainings have written down of themselves, as curves: kolo-train's metrics.jsonl, and CSV files.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace kolo::launcher {

struct Curve {
  std::string name;  // "", "validation", "rank 1"
  /// x and y in the file's order. x is finite. y is NaN or infinite where the training has written so.
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
  std::string x = "step";  // what x counts: "step", "epoch" or "row"
};

/// text: the whole of a file. It is a metrics.jsonl if it begins with `{` or `path` ends in .jsonl, else a
/// CSV with a header. path: for errors. The run's name stays empty. by_epoch: x in epochs, where the file has
/// both. A CSV's x is its column global_step, step or epoch, else the row's number. A null of metrics.jsonl,
/// which stands for NaN or an infinity, becomes NaN. A training that was begun again from an earlier step
/// replaces what it had made after that step. Throws std::runtime_error that names the file if it holds
/// nothing to plot or a line has another form. A last line that is cut off is passed over.
TrainingRun read_training(const std::string& text, const std::string& path, bool by_epoch);

/// The order of charts: kolo-train's first, then others as they come.
std::size_t place_of_title(const std::string& title);

/// The file at `path` is a CSV whose header has a column epoch, step or global_step, and another column.
bool is_csv_log(const std::string& path);

}  // namespace kolo::launcher
