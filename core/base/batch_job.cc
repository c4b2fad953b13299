#include <kolo/core/base/batch_job.h>

#include <fmt/core.h>

#include <kolo/core/base/env.h>

namespace kolo::detail {
namespace {

struct Names {
  const char* system;
  const char* job;
  const char* array;  // nullptr: the job's number is that of the array
  const char* task;
  const char* job_of_task;  // how its commands take a task; nullptr: the job's number names it
};

constexpr Names kSystems[] = {{"Slurm", "SLURM_JOB_ID", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID", "{}_{}"},
                              {"PBS", "PBS_JOBID", nullptr, "PBS_ARRAY_INDEX", nullptr},  // 12[3].server
                              {"LSF", "LSB_JOBID", nullptr, "LSB_JOBINDEX", "{}[{}]"},
                              {"Grid Engine", "JOB_ID", nullptr, "SGE_TASK_ID", "{}.{}"},
                              {"Flux", "FLUX_JOB_ID", nullptr, nullptr, nullptr},
                              {kMpiOperator, kMpiJobVariable, nullptr, nullptr, nullptr}};

// LSF's and Grid Engine's words for a job that is no array.
bool is_task(const std::string& text) { return !text.empty() && text != "0" && text != "undefined"; }

BatchJob job_of(const Names& names, const VariableText& text_of) {
  const auto value_of = [&](const char* name) { return name == nullptr ? "" : text_of(name); };
  const std::string number = value_of(names.job), task = value_of(names.task);
  if (number.empty()) return {};
  // Slurm's first task is 0.
  const bool is_array = names.array != nullptr ? !value_of(names.array).empty() : is_task(task);
  if (!is_array) return {.system = names.system, .job = number};
  const std::string array =
      names.array != nullptr ? value_of(names.array) : number.substr(0, number.find('['));
  return {.system = names.system,
          .job = names.job_of_task == nullptr ? number
                                              : fmt::format(fmt::runtime(names.job_of_task), array, task),
          .array = array,
          .task = task};
}

}  // namespace

std::string own_variable(const char* name) { return env_string(name).value_or(""); }

BatchJob find_batch_job() {
  for (const Names& names : kSystems)
    if (BatchJob job = job_of(names, own_variable); !job.job.empty()) return job;
  return {};
}

BatchJob batch_job_of(const std::string& system, const VariableText& text_of) {
  for (const Names& names : kSystems)
    if (system == names.system) return job_of(names, text_of);
  return {};
}

const std::vector<std::string>& batch_job_variables() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> names;
    for (const Names& system : kSystems)
      for (const char* name : {system.job, system.array, system.task})
        if (name != nullptr) names.emplace_back(name);
    return names;
  }();
  return all;
}

}  // namespace kolo::detail
