// The batch job that this process belongs to, by the variables that the batch system sets.
#pragma once

#include <string>
#include <vector>

namespace kolo::detail {

/// Texts as the system writes them; "" where it says nothing.
struct BatchJob {
  std::string job = {};    // its number; a task of an array has one of its own, as 46_3
  std::string array = {};  // the number of the array that it is a task of
  std::string task = {};   // which one
};

/// Of Slurm, PBS, LSF, Grid Engine and Flux, in this order.
BatchJob find_batch_job();

/// The variables that it reads. Ranks on other hosts have none of them unless they are handed on.
const std::vector<std::string>& batch_job_variables();

}  // namespace kolo::detail
