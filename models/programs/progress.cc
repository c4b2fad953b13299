#include <kolo/models/programs/progress.h>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include <nlohmann/json.hpp>

#include <kolo/core/base/error.h>

namespace kolo::models {
namespace {

using Json = nlohmann::ordered_json;

std::string clock_time(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::lround(std::min(seconds, 1e9)));
  return whole >= 3600 ? fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60)
                       : fmt::format("{}:{:02}", whole / 60, whole % 60);
}

// mpirun gives its ranks a pseudo terminal, whatever becomes of what they write.
bool is_terminal() { return isatty(STDOUT_FILENO) == 1 && std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr; }

// Rates and times in as many digits as they mean something.
double to_tenths(double value) { return std::round(value * 10) / 10; }

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace

Progress::Progress(ProgressOptions options)
    : options_(std::move(options)),
      terminal_(!options_.json && is_terminal()),
      interval_(std::max<std::int64_t>(1, options_.last_step / 100)) {
  if (!options_.prints || options_.log_file.empty()) return;
  log_.open(options_.log_file, std::ios::app);
  if (!log_) throw FailedPreconditionError("cannot write the log file {}", options_.log_file);
}

void Progress::start(std::int64_t global_step) {
  first_step_ = global_step;
  started_ = Clock::now();
}

double Progress::samples_per_second(std::int64_t global_step) const {
  const std::chrono::duration<double> elapsed = Clock::now() - started_;
  return static_cast<double>((global_step - first_step_) * options_.global_batch) /
         std::max(elapsed.count(), 1e-9);
}

void Progress::step(std::int64_t global_step, double loss) {
  if (!options_.prints) return;
  const double rate = samples_per_second(global_step);
  const double left =
      static_cast<double>((options_.last_step - global_step) * options_.global_batch) / std::max(rate, 1e-9);
  write_json(Json{{"event", "progress"},
                  {"global_step", global_step},
                  {"loss", loss},
                  {"samples_per_s", to_tenths(rate)},
                  {"seconds_left", to_tenths(left)},
                  {"data", options_.data_name}}
                 .dump());
  if (options_.json) return;
  const std::string line =
      fmt::format("step {}/{}  loss {:.4f}  {:.0f} samples/s on {} rank{}  {} left  ({})", global_step,
                  options_.last_step, loss, rate, options_.ranks, options_.ranks == 1 ? "" : "s",
                  clock_time(left), options_.data_name);
  // On a terminal one line is written over and over; \033[K clears what a longer one left.
  if (terminal_) fmt::print("\r{}\033[K", line);
  else fmt::print("{}\n", line);
  std::fflush(stdout);
}

void Progress::done(const TrainResult& result) {
  if (!options_.prints) return;
  const bool made_steps = result.global_step > first_step_;
  const double rate = made_steps ? final_rate_ : 0;
  write_json(Json{{"event", "done"},
                  {"global_step", result.global_step},
                  {"loss", or_null(result.loss)},
                  {"test_accuracy", or_null(result.test_accuracy)},
                  {"samples_per_s", to_tenths(rate)},
                  {"ranks", options_.ranks},
                  {"data", options_.data_name},
                  {"stopped_on_request", result.stopped_on_request}}
                 .dump());
  if (options_.json) return;
  if (terminal_ && made_steps) fmt::print("\n");
  fmt::print("{}: step {}", result.stopped_on_request ? "stopped on request" : "done", result.global_step);
  if (result.loss) fmt::print(", loss {:.4f}", *result.loss);
  if (result.test_accuracy)
    fmt::print(", test accuracy {:.2f} % of {} test samples ({})", *result.test_accuracy * 100,
               result.test_samples, options_.data_name);
  else fmt::print(" ({})", options_.data_name);
  if (made_steps)
    fmt::print(", {:.0f} samples/s on {} rank{}", rate, options_.ranks, options_.ranks == 1 ? "" : "s");
  fmt::print("\n");
  std::fflush(stdout);
}

void Progress::write_json(const std::string& line) {
  if (log_.is_open()) log_ << line << std::endl;
  if (!options_.json) return;
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

}  // namespace kolo::models
