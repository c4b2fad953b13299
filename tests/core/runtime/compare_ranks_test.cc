#include <kolo/core/runtime/compare_ranks.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/base/error.h>

#include "tests/core/training/thread_group.h"

namespace kolo::detail {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;

// What every rank has found, where rank r has own[r].
std::vector<std::optional<RankDifference>> compare(const std::vector<NamedTexts>& own) {
  std::vector<std::optional<RankDifference>> found(own.size());
  const auto errors = run_ranks(static_cast<int>(own.size()), [&](Group& group) {
    found[group.rank()] = compare_ranks(group, own[group.rank()]);
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
  return found;
}

TEST(CompareRanks, FindsNothingWhereAllHaveTheSame) {
  const NamedTexts own = {{"a", "1"}, {"b", "2"}};
  for (const auto& found : compare({own, own, own})) EXPECT_FALSE(found);
}

TEST(CompareRanks, NamesTheFirstTextThatDiffersOnEveryRank) {
  for (const auto& found :
       compare({{{"a", "1"}, {"b", "2"}}, {{"a", "1"}, {"b", "2"}}, {{"a", "1"}, {"b", "3"}}})) {
    ASSERT_TRUE(found);
    EXPECT_EQ(found->name, "b");
    EXPECT_EQ(found->other, 2);
    EXPECT_THAT(found->texts, ElementsAre(Optional(std::string("2")), Optional(std::string("2")),
                                          Optional(std::string("3"))));
  }
}

TEST(CompareRanks, NamesWhatOneRankLacksWhereTheOtherHasIt) {
  const auto found = compare(
      {{{"gradient 0", "x"}, {"limit", "1"}}, {{"gradient 0", "x"}, {"gradient 1", "y"}, {"limit", "2"}}})[0];
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "gradient 1") << "before the limit";
  EXPECT_THAT(found->texts, ElementsAre(std::nullopt, Optional(std::string("y"))));
}

TEST(CompareRanks, GivesAllThatTheRanksHave) {
  const std::vector<NamedTexts> own = {{{"a", "1"}}, {{"a", "2"}, {"b", ""}}};
  EXPECT_EQ(compare(own)[1]->all, own);
}

// The second exchange fails the test.
class OneExchange final : public Group {
 public:
  int rank() const override { return 0; }
  int size() const override { return 2; }
  void broadcast(std::span<const Tensor>, int) override { ADD_FAILURE(); }
  std::string broadcast(const std::string& text, int) override { return ADD_FAILURE(), text; }
  std::vector<std::string> allgather(const std::string& text) override {
    EXPECT_EQ(++exchanges_, 1);
    EXPECT_EQ(text.size(), 32u);
    return {text, text};
  }

 private:
  int exchanges_ = 0;
};

TEST(CompareRanks, SendsAHashAloneWhereAllHaveTheSame) {
  OneExchange group;
  EXPECT_FALSE(compare_ranks(group, {{"a", std::string(10000, 'x')}}));
}

// Of five ranks, of which one differs.
class TwoTexts final : public Group {
 public:
  int rank() const override { return 3; }
  int size() const override { return 5; }
  void broadcast(std::span<const Tensor>, int) override { ADD_FAILURE(); }
  std::string broadcast(const std::string& text, int root) override {
    roots.push_back(root);
    return root == 0 ? text : R"([["a","2"]])";
  }
  std::vector<std::string> allgather(const std::string& text) override {
    EXPECT_EQ(text.size(), 32u) << "a hash";
    const std::string other(32, 'f');
    return {text, text, other, text, text};
  }
  std::vector<int> roots;
};

TEST(CompareRanks, SendsEachTextOnce) {
  TwoTexts group;
  const auto found = compare_ranks(group, {{"a", "1"}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->other, 2);
  EXPECT_THAT(group.roots, ElementsAre(0, 2));
  EXPECT_THAT(found->all, ElementsAre(NamedTexts{{"a", "1"}}, NamedTexts{{"a", "1"}}, NamedTexts{{"a", "2"}},
                                      NamedTexts{{"a", "1"}}, NamedTexts{{"a", "1"}}));
}

TEST(CompareRanks, SendsNothingOnOneRank) { EXPECT_FALSE(compare_ranks(world_group(), {{"a", "1"}})); }

TEST(ShareFailure, ReachesEveryRankAndNamesTheOneThatFailed) {
  const auto errors = run_ranks(3, [](Group& group) {
    share_failure(group, [&] {
      if (group.rank() == 1) throw DataLossError("the file is cut");
    });
  });
  EXPECT_THAT(errors, ElementsAre("rank 1: the file is cut", "the file is cut", "rank 1: the file is cut"));
}

TEST(ShareFailure, KeepsTheKindOfTheError) {
  run_ranks(2, [](Group& group) {
    EXPECT_THROW(share_failure(group,
                               [&] {
                                 if (group.rank() == 0) throw DataLossError("the file is cut");
                               }),
                 DataLossError);
  });
}

}  // namespace
}  // namespace kolo::detail
