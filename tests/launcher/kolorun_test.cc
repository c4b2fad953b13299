// kolorun as users run it: its command line, and what the ranks get and print.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <kolo/launcher/mpi.h>

#include "tests/launcher/kolorun_program.h"
#include "tests/support/paths.h"

namespace kolo::launcher {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;
using testing::UnorderedElementsAre;

// Sockets of `pid` that listen elsewhere than on loopback, as /proc has them: address and port in hex.
std::vector<std::string> open_to_others(int pid) {
  std::map<std::string, std::string> listening;  // by inode
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream lines(table);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::vector<std::string> word(std::istream_iterator<std::string>(words), {});
      if (word.size() > 9 && word[3] == "0A") listening[word[9]] = word[1];
    }
  }
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd", ignored)) {
    const std::string target = std::filesystem::read_symlink(entry.path(), ignored);
    if (!target.starts_with("socket:[")) continue;
    const auto socket = listening.find(target.substr(8, target.size() - 9));
    if (socket == listening.end()) continue;
    const bool is_loopback = socket->second.starts_with("0100007F:") ||
                             socket->second.starts_with("00000000000000000000000001000000:");
    if (!is_loopback) found.push_back(socket->second);
  }
  return found;
}

TEST(Kolorun, PrintsItsVersion) {
  const Ended ended = run({"--version"});
  EXPECT_EQ(ended.out, "kolorun 0.1.0\n");
  EXPECT_EQ(ended.code, 0);
}

TEST(Kolorun, TellsWhatItWasBuiltWith) {
  const Ended ended = run({"--check-build"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.out, AllOf(HasSubstr("compiler: "), HasSubstr("MPI library: MPI 3"),
                               HasSubstr("oneDNN: "), HasSubstr("mpirun: /"), HasSubstr("\nsrun: "),
                               HasSubstr("\nCUDA: "), HasSubstr("\nplug-in: ")));
  EXPECT_THAT(run({"--check-build"}, {"PATH=/nonexistent"}).out, HasSubstr("mpirun: not in PATH\n"));
}

TEST(DryRun, PrintsOneLineThatAShellReadsBackAndLooksForNoProgram) {
  const std::vector<std::string> program = {"no-such-program", "a b", "it's", "\"q\"", "", "$HOME", "*"};
  std::vector<std::string> arguments = {"-n", "2", "--dry-run", "--host", "nowhere1:1,nowhere2:1", "--"};
  arguments.insert(arguments.end(), program.begin(), program.end());
  const Ended ended = run(arguments);
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.err, "");
  EXPECT_THAT(ended.out, AllOf(StartsWith("mpirun "), HasSubstr(" -n 2 no-such-program ")));
  RunningProgram shell({"sh", "-c", "eval \"set -- $1\"; printf '<%s>\\n' \"$@\"", "sh", ended.out});
  EXPECT_EQ(shell.finish(), 0);
  EXPECT_THAT(shell.out(),
              testing::EndsWith("<no-such-program>\n<a b>\n<it's>\n<\"q\">\n<>\n<$HOME>\n<*>\n"));
}

TEST(Kolorun, TellsABadCommandLineInOneLine) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{},
                                             {"-n", "0", "--", "true"},
                                             {"-n", "x", "--", "true"},
                                             {"--host", "a:x", "--", "true"},
                                             {"-n", "2"},
                                             {"--nonsense"},
                                             {"--hostfile", "/no/such/file", "--", "true"},
                                             {"-n", "3", "--host", "localhost:2", "--", "true"},
                                             {"-n", "1", "-x", "KOLO_TEST_NOT_SET", "--", "true"}}) {
    const Ended ended = run(arguments);
    EXPECT_EQ(ended.code, 2) << ended.err;
    EXPECT_THAT(lines_of(ended.err), ElementsAre(StartsWith("kolorun: ")));
    EXPECT_EQ(ended.out, "");
  }
}

