#include <kolo/core/base/batch_job.h>

#include <fmt/core.h>

#include <kolo/core/base/env.h>

namespace kolo::detail {
namespace {

struct Names {
  const char* job;
  const char* array;  // nullptr: the job's number is that of the array
  const char* task;
  bool job_names_task;
};

constexpr Names kSystems[] = {{"SLURM_JOB_ID", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID", false},
                              {"PBS_JOBID", nullptr, "PBS_ARRAY_INDEX", true},  // 12[3].server
                              {"LSB_JOBID", nullptr, "LSB_JOBINDEX", false},
                              {"JOB_ID", nullptr, "SGE_TASK_ID", false},
                              {"FLUX_JOB_ID", nullptr, nullptr, false}};

std::string value_of(const char* name) { return name == nullptr ? "" : env_string(name).value_or(""); }

// LSF's and Grid Engine's words for a job that is no array.
bool is_task(const std::string& text) { return !text.empty() && text != "0" && text != "undefined"; }

}  // namespace

BatchJob find_batch_job() {
  for (const Names& names : kSystems) {
    const std::string number = value_of(names.job), task = value_of(names.task);
    if (number.empty()) continue;
    // Slurm's first task is 0.
    const bool is_array = names.array != nullptr ? !value_of(names.array).empty() : is_task(task);
    if (!is_array) return {.job = number};
    const std::string array =
        names.array != nullptr ? value_of(names.array) : number.substr(0, number.find('['));
    return {.job = names.job_names_task ? number : fmt::format("{}_{}", array, task),
            .array = array,
            .task = task};
  }
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
