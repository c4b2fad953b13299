#include <kolo/models/programs/progress.h>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <random>
#include <vector>

#include <kolo/core/base/elastic_restart.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/json_text.h>
#include <kolo/core/base/launcher.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/process.h>
#include <kolo/core/runtime/exchange_numbers.h>
#include <kolo/core/runtime/group.h>

namespace kolo::models {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr Seconds kBetweenReports{1}, kBetweenPlainLines{10};

std::string clock_time(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::lround(std::min(seconds, 1e9)));
  return whole >= 3600 ? fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60)
                       : fmt::format("{}:{:02}", whole / 60, whole % 60);
}

std::string time_of_day() { return fmt::format("  {:%H:%M:%S}", fmt::localtime(std::time(nullptr))); }

// Rates and times in as many digits as they mean something.
double to_tenths(double value) { return std::round(value * 10) / 10; }

template <typename T>
nlohmann::ordered_json or_null(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

double mean_of_first(const std::vector<std::vector<double>>& of_ranks) {
  double sum = 0;
  for (const std::vector<double>& theirs : of_ranks) sum += theirs.at(0);
  return sum / static_cast<double>(of_ranks.size());
}

std::string ranks_text(int ranks) { return fmt::format("{} rank{}", ranks, ranks == 1 ? "" : "s"); }

}  // namespace

std::string log_file(const TrainOptions& options) {
  if (options.log_dir.empty() || process().rank != 0) return "";
  std::error_code error;
  std::filesystem::create_directories(options.log_dir, error);
  if (error)
    throw FailedPreconditionError("--log-dir {}: the folder cannot be made: {}", options.log_dir,
                                  error.message());
  return options.log_dir + "/metrics.jsonl";
}

double mean_over_ranks(double mine) {
  return mean_of_first(kolo::detail::allgather_numbers(world_group(), {mine}));
}

Progress::Progress(ProgressOptions options)
    : options_(std::move(options)),
      run_(fmt::format("{:08x}", std::random_device()())),
      rewrites_(!options_.json && kolo::detail::rewrites_lines()) {
  if (!options_.prints || options_.log_file.empty()) return;
  log_.open(options_.log_file, std::ios::app);
  if (!log_) throw FailedPreconditionError("cannot write the log file {}", options_.log_file);
}

void Progress::start(std::int64_t global_step) {
  first_step_ = last_told_ = global_step;
  started_ = told_ = Clock::now();
  due_ = global_step + (options_.log_steps ? steps_to_next(global_step) : 1);
  if (options_.parameters.is_null()) return;
  if (options_.prints) {
    Json json = row("run", global_step);
    json.update(options_.parameters);
    write_log(json_text(json), json);
  }
  tell_restart(global_step);
}

void Progress::tell_restart(std::int64_t global_step) {
  const ElasticRestart restart = elastic_restart();
  if (restart.number == 0) return;
  std::vector<std::string> hosts;
  for (const std::string& host : world_group().allgather(process().hostname))
    if (std::find(hosts.begin(), hosts.end(), host) == hosts.end()) hosts.push_back(host);
  if (!options_.prints) return;
  Json json = row("restart", global_step);
  json.update({{"number", restart.number},
               {"ranks", options_.ranks},
               {"ranks_before", restart.ranks_before},
               {"hosts", hosts},
               {"lost", restart.lost_hosts},
               {"step", or_null(restart.last_step)},
               {"step_lost_to", global_step},
               {"seconds", restart.seconds}});
  write_log(json_text(json), json);
}

double Progress::samples_per_second(std::int64_t global_step) const {
  const Seconds elapsed = Clock::now() - started_;
  return static_cast<double>((global_step - first_step_) * options_.global_batch) /
         std::max(elapsed.count(), 1e-9);
}

// By this rank's clock. The first steps are slow, and a guess from them not far from the truth: no interval
// is more than ten times the one before.
std::int64_t Progress::steps_to_next(std::int64_t global_step) const {
  if (options_.log_steps) return *options_.log_steps - global_step % *options_.log_steps;
  const std::int64_t before = std::max<std::int64_t>(1, global_step - last_told_);
  const Seconds a_step = Seconds(Clock::now() - told_) / static_cast<double>(before);
  const double steps = kBetweenReports / std::max(a_step, Seconds(1e-9));
  return std::llround(std::clamp(steps, 1.0, 10.0 * static_cast<double>(before)));
}

