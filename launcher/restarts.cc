#include <kolo/launcher/restarts.h>

#include <fmt/core.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <random>
#include <string>

#include <kolo/core/base/elastic_restart.h>
#include <kolo/core/base/stop_time.h>
#include <kolo/launcher/elastic_hosts.h>
#include <kolo/launcher/job.h>
#include <kolo/launcher/output.h>
#include <kolo/launcher/output_files.h>
#include <kolo/launcher/requeue.h>
#include <kolo/launcher/start_wait.h>

namespace kolo::launcher {
namespace {

// Starts one after the other that complete no step more than those before them: another start will not help.
class Progress {
 public:
  // A program that tells no step is started again as often as --restarts says.
  void note(const JobResult& result) {
    if (!result.last_step) return;
    if (*result.last_step > furthest_) starts_without_ = 0;
    else if (++starts_without_ == 1)
      first_end_ = result.end.empty() ? fmt::format("exit code {}", result.exit_code) : result.end;
    furthest_ = std::max(furthest_, *result.last_step);
  }
  bool is_hopeless() const { return starts_without_ >= kMostStarts; }
  std::string why() const {
    return fmt::format("{} starts in a row completed no step{}; the first ended with: {}", kMostStarts,
                       furthest_ > 0 ? fmt::format(" beyond {}", furthest_) : "", first_end_);
  }

 private:
  static constexpr int kMostStarts = 3;
  std::int64_t furthest_ = 0;
  int starts_without_ = 0;
  std::string first_end_;
};

class Restarts {
 public:
  Restarts(Options options, Surroundings found, SignalQueue& signals)
      : options_(std::move(options)),
        found_(std::move(found)),
        signals_(signals),
        stop_time_(batch_job_of(options_.allotment), options_.stop_before_s, kolo::detail::own_variable,
                   kolo::detail::ask_program) {
    if (options_.elastic)
      elastic_.emplace(options_, found_, signals_, [this](const std::string& line) { tell(line); });
  }
  int run();

 private:
  void tell(const std::string& sentence);
  JobResult run_once();
  bool is_over(const JobResult& result) const;
  bool may_start_again(const JobResult& result);
  int final_code(int code) const;
  int code_without_start(int code);
  void tell_that_it_does_not_go_on(const JobResult& result);
  std::string restart_text() const;