TEST(Kolorun, TellsWhichProgramIsMissing) {
  for (const char* name : {"kolo-no-such-program", "./no-such-program", "/"}) {
    const Ended ended = run({"-n", "1", "--", name});
    EXPECT_EQ(ended.code, 1);
    EXPECT_THAT(lines_of(ended.err), ElementsAre(AllOf(StartsWith("kolorun: "), HasSubstr(name))));
  }
}

TEST(Kolorun, TellsThatThereIsNoMpirun) {
  RunningProgram program(
      {"/usr/bin/env", "PATH=/nonexistent", program_path("kolorun"), "-n", "1", "--", "/bin/true"});
  EXPECT_EQ(program.finish(), 1);
  EXPECT_THAT(lines_of(program.err()), ElementsAre(HasSubstr("mpirun is not in PATH")));
}

// A launcher that says it is this one.
class FakeMpirun {
 public:
  explicit FakeMpirun(const std::string& version, const std::string& job = "") {
    std::filesystem::create_directory(folder_);
    std::ofstream(folder_ + "/mpirun")
        << "#!/bin/sh\n[ \"$1\" = --version ] || { " << (job.empty() ? ":" : job) << "; exit; }\necho '"
        << version << "'\n";
    std::filesystem::permissions(folder_ + "/mpirun", std::filesystem::perms::owner_all);
  }
  ~FakeMpirun() { std::filesystem::remove_all(folder_); }
  FakeMpirun(const FakeMpirun&) = delete;
  FakeMpirun& operator=(const FakeMpirun&) = delete;
  std::string variable() const { return "PATH=" + folder_ + ":" + std::getenv("PATH"); }

 private:
  const std::string folder_ = testing::TempDir() + "fake_mpirun." + std::to_string(getpid());
};

TEST(Kolorun, RefusesTheMpirunOfAnotherMpi) {
  if (own_mpi().has_hydra()) GTEST_SKIP() << "kolo was built with " << own_mpi().text();
  const FakeMpirun mpich("HYDRA build details:\n    Version:      4.0.2");
  const Ended ended = run({"-n", "2", "--", "true"}, {mpich.variable()});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(lines_of(ended.err),
              ElementsAre(AllOf(StartsWith("kolorun: "), HasSubstr("/mpirun is of MPICH 4.0.2, but kolo was "
                                                                   "built with Open MPI 4."))));
}

// Its block that names the rank is lost, which happens; its notes on states say which it was.
TEST(Kolorun, NamesARankOfWhichMpirunSaysOnlyThatThereIsOne) {
  if (own_mpi().has_hydra() || own_mpi().has_prte())
    GTEST_SKIP() << "kolo was built with " << own_mpi().text();
  const std::string dashes(76, '-');
  const FakeMpirun forgetful(
      "mpirun (Open MPI) " + std::to_string(own_mpi().major_version()) + ".1.4",
      "printf '[vm:21] [[15,0],0] ACTIVATE PROC [[15,1],1] STATE ABORTED BY SIGNAL AT ../odls.c:17\\n" +
          dashes +
          "\\nPrimary job  terminated normally, but 1 process returned\\na non-zero exit code. Per "
          "user-direction, "
          "the job has been aborted.\\n" +
          dashes + "\\n' >&2; exit 137");
  const Ended ended = run({"-n", "2", "--", "true"}, {forgetful.variable()});
  EXPECT_EQ(ended.code, 137);
  EXPECT_THAT(ended.err, HasSubstr("Primary job  terminated normally"));
  EXPECT_THAT(ended.err, testing::ContainsRegex("rank 1 on [^ ]+ is gone \\(last step unknown\\)\n"));
}

TEST(DryRun, FollowsTheVersionOfOpenMpi) {
  if (own_mpi().has_hydra()) GTEST_SKIP() << "kolo was built with " << own_mpi().text();
  const std::vector<std::string> options = {"--dry-run", "--host", "a,b", "--", "prog"};
  EXPECT_THAT(run(options, {FakeMpirun("mpirun (Open MPI) 4.1.6").variable()}).out,
              Not(HasSubstr("--prtemca")));
  EXPECT_THAT(run(options, {FakeMpirun("mpirun (Open MPI) 5.0.3").variable()}).out, HasSubstr("--prtemca"));
}

