#include <kolo/launcher/srun_command.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/base/error.h>

namespace kolo::launcher {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using testing::ThrowsMessage;

Options job(std::vector<Host> hosts, std::vector<int> cores = {}) {
  Options options;
  options.hosts = hosts;
  options.ranks = total_slots(hosts);
  options.program = {"prog", "x"};
  options.allotment.emplace();
  options.allotment->system = "Slurm";
  options.allotment->job = "46";
  options.allotment->hosts = std::move(hosts);
  options.allotment->cores = std::move(cores);
  return options;
}

std::string line(const Options& options, const std::vector<std::string>& variables = {}) {
  Surroundings found;
  found.mpi = {MpiKind::open_mpi, "4.1.4"};
  found.hostname = "a";
  found.variables = variables;
  return shell_quote(compose_srun(options, found, true));
}

Ask saying(const std::string& answer) {
  return [answer](const auto&) { return std::optional(answer); };
}

const Mpi kOpenMpi = {MpiKind::open_mpi, "4.1.4"}, kMpich = {MpiKind::mpich, "4.0.2"};

TEST(Srun, FillsTheHostsInOrder) {
  EXPECT_EQ(line(job({{"a", 2}, {"b", 1}}, {4, 2})),
            "env KOLO_LAUNCHER=kolorun OMP_NUM_THREADS=2 srun --mpi=pmix --export=ALL --kill-on-bad-exit=1 "
            "--input=none --label -n 3 -w a,a,b --distribution=arbitrary -c 2 prog x");
}

TEST(Srun, CountsWhatSlurmCountsOfACore) {
  Options options = job({{"a", 1}}, {4});
  options.allotment->cpus_per_core = 2;
  EXPECT_THAT(line(options), AllOf(HasSubstr("OMP_NUM_THREADS=4 "), HasSubstr("-c 8 ")));
}

TEST(Srun, StartsAllComponentsOfAHeterogeneousJob) {
  Options options = job({{"a", 2}, {"b", 1}});
  options.allotment->groups = 2;
  EXPECT_THAT(line(options), AllOf(HasSubstr("--het-group=0-1 "), Not(HasSubstr("-n "))));
}

TEST(Srun, SharesTheStepThatKolorunRunsIn) {
  EXPECT_THAT(line(job({{"a", 1}}), {"SLURM_STEP_ID"}), HasSubstr("--overlap "));
  EXPECT_THAT(line(job({{"a", 1}})), Not(HasSubstr("--overlap")));
  Options again = job({{"a", 1}});
  again.restarts = 1;
  EXPECT_THAT(line(again), HasSubstr("--overlap "));
}

TEST(Srun, SharesTheNodesWithTheStepOfAnElasticJobsLastStart) {
  Options options = job({{"a", 2}, {"b", 2}, {"c", 2}});
  options.elastic.emplace();
  options.hosts = {{"a", 2}, {"c", 2}};
  options.ranks = 4;
  EXPECT_THAT(line(options), HasSubstr("--overlap -n 4 -w a,a,c,c --distribution=arbitrary "));
}

TEST(Srun, LetsRanksLeaveThatStoppedWithACodeOfTheirOwn) {
  Options options = job({{"a", 2}});
  options.stopped_exit_code = 75;
  EXPECT_THAT(line(options), HasSubstr("--kill-on-bad-exit=0 "));
}

TEST(ChooseLauncher, TakesSrunWhereItCanStartTheJob) {
  const Ask with_pmix = saying("MPI plugin types are...\n\tpmix\n\tnone\n");
  EXPECT_EQ(choose_launcher(job({{"a", 1}}), with_pmix, kOpenMpi), Launcher::srun);
  EXPECT_EQ(choose_launcher(job({{"a", 1}}), saying("\tpmi2\n"), kOpenMpi), Launcher::mpirun);
  Options elsewhere = job({{"a", 1}});
  elsewhere.hosts = {{"other", 1}};
  EXPECT_EQ(choose_launcher(elsewhere, with_pmix, kOpenMpi), Launcher::mpirun);
  Options words_for_mpirun = job({{"a", 1}});
  words_for_mpirun.mpi_args = {"-v"};
  EXPECT_EQ(choose_launcher(words_for_mpirun, with_pmix, kOpenMpi), Launcher::mpirun);
  words_for_mpirun.launcher = Launcher::srun;
  EXPECT_THAT(
      [&] { choose_launcher(words_for_mpirun, with_pmix, kOpenMpi); },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("--mpi-args are mpirun's; use --launcher mpirun")));
  Options not_slurm;
  not_slurm.launcher = Launcher::srun;
  EXPECT_THROW(choose_launcher(not_slurm, with_pmix, kOpenMpi), InvalidArgumentError);
}

TEST(ChooseLauncher, TakesHydraAndPmi2ForMpich) {
  Options options = job({{"a", 1}});
  EXPECT_EQ(choose_launcher(options, saying("\tpmi2\n"), kMpich), Launcher::srun);
  EXPECT_EQ(choose_launcher(options, saying("\tpmix\n"), kMpich), Launcher::hydra);
  options.launcher = Launcher::hydra;
  EXPECT_EQ(choose_launcher(options, saying("\tpmi2\n"), kMpich), Launcher::hydra);
  EXPECT_THAT(
      [&] { choose_launcher(options, saying(""), kOpenMpi); },
      ThrowsMessage<InvalidArgumentError>(HasSubstr(
          "--launcher hydra starts no ranks of Open MPI 4.1.4, which kolo was built with; use mpirun")));
  Surroundings found;
  found.mpi = kMpich;
  EXPECT_THAT(shell_quote(compose_srun(options, found, false)), HasSubstr("srun --mpi=pmi2 "));
}

TEST(ChooseLauncher, LeavesHeterogeneousJobsWhoseHostsComeAndGoToMpirun) {
  const Ask with_pmix = saying("\tpmix\n");
  Options options = job({{"a", 2}, {"b", 1}});
  options.allotment->groups = 2;
  EXPECT_EQ(choose_launcher(options, with_pmix, kOpenMpi), Launcher::srun);
  options.elastic.emplace();
  EXPECT_EQ(choose_launcher(options, with_pmix, kOpenMpi), Launcher::mpirun);
}

TEST(StartsBySlurm, WhereItsDaemonsStartTheRanksOrThoseOfMpirun) {
  Options options = job({{"a", 2}, {"b", 1}});
  options.launcher = Launcher::mpirun;
  EXPECT_TRUE(starts_by_slurm(options));
  options.mpi_args = {"--mca", "plm", "rsh"};
  EXPECT_FALSE(starts_by_slurm(options));
  options.mpi_args.clear();
  options.allotment->groups = 2;
  EXPECT_FALSE(starts_by_slurm(options)) << "mpirun then uses ssh";
  options.launcher = Launcher::srun;
  EXPECT_TRUE(starts_by_slurm(options));
  Options without;
  without.launcher = Launcher::mpirun;
  EXPECT_FALSE(starts_by_slurm(without));
}

TEST(Label, IsTheRankBeforeTheText) {
  EXPECT_THAT(find_label("3: hello"), Pair(3, 3u));
  EXPECT_THAT(find_label(" 12: a: b"), Pair(12, 5u));
  for (const char* own : {"srun: error: x", "", ": ", "-1: x", "x3: y", "3 : y", "99999999: x"})
    EXPECT_THAT(find_label(own), Pair(-1, 0u)) << own;
}

}  // namespace
}  // namespace kolo::launcher
