// Adasum among some of the ranks: rows 28, 30, 32 and 33 of the collectives' worked examples, where the order
// of the set decides who is whose partner.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include <kolo/collectives/engine/eager.h>
#include <kolo/collectives/job/init.h>

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::FloatNear;

// vectors[i] is that of the set's rank i.
std::vector<float> adasum_in(const ProcessSet& set, const std::vector<std::vector<float>>& vectors) {
  std::vector<float> values = vectors.at(static_cast<std::size_t>(set.rank()));
  allreduce(std::span(values), ReduceOp::adasum, {.name = "adasum", .process_set = set});
  return values;
}

const std::vector<std::vector<float>> kRow30 = {{1, 0}, {1, 1}};
const std::vector<std::vector<float>> kRow32 = {{1, 0}, {1, 1}, {0, 2}, {1, -1}};
const std::vector<std::vector<float>> kRow33 = {{1, 0}, {1, 1}, {0, 2}};

TEST(AdasumOfASet, CombinesTwoRanksInWhateverOrder) {
  for (const auto& ranks : {std::vector{0, size() - 1}, std::vector{size() - 1, 0}}) {
    const ProcessSet pair = ProcessSet::create(ranks);
    if (pair.contains_this_rank()) {
      EXPECT_THAT(adasum_in(pair, kRow30), ElementsAre(1.25f, 0.75f));
    }
  }
}

TEST(AdasumOfASet, FoldsTheSetsLastRankIntoItsFirst) {
  if (size() < 3) GTEST_SKIP() << "a set of three";
  const ProcessSet three = ProcessSet::create(std::vector{size() - 1, 1, 0});
  if (three.contains_this_rank()) {
    EXPECT_THAT(adasum_in(three, kRow33), ElementsAre(FloatNear(0.95f, 1e-6f), FloatNear(1.65f, 1e-6f)));
  }
}

TEST(AdasumOfASet, PairsRanksByTheirNumbersInTheSet) {
  if (size() < 4) GTEST_SKIP() << "a set of four";
  const ProcessSet four = ProcessSet::create(std::vector{2, 0, 3, 1});
  EXPECT_THAT(adasum_in(four, kRow32),
              ElementsAre(FloatNear(1.3721719f, 1e-6f), FloatNear(0.8829185f, 1e-6f)));
}

TEST(AdasumOfASet, RunsInDisjointSetsAtOnce) {
  const bool even = rank() % 2 == 0;
  const ProcessSet half = ProcessSet::split(even ? 0 : 1, rank());
  for (int turn = 0; turn < 20; ++turn) {
    // Orthogonal vectors in one half, parallel ones in the other.
    const std::vector<std::vector<float>> vectors = even ? std::vector<std::vector<float>>{{1, 0}, {0, 1}}
                                                         : std::vector<std::vector<float>>{{2, 0}, {2, 0}};
    const auto result = adasum_in(half, vectors);
    if (half.size() == 1) EXPECT_EQ(result, vectors[0]);
    else if (even) EXPECT_THAT(result, ElementsAre(1, 1));
    else EXPECT_THAT(result, ElementsAre(2, 0));
  }
}

TEST(AdasumOfASet, OfOneRankIsThatRanksVector) {
  std::vector<ProcessSet> alone;
  for (int r = 0; r < size(); ++r) alone.push_back(ProcessSet::create(std::vector{r}));
  EXPECT_THAT(adasum_in(alone[static_cast<std::size_t>(rank())], {{3, 4}}), ElementsAre(3, 4));
}

}  // namespace
}  // namespace kolo
