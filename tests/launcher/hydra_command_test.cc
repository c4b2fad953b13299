#include <kolo/launcher/hydra_command.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/base/error.h>

namespace kolo::launcher {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Surroundings machine(int cores) {
  Surroundings found;
  found.mpi = {MpiKind::mpich, "4.0.2"};
  found.cores.count = cores;
  found.hostname = "here";
  return found;
}

Options ranks_on(int n, std::vector<Host> hosts = {}) {
  Options options;
  options.ranks = n;
  options.hosts = std::move(hosts);
  options.program = {"prog", "x"};
  return options;
}

std::string line(const Options& options, const Surroundings& found, bool tagged = false) {
  return shell_quote(compose_hydra(options, found, tagged));
}

TEST(HydraCommand, GivesEachRankItsShareOfTheCores) {
  EXPECT_EQ(line(ranks_on(2), machine(8)),
            "mpiexec.hydra -n 2 -bind-to core:4 -print-all-exitcodes -genv KOLO_LAUNCHER kolorun -genv "
            "OMP_NUM_THREADS 4 prog x");
}

TEST(HydraCommand, NamesHostsAndMarksLines) {
  EXPECT_THAT(line(ranks_on(3, {{"a", 2}, {"b", 1}}), machine(2), true),
              AllOf(HasSubstr("-n 3 -hosts a:2,b:1 "), HasSubstr(" -prepend-pattern ")));
}

TEST(HydraCommand, BindsRanksOfOtherHostsWhereItIsAskedTo) {
  Options options = ranks_on(2, {{"a", 1}, {"b", 1}});
  EXPECT_THAT(line(options, machine(8)), HasSubstr("-bind-to none "));
  options.bind = Bind::core;
  EXPECT_THAT(line(options, machine(8)), HasSubstr("-bind-to core:8 "));
}

TEST(HydraCommand, BindsNoRankWithMoreRanksThanCores) {
  EXPECT_THAT(line(ranks_on(3), machine(2)),
              AllOf(HasSubstr("-bind-to none "), HasSubstr("OMP_NUM_THREADS 1 ")));
  Options options = ranks_on(3);
  options.bind = Bind::core;
  EXPECT_THROW(line(options, machine(2)), InvalidArgumentError);
}

TEST(HydraCommand, LeavesBindingToItsArguments) {
  Options options = ranks_on(2);
  options.mpi_args = {"-bind-to", "socket"};
  EXPECT_THAT(line(options, machine(8)), AllOf(HasSubstr("-bind-to socket prog"), Not(HasSubstr("core:"))));
}

// It hands on all variables that are set.
TEST(HydraCommand, SetsVariablesThatHaveAValue) {
  Surroundings found = machine(2);
  found.variables = {"MODE"};
  Options options = ranks_on(2);
  options.exported = {"MODE", "LEVEL=a b"};
  EXPECT_THAT(line(options, found), AllOf(HasSubstr("-genv LEVEL 'a b' "), Not(HasSubstr("MODE"))));
}

TEST(HydraCommand, RefusesAHostfileOfOpenMpi) {
  Options options = ranks_on(2, {{"user@node1", 1, true}});
  options.hostfile = "hosts";
  EXPECT_THROW(line(options, machine(2)), InvalidArgumentError);
}

TEST(HydraCommand, HasNoOptionOfOpenMpi) {
  Surroundings found = machine(2);
  found.root = true;
  Options options = ranks_on(4, {{"a", 2}, {"b", 2}});
  options.elastic.emplace();
  EXPECT_THAT(line(options, found, true),
              AllOf(Not(HasSubstr("--")), Not(HasSubstr("mca")), Not(HasSubstr(" -x "))));
}

}  // namespace
}  // namespace kolo::launcher
