#include <kolo/launcher/output.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include <kolo/core/base/stop_signal.h>
#include <kolo/launcher/child.h>

namespace kolo::launcher {
namespace {

using testing::ElementsAre;

// What each rank wrote, when the tagged text comes in pieces of `piece` bytes.
std::map<int, std::string> split(std::string_view text, size_t piece, bool has_blank = false) {
  std::map<int, std::string> by_rank;
  const auto take = [&](int rank, std::string_view bytes) { by_rank[rank].append(bytes); };
  TagSplitter splitter(has_blank);
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size())))
    splitter.feed(text.substr(0, piece), take);
  splitter.finish(take);
  return by_rank;
}

class TagSplitterPieces : public testing::TestWithParam<size_t> {};

TEST_P(TagSplitterPieces, GiveEachRankItsOwnBytes) {
  const auto by_rank =
      split("[1,0]<stdout>:one\n[1,12]<stderr>:two\n-----\n[1,0]<stdout>:three\n", GetParam());
  EXPECT_EQ(by_rank.at(0), "one\nthree\n");
  EXPECT_EQ(by_rank.at(12), "two\n");
  EXPECT_EQ(by_rank.at(kMpirunItself), "-----\n");
}

TEST_P(TagSplitterPieces, JoinALineThatAnotherRankCutInTwo) {
  const auto by_rank = split("[1,0]<stdout>:{\"a\":[1,1]<stdout>:other\n[1,0]<stdout>:1}\n", GetParam());
  EXPECT_EQ(by_rank.at(0), "{\"a\":1}\n");
  EXPECT_EQ(by_rank.at(1), "other\n");
}

TEST_P(TagSplitterPieces, LeaveBracketsThatAreNoTags) {
  const auto by_rank = split(
      "[1,0]<stdout>:[0/2 host] [1,0]<x>: [3,] [1\n[vm:12] note\n[1,0]<stdout>:last [1,0]<std", GetParam());
  EXPECT_EQ(by_rank.at(0), "[0/2 host] [1,0]<x>: [3,] [1\nlast [1,0]<std");
  EXPECT_EQ(by_rank.at(kMpirunItself), "[vm:12] note\n");
}

// As from Open MPI 5 on, written from its manual.
TEST_P(TagSplitterPieces, TakeTheBlankBehindATag) {
  const auto by_rank =
      split("[1,0]<stdout>: one\n[1,1]<stderr>:  two\n[1,0]<stdout>: \n", GetParam(), /*has_blank=*/true);
  EXPECT_EQ(by_rank.at(0), "one\n\n");
  EXPECT_EQ(by_rank.at(1), " two\n");
}

INSTANTIATE_TEST_SUITE_P(OfBytes, TagSplitterPieces, testing::Values(1, 2, 3, 7, 4096));

TEST(LineCutter, JoinsPiecesAndKeepsEmptyLines) {
  LineCutter cutter;
  std::vector<std::string> lines;
  const auto take = [&](const LineCutter::Piece& piece) { lines.emplace_back(piece.line); };
  cutter.feed("a", take);
  cutter.feed("b\n\nc", take);
  EXPECT_THAT(lines, ElementsAre("ab", ""));
  cutter.finish(take);
  cutter.finish(take);
  EXPECT_THAT(lines, ElementsAre("ab", "", "c"));
}

