#include <kolo/launcher/step_watch.h>

#include <algorithm>
#include <cctype>
#include <sstream>
#include <string_view>

#include <fmt/core.h>

namespace kolo::launcher {
namespace {

constexpr std::chrono::seconds kQuiet{
    10};  // srun itself needs less than one from the last rank's end to its own
constexpr std::chrono::seconds kBetween{30};
constexpr std::chrono::seconds kBetweenLast{5};

// `127.0` among `127.batch` and `127.extern`.
bool is_of_srun(std::string_view step, std::string_view own_step) {
  const std::string_view number = step.substr(std::min(step.rfind('.') + 1, step.size()));
  return !number.empty() && number != own_step &&
         std::all_of(number.begin(), number.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

std::string value_of(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

}  // namespace

std::optional<StepWatch> StepWatch::of(const Options& options, const Environment& environment, Ask ask) {
  if (options.launcher != Launcher::srun || !options.allotment || options.allotment->groups == 1)
    return std::nullopt;
  std::string jobs;
  for (int group = 0; group < options.allotment->groups; ++group) {
    const std::string job = value_of(environment, fmt::format("SLURM_JOB_ID_HET_GROUP_{}", group));
    if (job.empty()) return std::nullopt;
    jobs += (jobs.empty() ? "" : ",") + job;
  }
  return StepWatch(jobs, value_of(environment, "SLURM_STEP_ID"), std::move(ask));
}

StepWatch::Clock::time_point StepWatch::next_look() const {
  if (!last_look_) return last_sign_ + kQuiet;
  return *last_look_ + (looks_without_ > 0 ? kBetweenLast : kBetween);
}

bool StepWatch::is_over(Clock::time_point now) {
  if (now < next_look()) return false;
  last_look_ = now;
  const auto said = ask_({"squeue", "-h", "-s", "-j", jobs_, "-o", "%i"});
  if (!said) return false;
  std::istringstream steps(*said);
  for (std::string step; steps >> step;)
    if (is_of_srun(step, own_step_)) {
      begun_ = true;
      looks_without_ = 0;
      return false;
    }
  return begun_ && ++looks_without_ > 1;
}

}  // namespace kolo::launcher
