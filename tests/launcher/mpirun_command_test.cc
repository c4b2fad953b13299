#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/base/error.h>
#include <kolo/launcher/mpirun_command.h>

namespace kolo::launcher {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

Surroundings machine(int cores) {
  Surroundings found;
  found.cores.count = cores;
  found.hostname = "here";
  return found;
}

Options ranks(int n) {
  Options options;
  options.ranks = n;
  options.program = {"prog", "x"};
  return options;
}

Options ranks_on(int n, std::vector<Host> hosts) {
  Options options = ranks(n);
  options.hosts = std::move(hosts);
  return options;
}

std::string line(const Options& options, const Surroundings& found) {
  return shell_quote(compose_mpirun(options, found, false));
}

TEST(MpirunCommand, GivesEachRankItsShareOfTheCores) {
  EXPECT_EQ(
      line(ranks(2), machine(8)),
      "mpirun --map-by slot:PE=4 --bind-to core --mca pml ob1 --mca btl ^tcp,ofi -x KOLO_LAUNCHER=kolorun "
      "-x OMP_NUM_THREADS=4 -n 2 prog x");
}

TEST(MpirunCommand, HandsOnTheNumberOfTheBatchJob) {
  Surroundings found = machine(2);
  found.variables = {"PBS_JOBID", "PBS_QUEUE"};
  EXPECT_THAT(line(ranks_on(4, {{"node1", 2}, {"node2", 2}}), found),
              AllOf(HasSubstr("-x PBS_JOBID "), Not(HasSubstr("PBS_QUEUE"))));
}

TEST(MpirunCommand, SharesTheNodesWithTheStepOfAnElasticJobsLastStart) {
  Options options = ranks_on(4, {{"node1", 2}, {"node2", 2}});
  options.elastic.emplace();
  const std::string overlap = "--mca plm_slurm_args --overlap ";
  EXPECT_THAT(line(options, machine(2)), Not(HasSubstr(overlap)));
  options.allotment.emplace();
  options.allotment->system = "Slurm";
  options.allotment->hosts = options.hosts;
  EXPECT_THAT(line(options, machine(2)), HasSubstr(overlap));
  Surroundings chosen = machine(2);
  chosen.variables = {"OMPI_MCA_plm_slurm_args"};
  EXPECT_THAT(line(options, chosen), Not(HasSubstr(overlap)));
}

TEST(MpirunCommand, HandsOnAHostfileThatMpirunAloneUnderstands) {
  Options options = ranks_on(2, {{"node1", 1, true}, {"node2", 1}});
  options.hostfile = "my hosts";
  EXPECT_THAT(line(options, machine(2)),
              AllOf(HasSubstr("--hostfile 'my hosts' "), Not(HasSubstr("--host "))));
}

TEST(MpirunCommand, CallsThisMachineByTheNameThatMpirunKnows) {
  EXPECT_THAT(line(ranks_on(2, {{"localhost.localdomain", 2}}), machine(2)),
              AllOf(HasSubstr("--host here:2 "), HasSubstr("--mca btl ^tcp,ofi")));
  EXPECT_THAT(line(ranks_on(2, {{"localhost", 2}}), machine(2)), HasSubstr("--host localhost:2 "));
  Options options = ranks_on(2, {{"localhost.localdomain", 1}, {"node2", 1}});
  options.hostfile = "hosts";
  EXPECT_THAT(line(options, machine(2)), HasSubstr("--host here:1,node2:1 "));
}

TEST(MpirunCommand, RoundsTheShareDown) {
  EXPECT_THAT(line(ranks(3), machine(8)), AllOf(HasSubstr("slot:PE=2 "), HasSubstr("OMP_NUM_THREADS=2 ")));
}

TEST(MpirunCommand, OversubscribesWithoutBindingWithMoreRanksThanCores) {
  EXPECT_THAT(line(ranks(3), machine(2)), AllOf(HasSubstr("--oversubscribe "), HasSubstr("--bind-to none "),
                                                HasSubstr("OMP_NUM_THREADS=1 ")));
  EXPECT_THAT(line(ranks(2), machine(2)), Not(HasSubstr("oversubscribe")));
}

TEST(MpirunCommand, RefusesToBindMoreRanksThanCores) {
  Options options = ranks(3);
  options.bind = Bind::core;
  EXPECT_THAT([&] { compose_mpirun(options, machine(2), false); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("3 ranks, 2 cores")));
}

TEST(MpirunCommand, BindsNoRankWhenAskedSo) {
  Options options = ranks(2);
  options.bind = Bind::none;
  EXPECT_THAT(line(options, machine(8)), AllOf(HasSubstr("--bind-to none "), Not(HasSubstr("--map-by")),
                                               HasSubstr("OMP_NUM_THREADS=4")));
}

TEST(MpirunCommand, StaysWithinAnAffinityMaskByNotBinding) {
  Surroundings found = machine(2);
  found.cores.restricted = true;
  EXPECT_THAT(line(ranks(1), found), HasSubstr("--bind-to none "));
}

TEST(MpirunCommand, LeavesBindingToMpiArgumentsThatBind) {
  Options options = ranks(2);
  options.mpi_args = {"--bind-to", "socket"};
  EXPECT_THAT(line(options, machine(8)),
              AllOf(HasSubstr("--bind-to socket -n 2"), Not(HasSubstr("slot:PE"))));
}

TEST(MpirunCommand, AllowsRootWhatRootMustAskFor) {
  Surroundings found = machine(2);
  EXPECT_THAT(line(ranks(1), found), Not(HasSubstr("root")));
  found.root = true;
  EXPECT_THAT(line(ranks(1), found), HasSubstr("--allow-run-as-root "));
}

TEST(MpirunCommand, LeavesThreadsThatTheEnvironmentSets) {
  Surroundings found = machine(8);
  found.variables = {"OMP_NUM_THREADS"};
  EXPECT_THAT(line(ranks(2), found), Not(HasSubstr("OMP_NUM_THREADS")));  // a rank here inherits it
}

TEST(MpirunCommand, HandsVariablesToOtherHosts) {
  Surroundings found = machine(8);
  found.variables = {"HOME", "HOROVOD_TIMELINE", "KOLO_BUCKET_BYTES", "OMP_NUM_THREADS", "OMP_PROC_BIND",
                     "PATH", "LD_LIBRARY_PATH",  "PYTHONPATH",        "SECRET"};
  Options options = ranks_on(2, {{"a", 1}, {"b", 1}});
  options.exported = {"HOME", "MODE=fast"};
  EXPECT_THAT(line(options, found),
              AllOf(HasSubstr("-x HOME -x HOROVOD_TIMELINE -x KOLO_BUCKET_BYTES -x KOLO_LAUNCHER=kolorun -x "
                              "LD_LIBRARY_PATH -x MODE=fast "
                              "-x OMP_NUM_THREADS -x OMP_PROC_BIND -x PATH -x PYTHONPATH"),
                    Not(HasSubstr("SECRET"))));
}

TEST(MpirunCommand, RefusesToExportWhatIsNotSet) {
  Options options = ranks(1);
  options.exported = {"MODE"};
  EXPECT_THAT([&] { compose_mpirun(options, machine(1), false); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("-x MODE=1")));
}

TEST(MpirunCommand, NoticesDeadLinksBetweenHosts) {
  EXPECT_THAT(line(ranks_on(2, {{"a", 1}, {"b", 1}}), machine(2)),
              AllOf(HasSubstr("--mca oob_tcp_keepalive_time 1 --mca oob_tcp_keepalive_intvl 1 --mca "
                              "oob_tcp_keepalive_probes 3"),
                    HasSubstr("-o ServerAliveInterval=2 -o ServerAliveCountMax=3'")));
  EXPECT_THAT(line(ranks(2), machine(2)), Not(HasSubstr("keepalive")));
  EXPECT_THAT(line(ranks_on(2, {{"localhost", 1}, {"here", 1}}), machine(2)), Not(HasSubstr("keepalive")));
}

TEST(MpirunCommand, LeavesTheUsersOwnLaunchAgentAlone) {
  Options options = ranks_on(2, {{"a", 1}, {"b", 1}});
  options.mpi_args = {"--mca", "plm_rsh_agent", "rsh"};
  EXPECT_THAT(line(options, machine(2)), AllOf(HasSubstr("keepalive"), Not(HasSubstr("ServerAlive"))));
}

TEST(MpirunCommand, CountsTheRanksOfTheFullestHost) {
  EXPECT_THAT(line(ranks_on(3, {{"a", 1}, {"b", 2}}), machine(8)),
              AllOf(HasSubstr("--host a:1,b:2 "), HasSubstr("slot:PE=4 ")));
}

TEST(MpirunCommand, BindsNoRankWhereHostsShareAMachineAndDividesItsCores) {
  Surroundings found = machine(8);
  found.machines = {0, 0};
  EXPECT_THAT(line(ranks_on(4, {{"a", 2}, {"b", 2}}), found),
              AllOf(HasSubstr("--bind-to none "), HasSubstr("OMP_NUM_THREADS=2 ")));
  found.machines = {0, 1};
  EXPECT_THAT(line(ranks_on(4, {{"a", 2}, {"b", 2}}), found),
              AllOf(HasSubstr("--bind-to core "), HasSubstr("OMP_NUM_THREADS=4 ")));
}

TEST(MpirunCommand, KnowsWhereAllRanksAreHere) {
  EXPECT_TRUE(all_ranks_here(ranks(2), machine(2)));
  EXPECT_TRUE(all_ranks_here(ranks_on(2, {{"localhost", 2}}), machine(2)));
  EXPECT_FALSE(all_ranks_here(ranks_on(2, {{"localhost", 1}, {"other", 1}}), machine(2)));
  Options by_mpirun = ranks(2);
  by_mpirun.mpi_args = {"--hostfile", "f"};
  EXPECT_FALSE(all_ranks_here(by_mpirun, machine(2)));
}

Options in_slurm(int n, std::vector<Host> hosts, std::vector<int> cores) {
  Options options = ranks_on(n, hosts);
  options.allotment.emplace();
  options.allotment->system = "Slurm";
  options.allotment->hosts = std::move(hosts);
  options.allotment->cores = std::move(cores);
  return options;
}

TEST(MpirunCommand, GivesRanksTheThreadsThatWereAllotted) {
  EXPECT_THAT(line(in_slurm(16, std::vector<Host>(16, {"a", 1}), std::vector<int>(16, 64)), machine(64)),
              AllOf(HasSubstr("OMP_NUM_THREADS=64 "), HasSubstr("--bind-to none")));
  EXPECT_THAT(line(in_slurm(2, {{"a", 2}, {"b", 2}}, {8, 8}), machine(64)), HasSubstr("OMP_NUM_THREADS=4 "));
}

TEST(MpirunCommand, LeavesThreadsToEachRankWhereHostsGiveUnequalCores) {
  Options options = in_slurm(2, {{"a", 1}, {"b", 1}}, {64, 32});
  EXPECT_THAT(line(options, machine(64)), Not(HasSubstr("OMP_NUM_THREADS")));
  options.bind = Bind::core;
  EXPECT_THAT(line(options, machine(64)), HasSubstr("--bind-to none"));
  options.allotment->cores = {64, 64};
  EXPECT_THAT(line(options, machine(2)), HasSubstr("--map-by slot:PE=64 --bind-to core"));
}

TEST(MpirunCommand, DividesTheCoresOfAChunkOfPbsThatItCallsThreads) {
  Surroundings found = machine(8);
  found.variables = {"OMP_NUM_THREADS"};
  Options options = in_slurm(4, {{"n1", 2}, {"n2", 2}}, {});
  EXPECT_THAT(line(options, found), Not(HasSubstr("OMP_NUM_THREADS=")));
  options.allotment->system = "PBS";
  options.allotment->cores_per_rank = 2;
  EXPECT_THAT(line(options, found), AllOf(HasSubstr("OMP_NUM_THREADS=2 "), HasSubstr("--host n1:2,n2:2")));
}

// mpirun from Open MPI 5 on is prterun. Nobody has run these commands.
TEST(MpirunOfPrte, NamesWhatIsItsOwnByAnotherOption) {
  Surroundings found = machine(2);
  found.mpi = {MpiKind::open_mpi, "5.0.3"};
  const std::string command = shell_quote(compose_mpirun(ranks_on(2, {{"a", 1}, {"b", 1}}), found, true));
  EXPECT_THAT(command, AllOf(HasSubstr("--host a:1,b:1 "), HasSubstr("--output tag "),
                             HasSubstr("--prtemca oob_tcp_keepalive_time 1 "),
                             HasSubstr("--prtemca plm_ssh_args '-o BatchMode=yes "),
                             HasSubstr("-x KOLO_LAUNCHER=kolorun "), HasSubstr("-n 2 prog x")));
  EXPECT_THAT(command, AllOf(Not(HasSubstr("--tag-output")), Not(HasSubstr("--mca"))));
}

TEST(MpirunOfPrte, OversubscribesByMapping) {
  Surroundings found = machine(2);
  found.mpi = {MpiKind::open_mpi, "5.0.3"};
  EXPECT_THAT(line(ranks(3), found), AllOf(HasSubstr("--map-by :OVERSUBSCRIBE --bind-to none "),
                                           HasSubstr("--mca pml ob1 --mca btl ^tcp,ofi ")));
}

TEST(MpirunOfPrte, TellsSlurmsDaemonsToShare) {
  Surroundings found = machine(2);
  found.mpi = {MpiKind::open_mpi, "5.0.3"};
  Options options = in_slurm(4, {{"node1", 2}, {"node2", 2}}, {});
  options.elastic.emplace();
  EXPECT_THAT(line(options, found), AllOf(HasSubstr("--prtemca odls_base_sigkill_timeout 0 "),
                                          HasSubstr("--prtemca plm_slurm_args --overlap ")));
  options.elastic.reset();
  options.allotment->groups = 2;
  EXPECT_THAT(line(options, found), HasSubstr("--prtemca ras ^slurm --prtemca plm ^slurm "));
}

TEST(ShellQuote, LeavesPlainWordsAndQuotesAllOthers) {
  EXPECT_EQ(shell_quote({"a=1", "--x", "p/q:2,r", "a b", "", "it's", "$HOME", "\"q\"", "a\nb", "*", "~"}),
            "a=1 --x p/q:2,r 'a b' '' 'it'\\''s' '$HOME' '\"q\"' 'a\nb' '*' '~'");
}

}  // namespace
}  // namespace kolo::launcher