TEST(LineCutter, HandsOnALineWithoutAnEndInPieces) {
  LineCutter cutter;
  std::vector<size_t> sizes;
  const auto take = [&](const LineCutter::Piece& piece) { sizes.push_back(piece.line.size()); };
  for (int i = 0; i < 9; ++i) cutter.feed(std::string(300'000, 'x'), take);
  EXPECT_THAT(sizes, ElementsAre(1 << 20, 1 << 20));
  cutter.finish(take);
  EXPECT_EQ(sizes.back(), 2'700'000u - (2u << 20));
}

TEST(Prefix, StandsBeforeEachLineOfARank) {
  EXPECT_EQ(with_prefix(Prefix::always, 1, 0, "text"), "[0] text");
  EXPECT_EQ(with_prefix(Prefix::always, 2, 1, "{\"a\":1}"), "[1] {\"a\":1}");
  EXPECT_EQ(with_prefix(Prefix::automatic, 2, 1, "text"), "[1] text");
  EXPECT_EQ(with_prefix(Prefix::never, 2, 1, "text"), "text");
}

TEST(AutomaticPrefix, LeavesJsonLinesAlone) {
  EXPECT_EQ(with_prefix(Prefix::automatic, 2, 1, "{\"a\":{\"b\":[1,2]}}"), "{\"a\":{\"b\":[1,2]}}");
  EXPECT_EQ(with_prefix(Prefix::automatic, 2, 1, "{not json}"), "[1] {not json}");
}

TEST(AutomaticPrefix, LeavesOneRankAndKolosOwnLogLinesAlone) {
  EXPECT_EQ(with_prefix(Prefix::automatic, 1, 0, "text"), "text");
  EXPECT_EQ(with_prefix(Prefix::automatic, 2, 1, "[1/2 vm] text"), "[1/2 vm] text");
  EXPECT_EQ(with_prefix(Prefix::automatic, 2, 1, "[1/20 lines]"), "[1] [1/20 lines]");
}

TEST(LastStep, IsTakenOutOfTheLineThatCarriesIt) {
  std::string line = std::string(kLastStepMarker) + "1200";
  EXPECT_EQ(take_last_step(line), ToldStep{1200});
  EXPECT_EQ(line, "");
  line = "started to say" + std::string(kLastStepMarker) + "7";
  EXPECT_EQ(take_last_step(line), ToldStep{7});
  EXPECT_EQ(line, "started to say");
  line = std::string(kLastStepMarker) + "8 1250";
  EXPECT_EQ(take_last_step(line), (ToldStep{8, std::chrono::milliseconds(1250)}));
  line = std::string(kLastStepMarker) + "71 of 400";
  EXPECT_EQ(take_last_step(line), (ToldStep{71, {}, 400}));
  line = std::string(kLastStepMarker) + "71 5 of 400";
  EXPECT_EQ(take_last_step(line), (ToldStep{71, std::chrono::milliseconds(5), 400}));
  line = "kolo last-step 9";
  EXPECT_FALSE(take_last_step(line));
}

TEST(Readiness, IsTakenOutOfTheLineThatTellsIt) {
  std::string line = "started to say" + std::string(kTakesRequestsMarker);
  EXPECT_TRUE(take_readiness(line));
  EXPECT_EQ(line, "started to say");
  EXPECT_FALSE(take_readiness(line));
}

TEST(GoingHost, IsTakenOutOfTheLineThatNamesIt) {
  std::string line = std::string(kHostGoesMarker) + "node2";
  EXPECT_EQ(take_going_host(line), "node2");
  EXPECT_EQ(line, "");
  line = "started to say" + std::string(kHostGoesMarker) + "node2";
  EXPECT_EQ(take_going_host(line), "node2");
  EXPECT_EQ(line, "started to say");
  EXPECT_EQ(take_going_host(line), "");
}

std::array<OwnedFd, 2> make_pipe() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(pipe(ends), 0);
  return {OwnedFd(ends[0]), OwnedFd(ends[1])};
}

class Router : public testing::Test {
 protected:
  Router() { options_.ranks = 2; }
  std::string printed(OutputSink& sink) {
    EXPECT_TRUE(sink.write_some());
    char bytes[4096];
    const ssize_t count = read(pipe_[0].get(), bytes, sizeof bytes);
    return std::string(bytes, std::max<ssize_t>(count, 0));
  }
  std::array<OwnedFd, 2> pipe_ = make_pipe();
  Options options_;
  OutputSink out_{pipe_[1].get()}, err_{pipe_[1].get()};
};

TEST_F(Router, KeepsTheLinesOfRanksWholeHoweverTheyCome) {
  OutputRouter router(options_, std::nullopt, out_, err_);
  router.from_rank(0, Stream::out, "zero ");
  router.from_rank(1, Stream::out, "one\nlast");
  router.from_rank(0, Stream::out, "zero\n");
  router.finish();
  EXPECT_EQ(printed(out_), "[1] one\n[0] zero zero\n[1] last\n");
}

TEST_F(Router, ShowsWhatIsRewrittenInPlaceAsItIsWritten) {
  OutputRouter router(options_, std::nullopt, out_, err_);
  router.from_rank(0, Stream::out, "10 %\r");
  EXPECT_EQ(printed(out_), "[0] 10 %\r");
  router.from_rank(0, Stream::out, "20 %\r");
  EXPECT_EQ(printed(out_), "[0] 20 %\r");
  router.from_rank(0, Stream::out, "\ndone\r");
  router.from_rank(0, Stream::out, "\n");
  EXPECT_EQ(printed(out_), "\n[0] done\r\n");
  router.from_rank(1, Stream::out, "\r1 of 2\r2 of 2\n");
  EXPECT_EQ(printed(out_), "[1] 1 of 2\r[1] 2 of 2\n");
}

TEST_F(Router, KeepsTheLargestStepAndPrintsNoneOfTheMarkers) {
  OutputRouter router(options_, LineMarks::tags, out_, err_);
  const std::string marker = kLastStepMarker;
  router.from_mpirun(Stream::err,
                     "[1,0]<stderr>:" + marker + "7\n[1,1]<stderr>:" + marker + "5\n[1,1]<stderr>:bye\n");
  router.finish();
  EXPECT_EQ(router.last_step(), 7);
  EXPECT_EQ(printed(err_), "[1] bye\n");
}

TEST_F(Router, ReadsTheMarksAndWordsOfHydra) {
  options_.launcher = Launcher::hydra;
  OutputRouter router(options_, LineMarks::tags, out_, err_);
  router.from_mpirun(Stream::out, "[1,1]<stdout>:one\n[1,0]<stdout>:ze");
  router.from_mpirun(Stream::out, "[1,0]<stdout>:ro\n[mpiexec@vm] a word of its own\n");
  router.from_mpirun(Stream::out, "[mpiexec@vm] Exit codes: [vm] 0,768\n");
  router.from_mpirun(Stream::err, "[1,1]<stdout>:" + std::string(kLastStepMarker) + "7\n");
  router.finish();
  EXPECT_EQ(printed(out_), "[1] one\n[0] zero\n[mpiexec@vm] a word of its own\n");
  ASSERT_TRUE(router.banner().failed_rank());
  EXPECT_EQ(router.banner().failed_rank()->code, 3);
  EXPECT_EQ(router.last_step(), 7);
}

TEST_F(Router, LeavesOutTheBlankLineBeforeThePageOfHydra) {
  options_.launcher = Launcher::hydra;
  options_.quiet = true;
  OutputRouter router(options_, std::nullopt, out_, err_);
  router.from_mpirun(Stream::out, "a rank's\n\n\nthat has two blank lines\n\n");
  router.from_mpirun(Stream::out,
                     std::string(75, '=') + "\n=   BAD TERMINATION\n" + std::string(75, '=') + "\n\n");
  router.finish();
  EXPECT_EQ(printed(out_), "a rank's\n\n\nthat has two blank lines\n\n");
}

TEST_F(Router, KnowsWhenTheLargestStepWasCompleted) {
  OutputRouter router(options_, std::nullopt, out_, err_);
  const std::string marker = kLastStepMarker;
  router.from_rank(0, Stream::err, marker + "7 60000\n" + marker + "6 0\n");
  const auto age = std::chrono::steady_clock::now() - *router.last_step_at();
  EXPECT_GE(age, std::chrono::seconds(60));
  EXPECT_LT(age, std::chrono::seconds(100));
}

TEST_F(Router, CutsNoLineWhereAMarkerComesInTheMiddleOfIt) {
  OutputRouter router(options_, std::nullopt, out_, err_);
  router.from_rank(0, Stream::err, "50 %");
  router.from_rank(0, Stream::err, std::string(kLastStepMarker) + "7 3\n");
  router.from_rank(0, Stream::err, " of it\n");
  EXPECT_EQ(printed(err_), "[0] 50 % of it\n");
  EXPECT_EQ(router.last_step(), 7);
}

TEST_F(Router, SeesThatTheRanksDisagree) {
  for (const char* line : {"rank 1 on b: Ranks disagree on the training step: gradient 1 is \"w\" …",
                           "kolo-train: init: the ranks differ in what they must share:",
                           "kolo-train: Mismatched shapes for w: rank 0 has [1000], rank 3 has [1001]"}) {
    OutputRouter router(options_, std::nullopt, out_, err_);
    router.from_rank(0, Stream::err, "Mismatched parentheses\n");
    EXPECT_FALSE(router.ranks_disagree());
    router.from_rank(0, Stream::err, std::string(line) + "\n");
    EXPECT_TRUE(router.ranks_disagree()) << line;
  }
}

TEST_F(Router, TellsWhenNobodyReads) {
  OutputRouter router(options_, std::nullopt, out_, err_);
  router.from_rank(0, Stream::out, "text\n");
  pipe_[0] = OwnedFd();
  signal(SIGPIPE, SIG_IGN);
  EXPECT_FALSE(out_.write_some());
  EXPECT_EQ(out_.pending_bytes(), 0u);
}

TEST_F(Router, DoesNotWaitForASlowReader) {
  OutputRouter router(options_, std::nullopt, out_, err_);
  for (int i = 0; i < 100; ++i) router.from_rank(0, Stream::out, std::string(9999, 'x') + "\n");
  EXPECT_TRUE(out_.write_some());  // a pipe holds 65536 bytes
  EXPECT_GT(out_.pending_bytes(), 900000u);
}

}  // namespace
}  // namespace kolo::launcher
