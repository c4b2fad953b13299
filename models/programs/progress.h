// What kolo-train tells while it runs: a line a person reads, or JSON lines; the same to metrics.jsonl.
#pragma once

#include <chrono>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

namespace kolo::models {

struct ProgressOptions {
  bool prints = true;  // rank 0 alone does
  bool json = false;
  std::string log_file;   // "": none
  std::string data_name;  // "MNIST", "generated digits"
  int ranks = 1;
  std::int64_t global_batch = 0;  // samples of all ranks in a step
  std::int64_t last_step = 0;
};

/// What is told at the end.
struct TrainResult {
  std::int64_t global_step = 0;
  std::optional<double> loss;           // none: no step was made
  std::optional<double> test_accuracy;  // none: no test samples, or stopped on request
  std::int64_t test_samples = 0;
  bool stopped_on_request = false;
};

/// One thread.
class Progress {
 public:
  /// Throws FailedPreconditionError if the log file cannot be written.
  explicit Progress(ProgressOptions options);

  /// The clock starts: before the first step of this run.
  void start(std::int64_t global_step);
  /// Steps between two reports: the same on all ranks, since all must come together for the loss.
  std::int64_t interval() const { return interval_; }
  void step(std::int64_t global_step, double loss);
  /// The clock stops: after the last step, before saving and evaluation.
  void stop(std::int64_t global_step) { final_rate_ = samples_per_second(global_step); }
  void done(const TrainResult& result);

 private:
  using Clock = std::chrono::steady_clock;
  double samples_per_second(std::int64_t global_step) const;
  void write_json(const std::string& line);

  ProgressOptions options_;
  std::ofstream log_;
  bool terminal_;
  std::int64_t interval_;
  std::int64_t first_step_ = 0;
  Clock::time_point started_;
  double final_rate_ = 0;
};

}  // namespace kolo::models
