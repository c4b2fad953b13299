#include <kolo/collectives/progress/rank_set.h>

#include <gtest/gtest.h>

#include <numeric>

#include <kolo/core/base/error.h>

namespace kolo::detail {
namespace {

std::vector<int> from_to(int first, int last) {
  std::vector<int> ranks(static_cast<std::size_t>(last - first + 1));
  std::iota(ranks.begin(), ranks.end(), first);
  return ranks;
}

TEST(TextOfRanks, ListsAFewOneByOne) { EXPECT_EQ(text_of_ranks({0, 1, 2, 5}, 8), "0,1,2,5"); }

TEST(TextOfRanks, TellsManyAsRanges) {
  auto ranks = from_to(0, 699);
  for (const int rank : from_to(701, 1023)) ranks.push_back(rank);
  EXPECT_EQ(text_of_ranks(ranks, 1024), "0-699,701-1023");
  EXPECT_EQ(text_of_ranks({}, 1024), "");
}

TEST(TextOfRanks, StopsAfterEightRanges) {
  std::vector<int> ranks;
  for (int rank = 0; rank < 90; rank += 2) ranks.push_back(rank);
  EXPECT_EQ(text_of_ranks(ranks, 90), "0,2,4,6,8,10,12,14 and 37 more");
}

TEST(TextOfRanks, NamesTheHostOfEachRange) {
  const std::vector<std::string> hosts = {"a", "a", "a", "b", "b", "b", "c", "c", "c"};
  EXPECT_EQ(text_of_ranks({1, 2, 3, 4, 8}, 9, hosts), "1-2 on a,3-4 on b,8 on c");
  EXPECT_EQ(text_of_ranks({1}, 8, hosts), "1") << "where it can be seen at a glance";
}

TEST(RankSets, TravelAsRanges) {
  for (const std::size_t size : {1, 5, 64, 1024}) {
    RankSet set(size);
    for (const auto& kept :
         {set, RankSet(set).set(), RankSet(set).set().reset(size / 2), RankSet(set).set(0)}) {
      ByteWriter to;
      write_ranks(to, kept);
      const std::string bytes = to.take();
      EXPECT_LE(bytes.size(), 8U);
      ByteReader from(bytes);
      EXPECT_EQ(read_ranks(from, static_cast<int>(size)), kept);
    }
  }
}

TEST(RankSets, RefuseRanksThatDoNotExist) {
  ByteWriter to;
  write_ranks(to, RankSet(9).set());
  const std::string bytes = to.take();
  ByteReader from(bytes);
  EXPECT_THROW(read_ranks(from, 8), InternalError);
}

}  // namespace
}  // namespace kolo::detail
