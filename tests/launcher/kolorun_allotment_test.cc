// What kolorun says and does in a batch job, with variables and programs of a batch system that tests write.
#include <poll.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <kolo/core/base/stop_time.h>

#include "tests/launcher/kolorun_program.h"

namespace kolo::launcher {
namespace {

using testing::HasSubstr;
using testing::Not;

class InABatchJob : public testing::Test {
 protected:
  ~InABatchJob() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name) << text;
    return folder_ + "/" + name;
  }
  // A program of the batch system, and the PATH that has it.
  std::string path_with(const std::string& name, const std::string& script) const {
    std::filesystem::permissions(file(name, "#!/bin/sh\n" + script), std::filesystem::perms::owner_all);
    return "PATH=" + folder_ + ":" + std::getenv("PATH");
  }

  static std::string new_folder() {
    std::string path = testing::TempDir() + "/kolorun_allotment_test";
    std::filesystem::create_directories(path);
    return path;
  }

  const std::string folder_ = new_folder();
  const std::vector<std::string> slurm_ = {"SLURM_JOB_ID=46", "SLURM_JOB_NODELIST=a[1-2]",
                                           "SLURM_TASKS_PER_NODE=1(x2)", "SLURM_JOB_CPUS_PER_NODE=64,32"};
  const std::vector<std::string> grid_engine_ = {"JOB_ID=46", "PE_HOSTFILE=" + file("pe", "localhost 1\n")};
};

TEST_F(InABatchJob, NamesTheSystemThatItFollowsAndTheOneThatItDoesNotAsk) {
  const Ended ended = run({"--dry-run", "p"}, {"OMPI_MCA_hostfile=" + file("mpi", "w0 slots=2\n"),
                                               "PBS_NODEFILE=" + file("pbs", "n1\n")});
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.err,
            "kolorun: hosts are from OMPI_MCA_hostfile; PBS, which is here as well, is not asked\n");
  EXPECT_THAT(ended.out, HasSubstr("--host w0:2"));
}

TEST_F(InABatchJob, FollowsHostsOfTheCommandLineBeforeAnyVariable) {
  const std::string variable = "OMPI_MCA_orte_default_hostfile=" + file("mpi", "w0 slots=2\n");
  EXPECT_THAT(run({"--dry-run", "--host", "b:3", "p"}, {variable}).out, HasSubstr("--host b:3 "));
  EXPECT_THAT(run({"--dry-run", "--hostfile", file("own", "c slots=3\n"), "p"}, {variable}).out,
              HasSubstr("--host c:3 "));
  EXPECT_THAT(run({"--dry-run", "--hostfile", file("own", "d\n"), "p"}, slurm_).out,
              HasSubstr("--host d:1 "));
}

TEST_F(InABatchJob, EndsWith2WhereAVariableCannotBeRead) {
  const Ended ended = run({"--dry-run", "p"}, {"SLURM_JOB_ID=46", "SLURM_JOB_NODELIST=a[1-"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(ended.err,
            "kolorun: SLURM_JOB_NODELIST=\"a[1-\" says no hosts; give them, as in: kolorun --host node1:2 "
            "program\n");
}

TEST_F(InABatchJob, SaysThatUnequalRanksAreNotBound) {
  const Ended ended = run({"--dry-run", "--launcher", "mpirun", "--bind", "core", "p"}, slurm_);
  EXPECT_THAT(ended.err,
              HasSubstr("kolorun: ranks have 32 to 64 cores on different hosts; ranks are not bound\n"));
  EXPECT_THAT(ended.out, HasSubstr("--bind-to none"));
}

TEST_F(InABatchJob, WarnsOfSigtermWhereNothingElseStopsTheRanksInTime) {
  const auto told = [this](std::vector<std::string> options) {
    options.insert(options.end(), {"--dry-run", "--launcher", "mpirun", "p"});
    return run(options, slurm_).err;
  };
  EXPECT_EQ(told({}),
            "kolorun: in Slurm SIGTERM ends mpirun's daemons before a step is saved; use #SBATCH "
            "--signal=USR1@60\n");
  EXPECT_EQ(told({"--requeue"}), "");
  EXPECT_EQ(told({"--stop-before", "60"}), "");
}

TEST_F(InABatchJob, EndsWith99SinceGridEngineThenStartsTheJobAgain) {
  const Ended ended = run({"--requeue", "-q", "sh", "-c", "exit 75"}, grid_engine_);
  EXPECT_EQ(ended.code, 99);
  EXPECT_EQ(ended.err, "kolorun: stopped; Grid Engine starts job 46 again\n");
}

TEST_F(InABatchJob, IsNotQueuedAgainAfterAnError) {
  const Ended ended = run({"--requeue", "-q", "sh", "-c", "exit 3"}, grid_engine_);
  EXPECT_EQ(ended.code, 3);
  EXPECT_THAT(ended.err, Not(HasSubstr("starts job")));
}

// The job's time ends in 9 s; the grace of a second is for who asks by a signal.
TEST_F(InABatchJob, LeavesTheRanksWhatIsLeftOfItsTime) {
  std::string end = kolo::detail::date_text(std::chrono::system_clock::now() + std::chrono::seconds(9));
  end[end.find(' ')] = 'T';
  std::vector<std::string> variables = slurm_;
  variables.insert(variables.end(), {path_with("squeue", "echo " + end + "\n")});
  const Ended ended =
      run({"--launcher", "mpirun", "--host", "localhost", "--stop-before", "7", "--stop-grace", "1", "-q",
           "sh", "-c", "trap 'sleep 3; echo saved; exit 0' TERM; while sleep 0.1; do :; done"},
          variables);
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out, "saved\n");
  EXPECT_THAT(ended.err, Not(HasSubstr("did not stop within")));
}

// Also where a hostfile of MPI's names the hosts: the job is still Slurm's.
TEST_F(InABatchJob, WaitsForTheEndThatSlurmBringsAndNoLongerThanASignalComes) {
  const std::string path =
      path_with("scontrol",
                "[ $1 = show ] && echo JobId=46 Requeue=1 BatchFlag=1 || echo $* > " + folder_ + "/asked\n");
  std::vector<std::string> variables = slurm_;
  variables.insert(variables.end(), {path, "OMPI_MCA_hostfile=" + file("mpi", "localhost\n")});
  RunningProgram program(
      kolorun({"--requeue", "--stop-before", "0", "-q", "sh", "-c", "exit 75"}, variables));
  for (int look = 0; look < 3000 && !std::filesystem::exists(folder_ + "/asked"); ++look)
    poll(nullptr, 0, 10);
  poll(nullptr, 0, 300);
  EXPECT_TRUE(is_alive(program.pid())) << "the batch script would end the job before Slurm does";
  program.signal(SIGTERM);
  EXPECT_EQ(program.finish(), 75);
  EXPECT_THAT(program.err(), HasSubstr("kolorun: stopped; Slurm starts job 46 again\n"));
  EXPECT_EQ(contents_of(folder_ + "/asked"), "requeue 46\n");
}

}  // namespace
}  // namespace kolo::launcher
