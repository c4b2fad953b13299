// kolorun over several hosts, whose ssh is a script that starts mpirun's daemons on this machine under other
// host names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/launcher/running_program.h"

namespace kolo::launcher {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class KolorunHosts : public testing::Test {
 protected:
  void SetUp() override {
    RunningProgram namespaces({"unshare", "-u", "hostname", "node1"});
    if (namespaces.finish() != 0) GTEST_SKIP() << "host names need the right to make a UTS namespace";
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ + "/ssh")
        << "#!/bin/sh\n"
           "while :; do case $1 in -o) shift 2;; -*) shift;; *) break;; esac; done\n"
           "host=$1; shift\n"
           "exec unshare -u sh -c \"hostname $host; exec $*\"\n";
    std::filesystem::permissions(folder_ + "/ssh", std::filesystem::perms::owner_all);
    path_ = "PATH=" + folder_ + ":" + std::getenv("PATH");
  }
  const std::string folder_ = testing::TempDir() + "kolorun_hosts_test";
  std::string path_;
};

TEST_F(KolorunHosts, GetTheirNamesTheVariablesAndAPrefix) {
  RunningProgram program(kolorun({"--host", "node1:1,node2:1", "-x", "MODE", "--", "sh", "-c",
                                  "echo $(hostname) $KOLO_LAUNCHER $KOLO_X $MODE; echo '{\"a\":1}'"},
                                 {path_, "KOLO_X=x y", "MODE=fast"}));
  EXPECT_EQ(program.finish(), 0) << program.err();
  EXPECT_THAT(program.out(),
              AllOf(HasSubstr("[0] node1 kolorun x y fast\n"), HasSubstr("[1] node2 kolorun x y fast\n"),
                    testing::ContainsRegex("(^|\n)\\{\"a\":1\\}\n")));
}

// A batch system may end a job while mpirun waits for the daemons of other hosts. Nothing was done, so exit
// code 0 would be wrong.
TEST_F(KolorunHosts, ThatHaveNotAnsweredEndAStoppedJobWithTheCodeOfAStop) {
  std::filesystem::remove(folder_ + "/asked");
  std::ofstream(folder_ + "/ssh") << "#!/bin/sh\n: > " << folder_ << "/asked\nexec sleep 60\n";
  RunningProgram program(kolorun({"--host", "node1:1", "--", "true"}, {path_, "KOLO_STOPPED_EXIT_CODE=75"}));
  for (int look = 0; look < 3000 && !std::filesystem::exists(folder_ + "/asked"); ++look)
    poll(nullptr, 0, 10);
  program.signal(SIGTERM);
  EXPECT_EQ(program.finish(), 75);
  EXPECT_THAT(program.err(), HasSubstr("kolorun: the request to stop came before the ranks had started\n"));
  EXPECT_THAT(program.err(), testing::Not(HasSubstr("ORTE does not know")));
}

TEST_F(KolorunHosts, TakeAProgramThatLiesBesideKolorun) {
  RunningProgram program(
      kolorun({"--host", "node1:1,node2:1", "--prefix", "never", "--", "kolorun", "--version"}, {path_}));
  EXPECT_EQ(program.finish(), 0) << program.err();
  EXPECT_THAT(program.out(), testing::StartsWith("kolorun "));
}

TEST_F(KolorunHosts, ThatAreOneMachineShareItsCoresUnbound) {
  RunningProgram program(kolorun({"--host", "node1:1,node2:1", "--prefix", "never", "--", "sh", "-c",
                                  "echo threads $OMP_NUM_THREADS; grep Cpus_allowed_list /proc/self/status"},
                                 {"-u", "OMP_NUM_THREADS", path_}));
  EXPECT_EQ(program.finish(), 0) << program.err();
  RunningProgram here({"grep", "Cpus_allowed_list", "/proc/self/status"});
  here.finish();
  size_t count = 0;
  for (size_t at = program.out().find(here.out()); at != std::string::npos;
       at = program.out().find(here.out(), at + 1))
    ++count;
  EXPECT_EQ(count, 2u) << program.out();
}

TEST_F(KolorunHosts, AreToldApartWhenARankDies) {
  RunningProgram program(kolorun({"-q", "--host", "node1:1,node2:1", "--", STOPPING_RANK, "41"}, {path_}));
  ASSERT_TRUE(program.wait_for("ready", 2)) << program.err();
  kill(program.numbers_after("[1] ready ").at(0), SIGKILL);
  EXPECT_EQ(program.finish(), 137);
  EXPECT_THAT(program.err(), HasSubstr("rank 1 on node2 is gone (last step 41)\n"));
}

TEST_F(KolorunHosts, AreNamedWhereTheProgramIsMissing) {
  for (const bool quiet : {false, true}) {
    RunningProgram program(kolorun(
        {quiet ? "-q" : "--prefix=auto", "--host", "node2:1", "--", "/opt/no-such program"}, {path_}));
    EXPECT_EQ(program.finish(), 1);
    EXPECT_EQ(program.err(),
              "kolorun: /opt/no-such program cannot be started on node2: it is not there, or may not be "
              "executed\n");
  }
}

TEST_F(KolorunHosts, AreNamedWhereTheFolderOfWdirIsMissing) {
  for (const bool quiet : {false, true}) {
    RunningProgram program(kolorun(
        {quiet ? "-q" : "--prefix=auto", "--host", "node1:1,node2:1", "--wdir", "/no-such", "--", "true"},
        {path_}));
    EXPECT_EQ(program.finish(), 1);
    EXPECT_EQ(program.out(), "");
    EXPECT_THAT(program.err(), testing::MatchesRegex("kolorun: --wdir /no-such: node[12] has no such folder, "
                                                     "or it may not be entered\n"));
  }
}

TEST_F(KolorunHosts, ThatSshRefusesAreToldInOneLine) {
  std::ofstream(folder_ + "/ssh")
      << "#!/bin/sh\nprintf 'Host key verification failed.\\r\\n' >&2\nexit 255\n";
  for (const bool quiet : {false, true}) {
    RunningProgram program(
        kolorun({quiet ? "-q" : "--prefix=auto", "--host", "node2:1", "--", "true"}, {path_}));
    EXPECT_EQ(program.finish(), 1);
    EXPECT_EQ(program.err(), "kolorun: a host cannot be reached: Host key verification failed (node2)\n");
  }
}

TEST_F(KolorunHosts, AreAskedToStopToo) {
  RunningProgram program(kolorun({"-q", "--host", "node1:1,node2:1", "--", STOPPING_RANK, "7"}, {path_}));
  ASSERT_TRUE(program.wait_for("ready", 2)) << program.err();
  program.signal(SIGTERM);
  EXPECT_EQ(program.finish(), 0) << program.err();
  EXPECT_THAT(program.out(), AllOf(HasSubstr("[0] saved\n"), HasSubstr("[1] saved\n")));
}

}  // namespace
}  // namespace kolo::launcher
