// The batch job that this process belongs to, by the variables that the batch system sets.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace kolo::detail {

/// Texts as the system writes them; "" where it says nothing.
struct BatchJob {
  std::string system = {};  // "Slurm", "PBS", "LSF", "Grid Engine", "Flux" or kMpiOperator
  std::string job = {};     // as the system's commands take it; a task of an array has one of its own: 46_3
  std::string array = {};   // the number of the array that it is a task of
  std::string task = {};    // which one
};

/// The text of a variable; "" where it is unset.
using VariableText = std::function<std::string(const char* name)>;

/// Of this process.
std::string own_variable(const char* name);

/// An MPI operator of Kubernetes sets no variable for the job's name: kolorun sets this one for the ranks.
inline constexpr char kMpiOperator[] = "MPI", kMpiJobVariable[] = "KOLO_MPI_JOB";

/// Of Slurm, PBS, LSF, Grid Engine, Flux and an MPI operator, in this order.
BatchJob find_batch_job();
/// The job of that system alone.
BatchJob batch_job_of(const std::string& system, const VariableText& text_of);

/// The variables that it reads. Ranks on other hosts have none of them unless they are handed on.
const std::vector<std::string>& batch_job_variables();

}  // namespace kolo::detail
