#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include <kolo/core/base/batch_job.h>

namespace kolo::detail {
namespace {

using testing::AllOf;
using testing::Field;

// In an environment with these variables alone.
BatchJob found(const std::map<std::string, std::string>& variables) {
  for (const std::string& name : batch_job_variables()) unsetenv(name.c_str());
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  BatchJob job = find_batch_job();
  for (const auto& [name, value] : variables) unsetenv(name.c_str());
  return job;
}

auto is(const std::string& job, const std::string& array, const std::string& task) {
  return AllOf(Field(&BatchJob::job, job), Field(&BatchJob::array, array), Field(&BatchJob::task, task));
}

TEST(BatchJob, IsTheOneOfTheSystemThatIsHere) {
  EXPECT_THAT(found({}), is("", "", ""));
  EXPECT_THAT(found({{"SLURM_JOB_ID", "46"}}), is("46", "", ""));
  EXPECT_THAT(found({{"PBS_JOBID", "12.server"}}), is("12.server", "", ""));
  EXPECT_THAT(found({{"LSB_JOBID", "7"}, {"LSB_JOBINDEX", "0"}}), is("7", "", ""));
  EXPECT_THAT(found({{"JOB_ID", "8"}, {"SGE_TASK_ID", "undefined"}}), is("8", "", ""));
  EXPECT_THAT(found({{"FLUX_JOB_ID", "f2"}}), is("f2", "", ""));
  EXPECT_THAT(found({{"KOLO_MPI_JOB", "digits"}}), is("digits", "", ""));
  EXPECT_THAT(found({{"KOLO_MPI_JOB", "digits"}, {"SLURM_JOB_ID", "46"}}), is("46", "", ""));
}

TEST(BatchJob, NamesItsSystem) {
  EXPECT_EQ(found({}).system, "");
  EXPECT_EQ(found({{"SLURM_JOB_ID", "46"}}).system, "Slurm");
  EXPECT_EQ(found({{"JOB_ID", "8"}}).system, "Grid Engine");
  EXPECT_EQ(batch_job_of("LSF", [](const char*) { return "5"; }).job, "5[5]");
}

// As bkill, qdel and scontrol take it.
TEST(BatchJob, OfAnArrayHasATask) {
  EXPECT_THAT(found({{"SLURM_JOB_ID", "48"}, {"SLURM_ARRAY_JOB_ID", "46"}, {"SLURM_ARRAY_TASK_ID", "0"}}),
              is("46_0", "46", "0"));
  EXPECT_THAT(found({{"PBS_JOBID", "12[3].server"}, {"PBS_ARRAY_INDEX", "3"}}),
              is("12[3].server", "12", "3"));
  EXPECT_THAT(found({{"LSB_JOBID", "7"}, {"LSB_JOBINDEX", "2"}}), is("7[2]", "7", "2"));
  EXPECT_THAT(found({{"JOB_ID", "8"}, {"SGE_TASK_ID", "1"}}), is("8.1", "8", "1"));
}

}  // namespace
}  // namespace kolo::detail
