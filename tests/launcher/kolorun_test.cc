// kolorun as users run it, over mpirun on this machine.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <thread>

#include "tests/launcher/running_program.h"
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

const std::string kRank = STOPPING_RANK;
// Says that it is ready and then ignores requests to stop.
const std::vector<std::string> kStubborn = {"sh", "-c",
                                            "trap '' TERM USR1; echo ready $$; while :; do sleep 0.1; done"};

struct Ended {
  int code;
  std::string out, err;
};

Ended run(std::vector<std::string> arguments, std::vector<std::string> variables = {}) {
  RunningProgram program(kolorun(std::move(arguments), std::move(variables)));
  const int code = program.finish();
  return {code, program.out(), program.err()};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> command(std::vector<std::string> arguments,
                                 const std::vector<std::string>& program) {
  arguments.push_back("--");
  arguments.insert(arguments.end(), program.begin(), program.end());
  return kolorun(arguments);
}

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

bool is_alive(int pid) { return kill(pid, 0) == 0; }

int mpirun_of(const RunningProgram& program) {
  const auto children = children_of(program.pid());
  EXPECT_THAT(children, SizeIs(1));
  return children.empty() ? 0 : children[0].pid;
}

TEST(Kolorun, PrintsItsVersion) {
  const Ended ended = run({"--version"});
  EXPECT_EQ(ended.out, "kolorun 0.1.0\n");
  EXPECT_EQ(ended.code, 0);
}

TEST(Kolorun, TellsWhatItWasBuiltWith) {
  const Ended ended = run({"--check-build"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.out,
              AllOf(HasSubstr("compiler: "), HasSubstr("MPI library: MPI 3"), HasSubstr("oneDNN: "),
                    HasSubstr("mpirun: /"), HasSubstr("\nCUDA: "), HasSubstr("\nplug-in: ")));
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

TEST(Kolorun, NamesTheRankThatDiedAndItsLastStep) {
  RunningProgram program(command({"-n", "2"}, {kRank, "41"}));
  ASSERT_TRUE(program.wait_for("ready", 2));
  const auto start = std::chrono::steady_clock::now();
  kill(program.numbers_after("[1] ready ").at(0), SIGKILL);
  EXPECT_EQ(program.finish(), 137);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  EXPECT_THAT(program.err(),
              testing::ContainsRegex("rank 1 on [^ ]+ is gone \\(last step 41\\)\n"));  // told by rank 0
  EXPECT_THAT(program.err(), Not(HasSubstr("\x01")));
}

TEST(Kolorun, SaysThatTheLastStepIsUnknownWhereNoRankToldOne) {
  RunningProgram program(command({"-q", "-n", "2"}, {kRank}));
  ASSERT_TRUE(program.wait_for("ready", 2));
  kill(program.numbers_after("[0] ready ").at(0), SIGKILL);
  EXPECT_EQ(program.finish(), 137);
  EXPECT_THAT(lines_of(program.err()),
              ElementsAre(testing::MatchesRegex("rank 0 on [^ ]+ is gone \\(last step unknown\\)")));
}

TEST(Kolorun, AsksTheRanksToStopAndEndsWithTheirCode) {
  for (const int number : {SIGTERM, SIGINT, SIGUSR1}) {
    RunningProgram program(command({"-q", "-n", "2"}, {kRank, "7"}));
    ASSERT_TRUE(program.wait_for("ready", 2));
    program.signal(number);
    EXPECT_EQ(program.finish(), 0) << program.err();
    EXPECT_THAT(program.out(), AllOf(HasSubstr("[0] saved\n"), HasSubstr("[1] saved\n")));
    EXPECT_EQ(program.err(), "");
  }
}

TEST(Kolorun, ShowsALineWhenItIsPrinted) {
  RunningProgram program(command({"-q", "-n", "2"}, {PRINTING_RANK}));
  EXPECT_TRUE(program.wait_for("epoch 1\n", 2));
  program.signal(SIGTERM);
  EXPECT_EQ(program.finish(), 0) << program.err();
}

TEST(Kolorun, HandsOnSigusr2) {
  RunningProgram program(
      command({"-q", "-n", "2"},
              {"sh", "-c", "trap 'echo usr2; exit 0' USR2; echo ready; while :; do sleep 0.1; done"}));
  ASSERT_TRUE(program.wait_for("ready", 2));
  program.signal(SIGUSR2);
  EXPECT_EQ(program.finish(), 0);
  EXPECT_THAT(program.out(), AllOf(HasSubstr("[0] usr2"), HasSubstr("[1] usr2")));
}

TEST(Kolorun, EndsRanksThatDoNotStopWithinTheGrace) {
  RunningProgram program(command({"-n", "2", "--stop-grace", "0.5"}, kStubborn));
  ASSERT_TRUE(program.wait_for("ready", 2));
  program.signal(SIGTERM);
  EXPECT_GT(program.finish(), 0);
  for (const int rank : program.numbers_after("ready ")) EXPECT_FALSE(is_alive(rank));
}

TEST(Kolorun, EndsAtOnceOnASecondSignal) {
  RunningProgram program(command({"-n", "2", "--stop-grace", "1000"}, kStubborn));
  ASSERT_TRUE(program.wait_for("ready", 2));
  program.signal(SIGTERM);
  program.signal(SIGINT);  // another number: two equal ones may be one by the time they are read
  EXPECT_EQ(program.finish(), 137);
  EXPECT_THAT(program.err(), Not(HasSubstr("--stop-grace")));
  for (const int rank : program.numbers_after("ready ")) EXPECT_FALSE(is_alive(rank));
}

TEST(Kolorun, EndsTheRanksWhenMpirunIsKilled) {
  RunningProgram program(command({"-n", "2"}, kStubborn));
  ASSERT_TRUE(program.wait_for("ready", 2));
  kill(mpirun_of(program), SIGKILL);
  EXPECT_EQ(program.finish(), 137);
  EXPECT_EQ(program.err(), "kolorun: signal 9 (Killed) has ended mpirun, and the ranks with it\n");
  for (const int rank : program.numbers_after("ready ")) EXPECT_FALSE(is_alive(rank));
}

TEST(Kolorun, EndsTheJobWhenNobodyReadsIt) {
  RunningProgram program(command({"-n", "2"}, {"sh", "-c", "while sleep 0.01; do echo y; done"}));
  ASSERT_TRUE(program.wait_for("[1] y", 10));
  program.stop_reading();
  EXPECT_GT(program.finish(), 0);
}

TEST(QuietKolorun, LeavesOutMpirunsBanner) {
  EXPECT_THAT(run({"-n", "2", "--", "sh", "-c", "exit 3"}).err, HasSubstr("non-zero exit code"));
  EXPECT_THAT(
      lines_of(
          run({"-q", "-n", "2", "--", "sh", "-c", "[ $OMPI_COMM_WORLD_RANK = 0 ] || exit 3; sleep 1"}).err),
      ElementsAre(testing::MatchesRegex("(rank 1 on [^ ]+|kolorun: a rank) ended with exit code 3")));
}

// Open MPI may lose the note on it, on a busy machine above all.
TEST(QuietKolorun, SaysInOneLineWhichRankLeftWithoutFinalizing) {
  const Ended ended = run({"-q", "-n", "2", "--", FAILING_RANK, "early"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(lines_of(ended.err),
              ElementsAre(testing::MatchesRegex("(rank 1 on [^ ]+ ended without MPI_Finalize, which .*|"
                                                "kolorun: a rank ended with exit code 1)")));
}

TEST(QuietKolorun, SaysInOneLineWhichErrorOfMpiEndedARank) {
  const Ended ended = run({"-q", "-n", "2", "--", FAILING_RANK, "error"});
  EXPECT_GT(ended.code, 0);
  EXPECT_THAT(lines_of(ended.err),
              ElementsAre(testing::MatchesRegex(
                  "(rank 1 on [^ ]+ was ended by an error in MPI_Send: MPI_ERR_RANK: invalid rank|"
                  "kolorun: a rank ended with exit code 6)")));
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

TEST(QuietKolorun, SaysThatASecondSignalHasEndedTheRanks) {
  RunningProgram program(command({"-q", "-n", "2", "--stop-grace", "1000"}, kStubborn));
  ASSERT_TRUE(program.wait_for("ready", 2));
  program.signal(SIGINT);
  program.signal(SIGTERM);
  EXPECT_EQ(program.finish(), 137);
  EXPECT_THAT(lines_of(program.err()),
              ElementsAre(testing::MatchesRegex("kolorun: a second signal, SIG(TERM|INT), has ended the "
                                                "ranks at once; what was not saved is lost")));
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

TEST(QuietKolorun, SaysThatTheGraceWasNotEnoughAndThatAlone) {
  RunningProgram program(command({"-q", "-n", "2", "--stop-grace", "0.5"}, kStubborn));
  ASSERT_TRUE(program.wait_for("ready", 2));
  program.signal(SIGTERM);
  EXPECT_GT(program.finish(), 0);
  EXPECT_THAT(
      lines_of(program.err()),
      ElementsAre("kolorun: the ranks did not stop within 0.5 s (--stop-grace) and were ended; what was "
                  "not saved is lost"));
}

class Restarts : public testing::Test {
 protected:
  // Appends a line to the log each time it starts, then ends with `code`.
  std::vector<std::string> logging_program(int code) const {
    return {"-q",         "-n", "1",
            "--restarts", "2",  "--",
            "sh",         "-c", "echo start >> " + log_ + "; exit " + std::to_string(code)};
  }
  int starts() const {
    std::ifstream file(log_);
    int count = 0;
    for (std::string line; std::getline(file, line);) ++count;
    return count;
  }
  void SetUp() override { std::filesystem::remove(log_); }
  const std::string log_ = testing::TempDir() + "kolorun_restarts";
};

TEST_F(Restarts, StartAFailedJobAgainAsOftenAsAllowed) {
  const Ended ended = run(logging_program(4));
  EXPECT_EQ(ended.code, 4);
  EXPECT_EQ(starts(), 3);
  // mpirun can lose its note on which rank it was.
  const auto named = testing::MatchesRegex("(rank 0 on [^ ]+|kolorun: a rank) ended with exit code 4");
  EXPECT_THAT(lines_of(ended.err),
              ElementsAre(named, "kolorun: the job ended with exit code 4; restart 1 of 2", named,
                          "kolorun: the job ended with exit code 4; restart 2 of 2", named));
}

TEST_F(Restarts, AreNotForSuccessNorForABadCommandLine) {
  EXPECT_EQ(run(logging_program(0)).code, 0);
  EXPECT_EQ(starts(), 1);
  EXPECT_EQ(run(logging_program(2)).code, 2);
  EXPECT_EQ(starts(), 2);
}

// As a program of kolo's tells at its end; the step grows by `grows` with each start.
std::vector<std::string> telling(const std::string& log, int first, int grows) {
  return {"-q",
          "-n",
          "1",
          "--restarts",
          "3",
          "--",
          "sh",
          "-c",
          fmt::format("echo start >> {0}; n=$(wc -l < {0}); printf '\\001kolo last-step %d\\n' "
                      "$(({1} + {2} * n)) >&2; exit 3",
                      log, first, grows)};
}

TEST_F(Restarts, EndWhereThreeStartsInARowCompleteNoStep) {
  const Ended ended = run(telling(log_, 0, 0));
  EXPECT_EQ(ended.code, 3);
  EXPECT_EQ(starts(), 3);
  EXPECT_THAT(ended.err,
              testing::ContainsRegex("kolorun: 3 starts in a row completed no step; the first ended with: "
                                     "(rank 0 on [^ ]+ ended with )?exit code 3\n$"));
}

TEST_F(Restarts, GoOnAsOftenAsAllowedWhereEachStartCompletesSteps) {
  const Ended ended = run(telling(log_, 0, 10));
  EXPECT_EQ(starts(), 4);
  EXPECT_THAT(ended.err, Not(HasSubstr("in a row")));
}

TEST_F(Restarts, EndWhereAllButTheFirstStopAtTheSameStep) {
  EXPECT_THAT(run(telling(log_, 40, 0)).err, Not(HasSubstr("in a row")));
  EXPECT_EQ(starts(), 4);  // the first made 40 steps, and three none beyond them
}

TEST(StopFile, StopsTheJobWhenItAppears) {
  const std::string path = testing::TempDir() + "kolorun_stop_file";
  std::filesystem::remove(path);
  const std::vector<std::string> program = {
      "sh", "-c", "trap 'echo saved; exit 0' TERM; echo ready; while :; do sleep 0.1; done"};
  RunningProgram job(command({"-q", "-n", "1", "--restarts", "2", "--stop-file", path}, program));
  ASSERT_TRUE(job.wait_for("ready"));
  std::ofstream(path) << "the machine goes";
  EXPECT_EQ(job.finish(), 0);
  EXPECT_THAT(job.out(), HasSubstr("saved\n"));
  EXPECT_THAT(job.err(), HasSubstr("kolorun: " + path + " is there; asking the ranks to stop\n"));
  const Ended again = run({"-n", "1", "--stop-file", path, "--", "true"});
  EXPECT_EQ(again.code, 2);
  EXPECT_THAT(again.err, HasSubstr("it is there already"));

  const std::string hosts = testing::TempDir() + "kolorun_pe_hosts";
  std::ofstream(hosts) << "localhost 1 all.q UNDEFINED\n";
  const Ended queued_again =
      run({"--stop-file", path, "--", "echo", "on"}, {"PE_HOSTFILE=" + hosts, "JOB_ID=7", "RESTARTED=1"});
  EXPECT_EQ(queued_again.code, 0) << queued_again.err;
  EXPECT_THAT(queued_again.err, HasSubstr("removed " + path + ", which has stopped an earlier start"));
  EXPECT_FALSE(std::filesystem::exists(path));
  std::filesystem::remove(hosts);
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

TEST(LogDir, HasAFileOfEachRankAlsoOfASilentOne) {
  const std::string folder = testing::TempDir() + "kolorun_silent_logs";
  std::filesystem::remove_all(folder);
  EXPECT_EQ(run({"-q", "-n", "2", "--log-dir", folder, "--", "sh", "-c",
                 "[ $OMPI_COMM_WORLD_RANK = 1 ] || echo on"})
                .code,
            0);
  EXPECT_EQ(std::filesystem::file_size(folder + "/rank_0.log"), 3u);
  EXPECT_EQ(std::filesystem::file_size(folder + "/rank_1.log"), 0u);
  std::filesystem::remove_all(folder);
}

TEST(LogDir, KeepsEachRanksLinesAndThoseOfTheJobAcrossStarts) {
  const std::string folder = testing::TempDir() + "kolorun_logs/of a job";
  std::filesystem::remove_all(folder);
  const auto text = [&](const char* name) {
    std::ifstream file(folder + "/" + name);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const auto once = [&] {
    return run({"-q", "-n", "2", "--restarts", "1", "--log-dir", folder, "--", "sh", "-c",
                "echo out $OMPI_COMM_WORLD_RANK; printf 'seen\\rbefore a feed\\r\\n'; echo err >&2; exit 4"});
  };
  EXPECT_EQ(once().code, 4);
  EXPECT_THAT(lines_of(text("rank_1.log")), testing::IsSupersetOf({"out 1", "err", "before a feed"}));
  EXPECT_THAT(lines_of(text("job.log")),
              testing::IsSupersetOf(
                  {"[1] before a feed", "kolorun: the job ended with exit code 4; restart 1 of 1"}));
  const auto job = lines_of(text("job.log"));
  EXPECT_EQ(std::count(job.begin(), job.end(), "[0] out 0"), 2);
  EXPECT_EQ(std::count_if(job.begin(), job.end(),
                          [](const std::string& line) {
                            return line.starts_with("kolorun: 20") &&
                                   line.find(": 2 ranks: sh -c") != std::string::npos;
                          }),
            2);
  EXPECT_THAT(text("job.log"), testing::ContainsRegex("ended with exit code 4\n"));
  EXPECT_THAT(text("rank_1.log"), Not(HasSubstr("seen")));
  EXPECT_THAT(run({"-n", "1", "--log-dir", "/proc/kolo", "--", "true"}).err,
              HasSubstr("--log-dir /proc/kolo: the files cannot be written"));
}

TEST_F(Restarts, AreNotForAJobThatWasAskedToStop) {
  RunningProgram program(
      command({"-q", "-n", "1", "--restarts", "2"},
              {"sh", "-c", "trap 'exit 5' TERM; echo ready; while :; do sleep 0.1; done"}));
  ASSERT_TRUE(program.wait_for("ready"));
  program.signal(SIGTERM);
  EXPECT_EQ(program.finish(), 5);
  EXPECT_THAT(program.err(), Not(HasSubstr("restart")));
}

}  // namespace
}  // namespace kolo::launcher
