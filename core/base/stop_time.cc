#include <kolo/core/base/stop_time.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <utility>

#include <fmt/chrono.h>

#include <kolo/core/base/launcher.h>
#include <kolo/core/base/text.h>

namespace kolo::detail {

std::optional<WallTime> parse_slurm_time(const std::string& text) {
  std::tm local = {};
  if (strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &local) == nullptr) return std::nullopt;
  local.tm_isdst = -1;
  return std::chrono::system_clock::from_time_t(std::mktime(&local));
}

namespace {

// A controller serves a whole site.
constexpr std::chrono::minutes kBetweenQuestions{1}, kAfterSilence{10};

bool tells_its_end(const BatchJob& job) { return job.system == "Slurm"; }

std::optional<WallTime> ask_slurm(const BatchJob& job, const RunProgram& run) {
  const ProgramEnd said = run({"squeue", "-h", "-o", "%e", "-j", job.job});
  return parse_slurm_time(said.good || said.is_code_lost ? said.out : "");
}

}  // namespace

std::optional<WallTime> find_end(const BatchJob& job, const VariableText& text_of, const RunProgram& run) {
  if (!tells_its_end(job)) return std::nullopt;
  // Asked first: the end may have been moved since the job began.
  if (const auto end = ask_slurm(job, run)) return end;
  const auto end = parse_int64(text_of("SLURM_JOB_END_TIME"));
  return end ? std::optional(std::chrono::system_clock::from_time_t(*end)) : std::nullopt;
}

std::optional<WallTime> time_to_stop(WallTime start, WallTime end, std::optional<double> before_s) {
  constexpr double kUsual_s = 60, kMostOfWhatIsLeft = 0.1;
  const double left = std::chrono::duration<double>(end - start).count();
  const double before = before_s.value_or(std::clamp(left * kMostOfWhatIsLeft, 0.0, kUsual_s));
  if (before_s && *before_s == 0) return std::nullopt;
  return end - std::chrono::milliseconds(static_cast<std::int64_t>(before * 1000));
}

StopTime::StopTime(BatchJob job, std::optional<double> before_s, VariableText text_of, RunProgram run)
    : job_(std::move(job)),
      before_s_(before_s),
      text_of_(std::move(text_of)),
      run_(std::move(run)),
      start_(std::chrono::system_clock::now()) {
  if (before_s_ && *before_s_ == 0) return;
  end_ = find_end(job_, text_of_, run_);
  if (end_) plan();
  if (tells_its_end(job_)) next_look_ = start_ + kBetweenQuestions;
}

// A request may come while the ranks save: that save has to end, and another one to follow a step.
void StopTime::plan() {
  constexpr std::chrono::seconds kForAStep{10};
  when_ = time_to_stop(start_, *end_, before_s_);
  const WallTime for_save = *end_ - 2 * save_ - kForAStep;
  is_for_save_ = save_.count() > 0 && for_save < *when_;
  if (is_for_save_) when_ = for_save;
}

void StopTime::save_took(std::chrono::milliseconds took) {
  if (took == std::exchange(save_, took) || !when_) return;
  plan();
}

std::string StopTime::reason() const {
  const double took = std::chrono::duration<double>(save_).count();
  return is_for_save_ ? fmt::format(" (the last save took {:.3g} s)", took) : "";
}

// False where nobody answers. The variable that the job began with would tell of the end before it was moved.
bool StopTime::ask() {
  const auto end = ask_slurm(job_, run_);
  if (end) end_ = end;
  return end.has_value();
}

void StopTime::look_again(WallTime now) {
  if (!next_look_ || now < *next_look_) return;
  const bool is_answered = ask();
  next_look_ = now + (is_answered ? kBetweenQuestions : kAfterSilence);
  if (is_answered) plan();
}

std::optional<WallTime> StopTime::next() const {
  if (when_ && next_look_) return std::min(*when_, *next_look_);
  return when_ ? when_ : next_look_;
}

std::optional<WallTime> StopTime::confirm() {
  const WallTime before = *end_;
  if (ask() && *end_ > before) return plan(), std::nullopt;
  when_.reset(), next_look_.reset();  // asked once
  return end_;
}

namespace {

std::atomic<std::int64_t> last_save_ms{0};

}  // namespace

void note_save(std::chrono::milliseconds took) {
  last_save_ms.store(took.count());
  if (!is_under_kolorun() || find_batch_job().system != "Slurm") return;
  const std::string line = fmt::format("{}{}\n", kSaveTookMarker, took.count());
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

std::chrono::milliseconds last_save() { return std::chrono::milliseconds(last_save_ms.load()); }

std::string clock_text(WallTime time) {
  return fmt::format("{:%H:%M:%S}", fmt::localtime(std::chrono::system_clock::to_time_t(time)));
}

std::string date_text(WallTime time) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(std::chrono::system_clock::to_time_t(time)));
}

}  // namespace kolo::detail