TEST(Kolorun, LooksForABareNameBesideItself) {
  const Ended ended = run({"-n", "1", "--", "kolorun", "--version"});
  EXPECT_EQ(ended.out, "kolorun 0.1.0\n");
  EXPECT_EQ(ended.code, 0);
}

TEST(Kolorun, ReturnsTheExitCodeOfTheJob) {
  EXPECT_EQ(run({"-n", "2", "--", "true"}).code, 0);
  EXPECT_EQ(run({"-n", "2", "--", "sh", "-c", "exit 3"}).code, 3);
}

TEST(Kolorun, PrefixesLinesButNotJson) {
  const Ended ended = run({"-n", "2", "--", "sh", "-c", "echo '{\"rank\":1}'; echo out; echo err >&2"});
  EXPECT_THAT(lines_of(ended.out),
              UnorderedElementsAre("[0] out", "[1] out", "{\"rank\":1}", "{\"rank\":1}"));
  EXPECT_THAT(lines_of(ended.err), UnorderedElementsAre("[0] err", "[1] err"));
}

TEST(Kolorun, LosesAndMixesNoLinesWhenManyShortOnesCome) {
  const Ended ended = run({"-n", "2", "--prefix", "always", "--", "seq", "1", "20000"});
  std::vector<int> next(2, 1);
  for (const std::string& line : lines_of(ended.out)) {
    ASSERT_THAT(line, testing::MatchesRegex("\\[[01]\\] [0-9]+"));
    EXPECT_EQ(std::stoi(line.substr(4)), next[line[1] - '0']++);
  }
  EXPECT_THAT(next, ElementsAre(20001, 20001));
}

TEST(Kolorun, HandsStdinToRankZeroWhereAsked) {
  RunningProgram program({"sh", "-c", "echo text | " + program_path("kolorun") + " -n 2 --stdin -- cat"});
  EXPECT_EQ(program.finish(), 0);
  EXPECT_EQ(program.out(), "[0] text\n");
}

TEST(Kolorun, TellsTheRanksWhoStartedThemAndTheirThreads) {
  const Ended ended = run({"-n", "2", "-x", "MODE=a b", "--prefix", "never", "--", "sh", "-c",
                           "echo $KOLO_LAUNCHER $OMP_NUM_THREADS $MODE $KOLO_X"},
                          {"OMP_NUM_THREADS=5", "KOLO_X=y"});
  EXPECT_EQ(ended.out, "kolorun 5 a b y\nkolorun 5 a b y\n");
}

TEST(Kolorun, LeavesNoFileBehindEvenWhenItIsKilled) {
  const std::string folder = testing::TempDir() + "kolorun_test_tmp";
  std::filesystem::create_directories(folder);
  RunningProgram program(kolorun({"-n", "2", "--", kRank}, {"TMPDIR=" + folder}));
  ASSERT_TRUE(program.wait_for("ready", 2));
  program.signal(SIGKILL);
  program.finish();
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    EXPECT_THAT(entry.path().filename().string(), Not(HasSubstr("kolorun")));
}

// Open MPI itself leaves the segments of a rank that is killed.
TEST(Kolorun, RemovesTheSegmentsOfAKilledJob) {
  RunningProgram program(command({"-n", "2"}, {PRINTING_RANK}));
  ASSERT_TRUE(program.wait_for("epoch 1", 2));
  const int mpirun = mpirun_of(program);
  std::ifstream file("/proc/" + std::to_string(mpirun) + "/cmdline");
  const std::string line(std::istreambuf_iterator<char>(file), {}), setting = "btl_vader_backing_directory";
  const auto at = line.find(setting);
  ASSERT_NE(at, std::string::npos);
  const std::string folder = line.c_str() + at + setting.size() + 1;
  EXPECT_FALSE(std::filesystem::is_empty(folder)) << folder;
  for (const auto& rank : children_of(mpirun)) kill(rank.pid, SIGKILL);
  EXPECT_EQ(program.finish(), 128 + SIGKILL);
  EXPECT_FALSE(std::filesystem::exists(folder)) << folder;
}

