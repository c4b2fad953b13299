// What BannerReader makes of the words of mpirun and ssh; banner_of_srun_test.cc: of srun's.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/launcher/banner.h>

namespace kolo::launcher {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

const std::string kDashes(74, '-');
// As Open MPI 4.1.4 wrote them.
const std::vector<std::string> kKilled = {
    kDashes,
    "mpirun noticed that process rank 12 with PID 625 on node node2.cluster exited on signal 9 (Killed).",
    kDashes};
const std::vector<std::string> kFailed = {
    kDashes, "Primary job  terminated normally, but 1 process returned",
    "a non-zero exit code. Per user-direction, the job has been aborted.", kDashes};
const std::vector<std::string> kNotFound = {
    kDashes, "mpirun was unable to launch the specified application as it could not access",
    "or execute an executable:", kDashes};
const std::vector<std::string> kLost = {kDashes,
                                        "ORTE has lost communication with a remote daemon.",
                                        "",
                                        "  HNP daemon   : [[49,0],0] on node vm",
                                        "  Remote daemon: [[49,0],1] on node node2",
                                        kDashes};

const std::vector<std::string> kLostInSending = {
    "[node1:01437] oob:tcp: send_msg: write failed: Connection timed out (110) [sd = 22]",
    "[node1:01437] [[20213,0],0]-[[20213,0],2] mca_oob_tcp_peer_send_handler: unable to send message",
    kDashes,
    "An internal error has occurred in ORTE:",
    "",
    "[[20213,0],0] FORCE-TERMINATE AT (null):1 - error ../oob_tcp_sendrecv.c(313)",
    kDashes};

const std::vector<std::string> kNotStarted = {
    kDashes, "ORTE was unable to reliably start one or more daemons.", "This usually is caused by:", kDashes};
const std::vector<std::string> kPeerGone = {
    kDashes,
    "An MPI communication peer process has unexpectedly disconnected.  This",
    "usually indicates a failure in the peer process (e.g., a crash or",
    kDashes,
    "[node1:00454] 1 more process has sent help message help-mpi-btl-tcp.txt / peer hung up",
    "[node1:00454] Set MCA parameter \"orte_base_help_aggregate\" to 0 to see all help / error messages"};

std::vector<std::string> read_all(BannerReader& reader, const std::vector<std::string>& lines) {
  std::vector<std::string> printed;
  for (const std::string& line : lines)
    for (const std::string& text : reader.read(line)) printed.push_back(text);
  for (const std::string& text : reader.finish()) printed.push_back(text);
  return printed;
}

TEST(Banner, NamesTheKilledRankAndItsHost) {
  for (const bool quiet : {false, true}) {
    BannerReader reader(quiet);
    read_all(reader, kKilled);
    ASSERT_TRUE(reader.dead_rank());
    EXPECT_EQ(reader.dead_rank()->rank, 12);
    EXPECT_EQ(reader.dead_rank()->host, "node2.cluster");
    EXPECT_TRUE(reader.failing());
  }
}

// As Open MPI 4.1.4 notes states.
std::string state_of(int rank, const std::string& state) {
  return fmt::format("[vm:21124] [[15994,0],0] ACTIVATE PROC [[15994,1],{}] STATE {} AT ../odls_base.c:1746",
                     rank, state);
}

// The block with rank and code was lost, which happens.
TEST(Banner, KnowsTheFailedRankFromItsState) {
  const std::pair<const char*, BannerReader::FirstEnd> states[] = {
      {"EXITED WITH NON-ZERO STATUS", {1, false, ""}},
      {"CALLED ABORT", {1, false, ""}},
      {"ABORTED BY SIGNAL", {1, true, ""}},
      {"TERMINATED WITHOUT SYNC",
       {1, false, "ended without MPI_Finalize, which an exit before the end of the program leaves out"}}};
  for (const auto& [state, end] : states) {
    BannerReader reader(true);
    reader.take_out_states(false);
    std::vector<std::string> lines = {
        "[vm:1] [[9,0],0] ACTIVATE JOB [9,1] STATE RUNNING AT ../state_base_fns.c:692",
        state_of(0, "RUNNING"), state_of(1, "IOF COMPLETE"), state_of(1, state)};
    lines.insert(lines.end(), kFailed.begin(), kFailed.end());
    lines.push_back(state_of(0, state));  // ended by mpirun
    EXPECT_THAT(read_all(reader, lines), IsEmpty());
    ASSERT_TRUE(reader.first_end());
    EXPECT_EQ(reader.first_end()->rank, end.rank);
    EXPECT_EQ(reader.first_end()->by_signal, end.by_signal);
    EXPECT_EQ(reader.first_end()->how, end.how);
    EXPECT_FALSE(reader.failed_rank());
  }
}

// mpirun goes on, and so would the others.
TEST(Banner, KnowsARankThatEndsBeforeTheOthersMeetIt) {
  const std::vector<std::string> left = {state_of(1, "WAITPID FIRED"), state_of(1, "NORMALLY TERMINATED")};
  const std::string came = state_of(0, "SYNC REGISTERED");
  for (const bool is_first : {true, false}) {
    BannerReader reader(true);
    reader.take_out_states(true);
    if (is_first) read_all(reader, {came});
    read_all(reader, left);
    EXPECT_EQ(reader.failing(), is_first);
    if (!is_first) read_all(reader, {came});
    ASSERT_TRUE(reader.first_end());
    EXPECT_EQ(reader.first_end()->rank, 1);
    EXPECT_THAT(reader.first_end()->how, testing::HasSubstr("before it came to MPI_Init"));
    EXPECT_TRUE(reader.failing());
  }
}

TEST(Banner, TakesRanksForDoneThatHaveMetOrNeverMeet) {
  BannerReader met(true), apart(true), far(true);
  met.take_out_states(true);
  read_all(met, {state_of(0, "SYNC REGISTERED"), state_of(1, "SYNC REGISTERED"),
                 state_of(1, "NORMALLY TERMINATED"), state_of(0, "NORMALLY TERMINATED")});
  EXPECT_FALSE(met.failing() || met.first_end());
  apart.take_out_states(true);
  read_all(apart, {state_of(0, "NORMALLY TERMINATED"), state_of(1, "NORMALLY TERMINATED")});
  EXPECT_FALSE(apart.failing() || apart.first_end());
  far.take_out_states(false);  // another host's mpirun does not tell who has come
  read_all(far, {state_of(0, "SYNC REGISTERED"), state_of(1, "NORMALLY TERMINATED")});
  EXPECT_FALSE(far.failing() || far.first_end());
}

TEST(Banner, KeepsStatesThatAPersonHasAskedFor) {
  BannerReader reader(true);
  EXPECT_THAT(read_all(reader, {state_of(1, "RUNNING")}), ElementsAre(state_of(1, "RUNNING")));
  EXPECT_FALSE(reader.first_end());
}

TEST(Banner, NamesTheLostHost) {
  BannerReader reader(true);
  EXPECT_THAT(read_all(reader, kLost), IsEmpty());
  EXPECT_EQ(reader.lost_host(), "node2");
}

TEST(Banner, NamesTheDaemonThatAWriteDidNotReach) {
  BannerReader reader(true);
  EXPECT_THAT(read_all(reader, kLostInSending), ElementsAre(kLostInSending[0], kLostInSending[1]));
  EXPECT_EQ(reader.lost_daemon(), 2);
  EXPECT_TRUE(reader.failing());
}

// Of two daemons that have lost each other, either may be on the host that is lost.
TEST(Banner, NamesNoDaemonThatAnotherOneDidNotReach) {
  BannerReader reader(true);
  reader.read("[node1:7] [[20213,0],1]-[[20213,0],2] mca_oob_tcp_peer_send_handler: unable to send message");
  EXPECT_EQ(reader.lost_daemon(), std::nullopt);
}

// An ssh that ends is told by itself, before or instead of mpirun's network.
TEST(Banner, NamesTheHostThatSshHasLost) {
  for (const char* line :
       {"Timeout, server node2 not responding.", "Connection to node2 closed by remote host."}) {
    BannerReader reader(true);
    EXPECT_THAT(reader.read(line), ElementsAre(line));
    EXPECT_EQ(reader.lost_host(), "node2");
    EXPECT_TRUE(reader.failing());
    EXPECT_THAT(read_all(reader, kNotStarted), IsEmpty());
  }
}

TEST(Banner, IsPrintedWhenNoDaemonCouldBeStarted) {
  BannerReader reader(true);
  EXPECT_EQ(read_all(reader, kNotStarted), kNotStarted);
  EXPECT_FALSE(reader.failing());
}

TEST(Banner, OfARankWhosePeerIsGoneIsLeftOutWhenQuiet) {
  BannerReader reader(true);
  EXPECT_THAT(read_all(reader, kPeerGone), IsEmpty());
  EXPECT_FALSE(reader.failing());
}

TEST(Banner, IsPrintedAsItIsUnlessQuiet) {
  BannerReader reader(false);
  EXPECT_THAT(reader.read("mpirun: Forwarding signal 10 to job"), SizeIs(1));
  EXPECT_EQ(read_all(reader, kKilled), kKilled);
}

TEST(QuietBanner, DropsNotesOnHowTheJobEnded) {
  BannerReader reader(true);
  EXPECT_THAT(read_all(reader, kFailed), IsEmpty());
  EXPECT_THAT(read_all(reader, {"mpirun: Forwarding signal 10 to job"}), IsEmpty());
}

TEST(QuietBanner, DropsWhatBecameOfTheNotesOfRanksThatWereEnded) {
  BannerReader reader(true);
  for (const char* line :
       {"[vm:29057] [[7551,0],0] ORTE_ERROR_LOG: Out of resource in file ../../../orte/util/show_help.c at "
        "line "
        "501",
        "[vm:2621] [[54251,0],0] ORTE_ERROR_LOG: Data unpack would read past end of buffer in file "
        "util/show_help.c at line 501",
        "[vm:29057] 1 more process has sent help message help-mpi-api.txt / mpi-abort",
        "[vm:22946] 2 more processes have sent help message help-mpi-api.txt / mpi-abort"})
    EXPECT_THAT(reader.read(line), IsEmpty()) << line;
}

TEST(Banner, IsNoLineThatCountsFailedStarts) {
  EXPECT_TRUE(is_count_of_failed_starts("1 total process failed to start"));
  EXPECT_TRUE(is_count_of_failed_starts("12 total processes failed to start"));
  EXPECT_FALSE(is_count_of_failed_starts("in all 2 total processes failed to start"));
  EXPECT_FALSE(is_count_of_failed_starts("7"));
}

// The same words as of a note that is lost, of daemons of another version.
TEST(QuietBanner, KeepsWhyNoDaemonCouldBeStarted) {
  BannerReader reader(true);
  const std::string line =
      "[node1:37] [[49,0],0] ORTE_ERROR_LOG: Data unpack would read past end of buffer in file "
      "base/plm_base_launch_support.c at line 1230";
  EXPECT_THAT(reader.read(line), ElementsAre(line));
}

TEST(QuietBanner, KeepsWhySomethingCouldNotStart) {
  BannerReader reader(true);
  EXPECT_EQ(read_all(reader, kNotFound), kNotFound);
  EXPECT_FALSE(reader.failing());
}

TEST(Banner, LeavesWhatSshCouldNotReachToItsReader) {
  for (const bool quiet : {false, true}) {
    BannerReader reader(quiet);
    for (const char* line : {"ssh: Could not resolve hostname b: unknown", ""})
      EXPECT_THAT(reader.read(line), IsEmpty());
    EXPECT_THAT(read_all(reader, kNotStarted), IsEmpty());
    EXPECT_EQ(reader.unreachable(), "Could not resolve hostname b: unknown");
    EXPECT_EQ(read_all(reader, kNotFound), kNotFound);
  }
}

// As OpenSSH 9.2 wrote them, but for the names.
TEST(Banner, KnowsTheWordsOfSshThatDoNotStartWithSsh) {
  for (const char* line :
       {"Host key verification failed.", "kolo@b: Permission denied (publickey,password).",
        "Connection timed out during banner exchange", "Connection to 10.0.0.2 port 22 timed out",
        "kex_exchange_identification: read: Connection reset by peer", "Connection reset by 10.0.0.2 port 22",
        "Connection closed by 10.0.0.2 port 22",
        "Unable to negotiate with 10.0.0.2 port 22: no matching host key type found. Their offer: ssh-dss",
        "Received disconnect from 10.0.0.2 port 22:2: Too many authentication failures",
        "No ED25519 host key is known for b and you have requested strict checking."}) {
    std::vector<std::string> lines = {line, ""};
    lines.insert(lines.end(), kNotStarted.begin(), kNotStarted.end());
    const std::string words = std::string(line).substr(0, std::string(line).find_last_not_of('.') + 1);
    for (const bool quiet : {false, true}) {
      BannerReader reader(quiet);
      EXPECT_THAT(read_all(reader, lines), IsEmpty());
      EXPECT_EQ(reader.unreachable(), words);
    }
  }
}

TEST(Banner, LeavesOutTheWarningsOfSshBeforeItsReason) {
  for (const bool quiet : {false, true}) {
    BannerReader reader(quiet);
    std::vector<std::string> lines = {"Could not create directory '/home/kolo/.ssh' (Permission denied).",
                                      "Load key \"/home/kolo/.ssh/id_rsa\": Permission denied",
                                      "Permission denied, please try again.",
                                      "kolo@b: Permission denied (publickey,password)."};
    lines.insert(lines.end(), kNotStarted.begin(), kNotStarted.end());
    EXPECT_THAT(read_all(reader, lines), IsEmpty());
    EXPECT_EQ(reader.unreachable(), "kolo@b: Permission denied (publickey,password)");
  }
  BannerReader reader(false);
  reader.read("Permission denied, please try again.");
  EXPECT_THAT(reader.finish(), ElementsAre("Permission denied, please try again."))
      << "the second try was right";
}

TEST(Banner, TakesNoHostForUnreachableThatWasLostLater) {
  BannerReader reader(true);
  reader.read("Timeout, server node2 not responding.");
  reader.read("Connection reset by 10.0.0.2 port 22");
  EXPECT_THAT(read_all(reader, kNotStarted), ElementsAre("Connection reset by 10.0.0.2 port 22"));
  EXPECT_EQ(reader.unreachable(), "");
  EXPECT_EQ(reader.lost_host(), "node2");
}

TEST(Banner, SaysOnceWhatSshSaysOfSeveralHosts) {
  BannerReader reader(false);
  for (const char* line : {"Host key verification failed.", "", "Host key verification failed."})
    EXPECT_THAT(reader.read(line), IsEmpty());
  read_all(reader, kNotStarted);
  EXPECT_EQ(reader.unreachable(), "Host key verification failed");
}

// A program on another host, whose lines come untagged with --prefix never, may print them.
TEST(Banner, PrintsTheWordsOfSshInTheEndWhereADaemonDidStart) {
  BannerReader reader(true);
  EXPECT_THAT(reader.read("ssh: all is well"), IsEmpty());
  EXPECT_THAT(reader.read("epoch 1"), ElementsAre("epoch 1"));
  EXPECT_THAT(reader.finish(), ElementsAre("ssh: all is well"));
  EXPECT_EQ(reader.unreachable(), "");
}

TEST(Banner, NamesTheRankThatLeftWithoutFinalizing) {
  for (const bool quiet : {false, true}) {
    BannerReader reader(quiet);
    const std::vector<std::string> block = {
        kDashes, "mpirun has exited due to process rank 12 with PID 0 on",
        "node node2 exiting improperly. There are three reasons this could occur:", kDashes};
    EXPECT_EQ(read_all(reader, block), quiet ? std::vector<std::string>{} : block);
    ASSERT_TRUE(reader.failed_rank());
    EXPECT_EQ(reader.failed_rank()->rank, 12);
    EXPECT_EQ(reader.failed_rank()->host, "node2");
    EXPECT_THAT(reader.failed_rank()->how, testing::StartsWith("ended without MPI_Finalize"));
    EXPECT_TRUE(reader.failing());
  }
}

TEST(Banner, NamesTheErrorOfMpiThatEndedARank) {
  for (const bool quiet : {false, true}) {
    BannerReader reader(quiet);
    const std::vector<std::string> lines = {
        "[node2:11698] *** An error occurred in MPI_Send",
        "[node2:11698] *** reported by process [1096286209,1]",
        "[node2:11698] *** on communicator MPI_COMM_WORLD",
        "[node2:11698] *** MPI_ERR_RANK: invalid rank",
        "[node2:11698] *** MPI_ERRORS_ARE_FATAL (processes in this communicator will now abort,",
        "[node2:11698] ***    and potentially your MPI job)"};
    EXPECT_EQ(read_all(reader, lines), quiet ? std::vector<std::string>{} : lines);
    ASSERT_TRUE(reader.failed_rank());
    EXPECT_EQ(reader.failed_rank()->rank, 1);
    EXPECT_EQ(reader.failed_rank()->host, "node2");
    EXPECT_EQ(reader.failed_rank()->how, "was ended by an error in MPI_Send: MPI_ERR_RANK: invalid rank");
    EXPECT_FALSE(reader.failed_rank()->is_task);
  }
}

TEST(Banner, LeavesMissingFoldersAndSlotsToItsReader) {
  for (const bool quiet : {false, true}) {
    BannerReader folder(quiet), slots(quiet), filled(quiet);
    EXPECT_THAT(
        read_all(folder, {kDashes, "mpirun was unable to launch the specified application as it could not",
                          "change to the specified working directory:", "",
                          "Working directory: /no such folder", "Node: node2", kDashes}),
        IsEmpty());
    ASSERT_TRUE(folder.missing());
    EXPECT_TRUE(folder.missing()->is_folder);
    EXPECT_EQ(folder.missing()->path, "/no such folder");
    EXPECT_EQ(folder.missing()->host, "node2");
    read_all(slots, {kDashes, "There are not enough slots available in the system to satisfy the 2",
                     "slots that were requested by the application:", kDashes});
    EXPECT_TRUE(slots.lacks_slots());
    read_all(filled, {kDashes, "All nodes which are allocated for this job are already filled.", kDashes});
    EXPECT_TRUE(filled.lacks_slots());
  }
}

TEST(Banner, LeavesAProgramThatAHostDoesNotHaveToItsReader) {
  for (const bool quiet : {false, true}) {
    BannerReader reader(quiet);
    EXPECT_THAT(
        read_all(reader,
                 {kDashes, "mpirun was unable to launch the specified application as it could not access",
                  "or execute an executable:", "", "Executable: /opt/my train", "Node:       node2", "",
                  "while attempting to start process rank 2.", kDashes}),
        IsEmpty());
    ASSERT_TRUE(reader.missing());
    EXPECT_FALSE(reader.missing()->is_folder);
    EXPECT_EQ(reader.missing()->path, "/opt/my train");
    EXPECT_EQ(reader.missing()->host, "node2");
  }
}

TEST(QuietBanner, KeepsABlockThatIsCutOff) {
  BannerReader reader(true);
  EXPECT_THAT(read_all(reader, {kDashes, "something new"}), ElementsAre(kDashes, "something new"));
}

TEST(Banner, NamesTheRankThatMpirunSaysEndedWithAnExitCode) {
  BannerReader reader(true), aborted(true), stopped(true, 3);
  for (const char* line : {"  Process name: [[3035,1],12]", "  Exit code:    3"})
    reader.read(line), stopped.read(line);
  ASSERT_TRUE(reader.failed_rank());
  EXPECT_EQ(reader.failed_rank()->rank, 12);
  EXPECT_EQ(reader.failed_rank()->code, 3);
  EXPECT_FALSE(stopped.failed_rank());
  for (const char* line :
       {"MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD", "with errorcode 4."})
    aborted.read(line);
  ASSERT_TRUE(aborted.failed_rank());
  EXPECT_EQ(aborted.failed_rank()->rank, 1);
  EXPECT_EQ(aborted.failed_rank()->code, 4);
  EXPECT_FALSE(aborted.failed_rank()->is_task);  // MPI names ranks of the whole job
}

TEST(Banner, IsSilentOnRanksThatStoppedWithTheirCode) {
  BannerReader reader(false, 75);
  const std::string dashes(74, '-');
  EXPECT_THAT(reader.read("srun: error: node1: task 0: Exited with exit code 75"), IsEmpty());
  EXPECT_FALSE(reader.failing());
  for (const std::string& line :
       {dashes, std::string("Primary job  terminated normally, but 1 process returned"),
        std::string("a non-zero exit code."), dashes, dashes,
        std::string("mpirun detected that one or more processes exited with non-zero status"),
        std::string("  Exit code:    75"), dashes})
    EXPECT_THAT(reader.read(line), IsEmpty()) << line;
}

TEST(Banner, NamesAnotherCodeThanThatOfAStop) {
  BannerReader reader(false, 75);
  const std::string dashes(74, '-');
  reader.read(dashes);
  reader.read("mpirun detected that one or more processes exited with non-zero status");
  reader.read("  Exit code:    7");
  EXPECT_THAT(reader.read(dashes), SizeIs(4));
}

// Asked to stop while its daemons start.
TEST(Banner, DropsTheBlockOnDaemonsThatASignalDidNotReach) {
  BannerReader reader(false);
  std::vector<std::string> printed;
  for (const char* line :
       {"--------------------------------------------------------------------------",
        "ORTE does not know how to route a message to the specified daemon",
        "located on the indicated node:", "", "  my node:   vm", "  target node:  othernode", "",
        "This is usually an internal programming error that should be",
        "--------------------------------------------------------------------------"})
    for (const std::string& told : reader.read(line)) printed.push_back(told);
  EXPECT_THAT(printed, IsEmpty());
  EXPECT_TRUE(reader.lacks_daemons());
}

}  // namespace
}  // namespace kolo::launcher