  Options options_;
  Surroundings found_;
  SignalQueue& signals_;
  detail::StopTime stop_time_;
  std::optional<ElasticHosts> elastic_;
  std::optional<OutputFiles> files_;
  Progress progress_;
  int failures_ = 0, starts_ = 0;
  std::optional<std::int64_t> last_step_;
  JobResult last_;  // how the start before has ended, and
  int last_ranks_ = 0;
  const std::uint32_t token_ = std::random_device()();
};

void Restarts::tell(const std::string& sentence) {
  tell_user("kolorun: " + sentence);
  if (files_) files_->add("kolorun: " + sentence);
}

JobResult Restarts::run_once() {
  Options options = options_;
  // The ranks then tell their steps, and can take the lock of a checkpoint folder that an earlier start has
  // left on a host that is lost.
  if (options.restarts > 0 || elastic_)
    options.exported.push_back(fmt::format("KOLO_JOB_START={:08x}:{}", token_, ++starts_));
  if (starts_ > 1) options.exported.push_back("KOLO_RESTART=" + restart_text());
  if (!options.log_dir.empty()) files_.emplace(options.log_dir, options.ranks);
  return run_job(options, found_, stop_time_, signals_, files_ ? &*files_ : nullptr,
                 elastic_ ? &*elastic_ : nullptr);
}

// Another start would not help, or nobody wants one.
bool Restarts::is_over(const JobResult& result) const {
  // A second try does not mend a bad command line, but for a number of ranks that it has no room for.
  const bool is_refused = result.exit_code == kBadCommandLine && !(elastic_ && elastic_->has_grown());
  return result.exit_code == 0 || is_refused || result.stop_requested || result.ranks_disagree;
}

bool Restarts::may_start_again(const JobResult& result) {
  using Cause = ElasticHosts::Cause;
  const Cause cause = elastic_ ? elastic_->look_at(result, options_.stopped_exit_code) : Cause::program;
  if (cause == Cause::growth || cause == Cause::host || cause == Cause::notice) return true;
  if (cause == Cause::program && failures_ == options_.restarts) return false;
  progress_.note(result);
  if (progress_.is_hopeless()) return tell(progress_.why()), false;
  if (cause == Cause::program)
    tell(fmt::format("the job ended with exit code {}; restart {} of {}", result.exit_code, ++failures_,
                     options_.restarts));
  return true;
}

// For the ranks: elastic_restart().
std::string Restarts::restart_text() const {
  const std::chrono::duration<double> standing = std::chrono::steady_clock::now() - last_.last_sign;
  return kolo::detail::to_text({.number = starts_ - 1,
                                .lost_hosts = elastic_ ? elastic_->lost() : std::vector<std::string>{},
                                .ranks_before = last_ranks_,
                                .last_step = last_.last_step,
                                .seconds = standing.count()});
}

int Restarts::final_code(int code) const {
  const bool hides = options_.elastic && options_.elastic->hides_stopped_code;
  return hides && code == options_.stopped_exit_code ? 0 : code;
}

// The hosts did not come, or a signal has ended the waiting for them.
int Restarts::code_without_start(int code) {
  if (elastic_ && elastic_->is_ended_by_slurm()) return code;
  return requeue_unless_ended(options_, {last_step_, last_.planned_steps}, signals_, code);
}

void Restarts::tell_that_it_does_not_go_on(const JobResult& result) {
  const char* const done = options_.requeue ? "queued" : "started";
  if (result.was_cut_short)
    return tell(fmt::format("the ranks were ended before they had stopped: the job is not {} again", done));
  const char* const hint = "; a program that has more to do returns kolo::exit_code()";
  tell(fmt::format("the job was asked to stop and ended with exit code {}, not {}: it is not {} again{}",
                   result.exit_code, options_.stopped_exit_code, done, result.exit_code == 0 ? hint : ""));
}

int Restarts::run() {
  for (;;) {
    if (elastic_)
      if (const auto code = elastic_->prepare(options_, found_)) return code_without_start(*code);
    // An operator makes a pod again that has gone.
    if (!elastic_ && failures_ > 0)
      if (const auto code = wait_for_start(options_, found_, signals_, [this](const auto& s) { tell(s); }))
        return code_without_start(*code);
    const JobResult result = run_once();
    last_step_ = std::max(last_step_, result.last_step);
    if (elastic_ && result.stop_requested && elastic_->is_ended_by_slurm())
      return final_code(result.exit_code);
    last_ = result;
    last_ranks_ = options_.ranks;
    const bool stopped = options_.stopped_exit_code != 0 && result.exit_code == options_.stopped_exit_code;
    const bool was_asked = elastic_ && (result.asked_to_grow || !result.going_hosts.empty());
    const bool goes_on = was_asked && !result.stop_requested && stopped;
    if (stopped && !goes_on && options_.requeue)
      return requeue(options_, {result.last_step, result.planned_steps}, signals_);
    // A host was lost while the ranks saved. Without the request the job would have gone on elsewhere.
    if (elastic_ && options_.requeue && result.stop_requested && !result.was_cut_short &&
        !result.lost_hosts.empty())
      return requeue(options_, {last_step_, result.planned_steps}, signals_);
    if ((options_.requeue && result.stop_requested) || (was_asked && result.exit_code == 0))
      tell_that_it_does_not_go_on(result);
    if (is_over(result) || (stopped && !goes_on) || !may_start_again(result))
      return final_code(result.exit_code);
  }
}

}  // namespace

int run_with_restarts(Options options, Surroundings found, SignalQueue& signals) {
  return Restarts(std::move(options), std::move(found), signals).run();
}

}  // namespace kolo::launcher