// Whoever reaches this machine's other addresses reaches nothing of the job.
TEST(Kolorun, ListensOnLoopbackAloneWhereAllRanksAreHere) {
  RunningProgram program(command({"-n", "2"}, {PRINTING_RANK}));
  ASSERT_TRUE(program.wait_for("epoch 1", 2));
  const int mpirun = mpirun_of(program);
  EXPECT_THAT(open_to_others(mpirun), IsEmpty());
  const auto ranks = children_of(mpirun);
  EXPECT_THAT(ranks, SizeIs(2));
  for (const auto& rank : ranks) {
    EXPECT_THAT(open_to_others(rank.pid), IsEmpty());
    std::ifstream environment("/proc/" + std::to_string(rank.pid) + "/environ");
    const std::string variables(std::istreambuf_iterator<char>(environment), {});
    EXPECT_THAT(variables, Not(HasSubstr("LD_PRELOAD=")));
  }
  program.signal(SIGTERM);
  EXPECT_EQ(program.finish(), 0);
}

TEST(Kolorun, ShowsALineWhenItIsPrinted) {
  RunningProgram program(command({"-q", "-n", "2"}, {PRINTING_RANK}));
  EXPECT_TRUE(program.wait_for("epoch 1\n", 2));
  program.signal(SIGTERM);
  EXPECT_EQ(program.finish(), 0) << program.err();
}

TEST(Kolorun, EndsTheJobWhenNobodyReadsIt) {
  RunningProgram program(command({"-n", "2"}, {"sh", "-c", "while sleep 0.01; do echo y; done"}));
  ASSERT_TRUE(program.wait_for("[1] y", 10));
  program.stop_reading();
  EXPECT_GT(program.finish(), 0);
}

TEST(Kolorun, SaysInOneLineThatMpirunHasTooFewSlots) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "kolorun lets two ranks share one core";
  for (const char* option : {"-q", "--stdin"}) {
    const Ended ended = run({option, "-n", "2", "--mpi-args", "--host localhost:1", "--", "true"});
    EXPECT_EQ(ended.code, 1);
    EXPECT_THAT(
        lines_of(ended.err),
        ElementsAre(testing::StartsWith("kolorun: mpirun finds fewer slots than the 2 ranks need; ")));
  }
}

TEST(Kolorun, SaysInOneLineThatAHostCannotBeReached) {
  for (const char* option : {"-q", "--oversubscribe"}) {
    std::vector<std::string> words = {"-n", "2", "-H", "no-such-host.invalid:1,localhost:1"};
    if (option == std::string("-q")) words.insert(words.begin(), option);
    words.insert(words.end(), {"--", "true"});
    const Ended ended = run(words);
    EXPECT_EQ(ended.code, 1);
    EXPECT_THAT(lines_of(ended.err),
                ElementsAre(testing::MatchesRegex("kolorun: a host cannot be reached: .*no-such-host.*")));
  }
}

TEST(Wdir, IsWhereAProgramWithASlashIsLookedFor) {
  const std::string folder = testing::TempDir() + "kolorun_wdir";
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file("/bin/pwd", folder + "/prog", std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(run({"-n", "1", "--wdir", folder, "./prog"}).out, folder + "\n");
  const Ended missing = run({"-n", "1", "--wdir", folder, "./other"});
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.err, HasSubstr("program " + folder + "/./other does not exist"));
  std::filesystem::remove_all(folder);
  for (const std::string& program : {std::string("./prog"), std::string("true")}) {
    const Ended nowhere = run({"-n", "1", "--wdir", folder, program});
    EXPECT_EQ(nowhere.code, 1);
    EXPECT_EQ(nowhere.err, "kolorun: --wdir " + folder + ": there is no such folder here\n");
  }
}

}  // namespace
}  // namespace kolo::launcher