void Progress::step(std::int64_t global_step, double own_loss, double learning_rate,
                    std::optional<double> own_share) {
  std::vector<double> own = {own_loss, static_cast<double>(steps_to_next(global_step))};
  if (own_share) own.push_back(std::round(*own_share * 1e4) / 1e4);
  const auto all = kolo::detail::allgather_numbers(world_group(), own);
  const double loss = mean_of_first(all);
  due_ = global_step + std::lround(all[0].at(1));
  last_told_ = global_step;
  told_ = Clock::now();
  if (!options_.prints) return;

  const double rate = samples_per_second(global_step);
  const double left =
      static_cast<double>((options_.last_step - global_step) * options_.global_batch) / std::max(rate, 1e-9);
  Json json = row("progress", global_step);
  json["loss"] = loss;
  json["learning_rate"] = learning_rate;
  json["samples_per_s"] = to_tenths(rate);
  json["seconds_left"] = to_tenths(left);
  if (own_share)
    for (const std::vector<double>& theirs : all) json["communication_share"].push_back(theirs.at(2));
  write_json(json);
  const bool is_time =
      rewrites_ || options_.log_steps || !printed_ || told_ - *printed_ >= kBetweenPlainLines;
  if (!options_.json && is_time)
    print_line(fmt::format(
        "step {}/{}  epoch {:.2f}  loss {:.4f}  rate {:.3g}  {:.0f} samples/s on {}  {} left  ({}){}",
        global_step, options_.last_step, options_.epochs ? options_.epochs() : 0, loss, learning_rate, rate,
        ranks_text(options_.ranks), clock_time(left), options_.data_name, rewrites_ ? "" : time_of_day()));
}

// Of a text the loss, in nats a token, is what models are compared by.
std::string Progress::told(const Evaluation& test) const {
  const std::string& test_name = options_.test_name.empty() ? options_.data_name : options_.test_name;
  if (test.errors)
    return fmt::format("test MAE {:.6g}, RMSE {:.6g}, R² {} of {} test samples ({})", test.errors->mae,
                       test.errors->rmse, test.errors->r2 ? fmt::format("{:.4f}", *test.errors->r2) : "-",
                       test.labels, test_name);
  if (test.scores)
    return fmt::format("test exact match {:.2f} % of {} test samples ({})", test.accuracy() * 100,
                       test.labels, test_name);
  const std::string loss = options_.tokens ? fmt::format("test loss {:.4f} nats a token, ", test.loss()) : "";
  return fmt::format("{}test accuracy {:.2f} % of {} test {} ({})", loss, test.accuracy() * 100, test.labels,
                     options_.tokens ? "tokens" : "samples", test_name);
}

void Progress::add_to(Json& row, const std::optional<Evaluation>& test) const {
  if (options_.label_kind == LabelKind::numbers) {
    const auto errors = test ? test->errors : std::nullopt;
    row["test_mae"] = errors ? Json(errors->mae) : Json(nullptr);
    row["test_rmse"] = errors ? Json(errors->rmse) : Json(nullptr);
    row["test_r2"] = errors ? or_null(errors->r2) : Json(nullptr);
  } else {
    row[options_.label_kind == LabelKind::several ? "test_exact_match" : "test_accuracy"] =
        test ? Json(test->accuracy()) : Json(nullptr);
  }
  row["test_loss"] = test ? Json(test->loss()) : Json(nullptr);
}

void Progress::validated(std::int64_t global_step, const Evaluation& test) {
  if (!options_.prints) return;
  Json json = row("validation", global_step);
  add_to(json, test);
  json["test_samples"] = test.labels;
  write_json(json);
  if (options_.json) return;
  end_line();
  fmt::print("step {}: {}\n", global_step, told(test));
  std::fflush(stdout);
}

void Progress::diverged(std::int64_t global_step) {
  if (!options_.prints) return;
  Json json = row("diverged", global_step);
  json["loss"] = nullptr;
  write_json(json);
}

