// What kolo-train tells while it runs: a line a person reads, or JSON lines; the same to metrics.jsonl.
#pragma once

#include <chrono>
#include <cstdint>
#include <fstream>
#include <functional>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include <kolo/models/programs/evaluation.h>
#include <kolo/models/programs/step_profile.h>
#include <kolo/models/programs/train_options.h>

namespace kolo::models {

struct ProgressOptions {
  bool prints = true;  // rank 0 alone does
  bool json = false;
  std::string log_file;        // "": none
  std::string data_name;       // "mnist", "generated digits"
  std::string test_name = {};  // of what is tested, "test.csv"; "": data_name
  LabelKind label_kind = LabelKind::one_class;
  bool tokens = false;  // what is tested are the tokens of a text
  int ranks = 1;
  std::int64_t global_batch = 0;        // samples of all ranks in a step
  std::function<double()> epochs = {};  // how many are over; none: nothing is trained
  bool saves = false;                   // there is a folder for checkpoints
  std::int64_t last_step = 0;
  std::optional<std::int64_t> log_steps = {};                          // between two reports; none: by time
  std::function<void(const nlohmann::ordered_json& row)> on_row = {};  // with each that rank 0 writes
  nlohmann::ordered_json parameters = {};  // of the run: the log file's row "run"; null: there is no such row
};

/// What is told at the end.
struct TrainResult {
  std::int64_t global_step = 0;
  std::optional<double> loss;      // none: no step was made
  std::optional<Evaluation> test;  // none: no test samples, or stopped on request
  std::optional<AnswersByClass> by_class = {};
  bool in_detail = false;  // each number or label to find is told, too
  bool stopped_on_request = false;
};

/// One thread.
class Progress {
 public:
  /// Throws FailedPreconditionError if the log file cannot be written.
  explicit Progress(ProgressOptions options);
  /// An error that ends the training stands in a line of its own.
  ~Progress() { end_line(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// The clock starts: before the first step of this run. The log file gets the row "run", and where kolorun
  /// has started the job again a row "restart". All ranks call it together.
  void start(std::int64_t global_step);
  /// True on all ranks at the same steps, about a second apart.
  bool is_due(std::int64_t global_step) const { return global_step >= due_; }
  /// own_loss: this rank's; rank 0 tells the mean over the ranks, and the rate of the step. own_share: of the
  /// step, that was communication on this rank (in metrics.jsonl by rank); on all ranks or none. All ranks
  /// call it together, where it is due.
  void step(std::int64_t global_step, double own_loss, double learning_rate,
            std::optional<double> own_share = {});
  void validated(std::int64_t global_step, const Evaluation& test);
  /// The loss of the step is NaN or infinite, and it was not applied. The training ends.
  void diverged(std::int64_t global_step);
  /// The training ends before its last step, and why.
  void stopped_early(std::int64_t global_step, const std::string& why);
  void profiled(std::int64_t global_step, const Profile& profile);
  /// The clock stops: after the last step, before saving and evaluation.
  void stop(std::int64_t global_step) { final_rate_ = samples_per_second(global_step); }
  void done(const TrainResult& result);

 private:
  using Clock = std::chrono::steady_clock;
  using Json = nlohmann::ordered_json;
  void tell_restart(std::int64_t global_step);
  double samples_per_second(std::int64_t global_step) const;
  std::int64_t steps_to_next(std::int64_t global_step) const;
  Json row(const char* event, std::int64_t global_step) const;
  std::string told(const Evaluation& test) const;
  void add_to(Json& row, const std::optional<Evaluation>& test) const;
  void write_json(const Json& row);
  void write_log(const std::string& line, const Json& row);
  void print_line(const std::string& line);
  void end_line();

  ProgressOptions options_;
  std::ofstream log_;
  std::string run_;  // tells the lines of one run from those of the next in the same file
  bool rewrites_;    // one line, in place
  bool line_open_ = false;
  std::int64_t first_step_ = 0, last_told_ = 0, due_ = 0;
  Clock::time_point started_, told_;
  std::optional<Clock::time_point> printed_;
  double final_rate_ = 0;
};

/// metrics.jsonl of --log-dir, whose folder rank 0 makes; "" without it, and on other ranks. Throws
/// FailedPreconditionError where the folder cannot be made.
std::string log_file(const TrainOptions& options);

/// The mean over the ranks of what each holds. All ranks call it together.
double mean_over_ranks(double mine);

}  // namespace kolo::models
