#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include <kolo/launcher/rank_lines.h>

namespace kolo::launcher {
namespace {

using testing::ElementsAre;

// What each rank wrote, when the tagged text comes in pieces of `piece` bytes.
std::map<int, std::string> split(std::string_view text, size_t piece) {
  std::map<int, std::string> by_rank;
  const auto take = [&](int rank, std::string_view bytes) { by_rank[rank].append(bytes); };
  TagSplitter splitter;
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

INSTANTIATE_TEST_SUITE_P(OfBytes, TagSplitterPieces, testing::Values(1, 2, 3, 7, 4096));

TEST(LineCutter, JoinsPiecesAndKeepsEmptyLines) {
  LineCutter cutter;
  std::vector<std::string> lines;
  const auto take = [&](std::string_view line) { lines.emplace_back(line); };
  cutter.feed("a", take);
  cutter.feed("b\n\nc", take);
  EXPECT_THAT(lines, ElementsAre("ab", ""));
  cutter.finish(take);
  cutter.finish(take);
  EXPECT_THAT(lines, ElementsAre("ab", "", "c"));
}

}  // namespace
}  // namespace kolo::launcher