void Progress::stopped_early(std::int64_t global_step, const std::string& why) {
  if (!options_.prints) return;
  Json json = row("stopped_early", global_step);
  json["why"] = why;
  write_json(json);
  if (options_.json) return;
  end_line();
  fmt::print("step {}: {}\n", global_step, why);
}

void Progress::profiled(std::int64_t global_step, const Profile& profile) {
  if (!options_.prints) return;
  Json json = row("profile", global_step);
  json.update(to_json(profile));
  write_json(json);
  if (options_.json) return;
  end_line();
  fmt::print("{}", to_text(profile));
  std::fflush(stdout);
}

void Progress::done(const TrainResult& result) {
  if (!options_.prints) return;
  const bool made_steps = result.global_step > first_step_;
  Json json = row("done", result.global_step);
  json["loss"] = or_null(result.loss);
  add_to(json, result.test);
  if (result.by_class) json.update(to_json(result.by_class->confusion));
  if (result.by_class && result.by_class->confusion.classes() == 2)
    json["auc"] = or_null(result.by_class->auc);
  const bool has_targets = result.in_detail && result.test && result.test->errors;
  if (has_targets) json.update(to_json(result.test->errors->each));
  const bool has_labels = result.in_detail && result.test && result.test->scores;
  if (has_labels) json.update(to_json(*result.test->scores));
  json["samples_per_s"] = made_steps ? Json(to_tenths(final_rate_)) : Json(nullptr);
  json["ranks"] = options_.ranks;
  json["stopped_on_request"] = result.stopped_on_request;
  write_json(json);
  if (options_.json) return;
  end_line();
  if (result.stopped_on_request)
    fmt::print("stopped on request: step {} of {}{}", result.global_step, options_.last_step,
               options_.saves ? ", saved" : "");
  else fmt::print("done: step {}", result.global_step);
  if (result.loss) fmt::print(", loss {:.4f}", *result.loss);
  if (result.test) fmt::print(", {}", told(*result.test));
  else fmt::print(" ({})", options_.data_name);
  if (made_steps) fmt::print(", {:.0f} samples/s on {}", final_rate_, ranks_text(options_.ranks));
  fmt::print("\n");
  if (result.by_class) fmt::print("{}", to_text(result.by_class->confusion));
  if (result.by_class && result.by_class->auc)
    fmt::print("area under the ROC curve {:.4f}\n", *result.by_class->auc);
  if (has_targets && result.test->errors->each.size() > 1)
    fmt::print("{}", to_text(result.test->errors->each));
  if (has_labels) fmt::print("{}", to_text(*result.test->scores));
  std::fflush(stdout);
}

Progress::Json Progress::row(const char* event, std::int64_t global_step) const {
  const Seconds now = std::chrono::system_clock::now().time_since_epoch();
  Json row = {{"event", event},
              {"run", run_},
              {"time", std::round(now.count() * 1000) / 1000},
              {"global_step", global_step}};
  // One sample of a million is told.
  if (options_.epochs) row["epoch"] = std::round(options_.epochs() * 1e6) / 1e6;
  row["data"] = options_.data_name;
  return row;
}

void Progress::write_log(const std::string& line, const Json& row) {
  if (log_.is_open() && log_.good() && !(log_ << line << std::endl))
    log_warning("{} cannot be written any more; its last line is that before step {}", options_.log_file,
                row.at("global_step").get<std::int64_t>());
}

void Progress::write_json(const Json& row) {
  const std::string line = json_text(row);
  write_log(line, row);
  if (options_.on_row) options_.on_row(row);
  if (!options_.json) return;
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

// On a terminal one line is written over and over; \033[K clears what a longer one left. The carriage return
// comes last: kolorun shows what it ends.
void Progress::print_line(const std::string& line) {
  if (rewrites_) fmt::print("{}\033[K\r", line);
  else fmt::print("{}\n", line);
  std::fflush(stdout);
  line_open_ = rewrites_;
  printed_ = Clock::now();
}

void Progress::end_line() {
  if (line_open_) fmt::print("\n");
  line_open_ = false;
}

}  // namespace kolo::models
