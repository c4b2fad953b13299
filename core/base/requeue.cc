#include <kolo/core/base/requeue.h>

#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <sstream>

#include <kolo/core/base/env.h>
#include <kolo/core/base/launcher.h>
#include <kolo/core/base/stop_time.h>

namespace kolo::detail {
namespace {

constexpr std::chrono::seconds kLongestRequest{30};

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

ProgramEnd run_here(const std::vector<std::string>& command) {
  const bool is_question = command.size() > 1 && command[1] == "show";
  return is_question ? ask_program(command) : run_program(command, kLongestRequest);
}

// Of `scontrol show job`; "" if it does not tell that.
std::string field(const std::string& told, const std::string& name) {
  std::istringstream words(told);
  for (std::string word; words >> word;)
    if (word.starts_with(name + "=")) return word.substr(name.size() + 1);
  return "";
}

// Of [days-]hours:minutes:seconds; nothing for UNLIMITED.
std::optional<std::int64_t> seconds_of(const std::string& time) {
  int days = 0, hours = 0, minutes = 0, seconds = 0;
  const bool has_days = time.find('-') != std::string::npos;
  const int found = has_days ? std::sscanf(time.c_str(), "%d-%d:%d:%d", &days, &hours, &minutes, &seconds) - 1
                             : std::sscanf(time.c_str(), "%d:%d:%d", &hours, &minutes, &seconds);
  if (found != 3) return std::nullopt;
  return ((std::int64_t{days} * 24 + hours) * 60 + minutes) * 60 + seconds;
}

// A job that scancel ends and one whose time is over are both COMPLETING with an end; Slurm tells more only
// when all of the job is gone. One that is queued again by hand has no end then.
bool is_cancelled(const std::string& told) {
  const std::string state = field(told, "JobState");
  if (state == "CANCELLED") return true;
  if (state != "COMPLETING" || !parse_slurm_time(field(told, "EndTime"))) return false;
  const auto ran = seconds_of(field(told, "RunTime")), limit = seconds_of(field(told, "TimeLimit"));
  return !limit || !ran || *ran < *limit;
}

std::atomic<int> code_at_end{0};
static_assert(std::atomic<int>::is_always_lock_free);

void end_with_code(int) { _exit(code_at_end.load()); }

}  // namespace

RequeueRequest plan_requeue(const BatchJob& job, const RunProgram& run) {
  if (job.job.empty()) return {.why_not = "this is no batch job"};
  if (job.system == kMpiOperator)
    return {.by_itself = "the MPI operator starts it again where its restartPolicy is OnFailure"};
  if (job.system == "LSF") return {.command = {"brequeue", job.job}};
  if (job.system == "PBS") return {.command = {"qrerun", job.job}};
  if (job.system == "Grid Engine")
    return {.by_itself =
                "Grid Engine starts it again where its script ends with exit code 99 "
                "(KOLO_STOPPED_EXIT_CODE)"};
  if (job.system != "Slurm") return {.why_not = fmt::format("{} has no command for it", job.system)};
  const std::string told = run({"scontrol", "show", "job", job.job}).out;
  for (const char* obstacle : {"Requeue=0", "BatchFlag=0"})
    if (told.find(obstacle) != std::string::npos)
      return {.why_not = fmt::format("scontrol show job says {}", obstacle)};
  // Slurm would start it again, and its user could not get rid of it.
  if (is_cancelled(told)) return {.why_not = "it was cancelled"};
  return {.command = {"scontrol", "requeue", job.job}};
}

std::string stopped_text(const std::string& who, const StoppedAt& where) {
  if (!where.step) return who + ": stopped";
  const std::string of = where.of ? fmt::format(" of {}", *where.of) : "";
  return fmt::format("{}: stopped at step {}{}", who, *where.step, of);
}

bool ask_for_requeue(const BatchJob& job, const std::string& who, const StoppedAt& where, const SayLine& say,
                     const RunProgram& run) {
  const RequeueRequest request = plan_requeue(job, run);
  const std::string stopped = stopped_text(who, where);
  const std::string system = job.job.empty() ? "the system" : job.system;
  const auto refusal = [&](const std::string& why) {
    return fmt::format("{} did not start the job again: {}", system, why);
  };
  if (!request.by_itself.empty()) return say(fmt::format("{}; {}", stopped, request.by_itself)), false;
  if (!request.why_not.empty()) return say(fmt::format("{}; {}", stopped, refusal(request.why_not))), false;
  say(fmt::format("{}; {} starts job {} again", stopped, system, job.job));
  const ProgramEnd end = run(request.command);
  if (end.good) return true;
  // Slurm may end scontrol with the job that it starts again.
  const bool is_unknown = end.is_code_lost || end.is_ended_by_signal;
  if (is_unknown)
    say(fmt::format("{}: whether {} does so is not known: {}", who, system, last_line(end.err)));
  const std::string words = last_line(end.err.empty() ? end.out : end.err);
  // Somebody has asked before, as an operator's `scontrol requeue` does.
  const bool is_queued_already = words.find("Job is pending execution") != std::string::npos;
  if (is_unknown || is_queued_already) return true;
  say(fmt::format("{}: {}", who, refusal(words.empty() ? request.command[0] + " failed" : words)));
  return false;
}

bool ask_for_requeue(const BatchJob& job, const std::string& who, const StoppedAt& where,
                     const SayLine& say) {
  return ask_for_requeue(job, who, where, say, run_here);
}

bool wants_requeue() { return env_int64("KOLO_REQUEUE", 0, 0, 1) == 1 && !is_under_kolorun(); }

void wait_to_be_ended(int code) {
  code_at_end.store(code);
  struct sigaction action = {};
  action.sa_handler = end_with_code;
  sigemptyset(&action.sa_mask);
  for (const int number : {SIGTERM, SIGINT}) sigaction(number, &action, nullptr);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kWaitForEnd_s);
  while (std::chrono::steady_clock::now() < deadline) poll(nullptr, 0, 1000);
}

}  // namespace kolo::detail
