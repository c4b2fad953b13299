#include <kolo/models/programs/confusion.h>

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <string>

namespace kolo::models {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// 3 cats and a cat taken for a dog, 2 dogs, no fox, and a dog taken for a fox.
Confusion pets() {
  Confusion confusion({"cat", "dog", "fox"});
  confusion.add(0, 0, 3);
  confusion.add(0, 1);
  confusion.add(1, 1, 2);
  confusion.add(1, 2);
  return confusion;
}

TEST(Confusion, CountsPrecisionAndRecallOfEachClass) {
  const Confusion confusion = pets();
  EXPECT_EQ(confusion.labelled(0), 4);
  EXPECT_EQ(confusion.answered(1), 3);
  EXPECT_EQ(confusion.precision(0), 1.0);
  EXPECT_EQ(confusion.recall(0), 0.75);
  EXPECT_EQ(confusion.precision(1), 2.0 / 3);
  EXPECT_EQ(confusion.recall(1), 2.0 / 3);
}

TEST(Confusion, HasNoPrecisionWithoutAnswersAndNoRecallWithoutSamples) {
  EXPECT_EQ(pets().recall(2), std::nullopt);
  EXPECT_EQ(pets().precision(2), 0.0);
  EXPECT_EQ(Confusion({"a", "b"}).precision(0), std::nullopt);
}

TEST(Confusion, IsATableWithARowForEachLabel) {
  EXPECT_EQ(to_text(pets()),
            "class     count  precision  recall  taken for     cat     dog     fox\n"
            "cat           4     1.0000  0.7500                  3       1       0\n"
            "dog           3     0.6667  0.6667                  0       2       1\n"
            "fox           0     0.0000       -                  0       0       0\n");
}

TEST(Confusion, IsJsonWithNullsWhereThereIsNoShare) {
  const auto json = to_json(pets());
  EXPECT_EQ(json["confusion"], nlohmann::json::parse("[[3,1,0],[0,2,1],[0,0,0]]"));
  EXPECT_EQ(json["classes"][2],
            nlohmann::json::parse(R"({"class":"fox","count":0,"precision":0.0,"recall":null})"));
}

TEST(Confusion, ListsTheClassesOfLeastRecallWhereThereAreMany) {
  std::vector<std::string> names;
  for (int i = 0; i < 150; ++i) names.push_back("kind" + std::to_string(i));
  Confusion confusion(names);
  for (int i = 0; i < 150; ++i) confusion.add(i, i == 77 ? 0 : i);
  EXPECT_THAT(to_text(confusion), HasSubstr("kind77 "));
  EXPECT_THAT(to_text(confusion), HasSubstr("20 of 150 classes"));
  EXPECT_THAT(to_text(confusion), Not(HasSubstr("taken for")));
}

// By hand: of the 2 · 3 pairs 4 stand right, one is equal, one stands wrong.
TEST(AreaUnderCurve, IsTheShareOfPairsThatStandRight) {
  EXPECT_EQ(area_under_curve({{0.9, true}, {0.5, true}, {0.3, true}, {0.5, false}, {0.1, false}}),
            (1 + 1 + 0.5 + 1 + 0 + 1) / 6.0);
  EXPECT_EQ(area_under_curve({{1, true}, {0, false}}), 1.0);
  EXPECT_EQ(area_under_curve({{0, true}, {1, false}}), 0.0);
  EXPECT_EQ(area_under_curve({{2, true}, {2, false}, {2, false}}), 0.5);
}

TEST(AreaUnderCurve, IsNoneWithoutBothClassesOrForNaN) {
  EXPECT_EQ(area_under_curve({}), std::nullopt);
  EXPECT_EQ(area_under_curve({{1, true}}), std::nullopt);
  EXPECT_EQ(area_under_curve({{std::numeric_limits<double>::quiet_NaN(), true}, {0, false}}), std::nullopt);
}

}  // namespace
}  // namespace kolo::models
