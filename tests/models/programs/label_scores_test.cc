#include <kolo/models/programs/label_scores.h>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kolo::models {
namespace {

// Three labels of four samples, a row for each. Found, by the signs: 110, 011, 100, 000.
constexpr float kLogits[] = {2, .5F, -1, -3, 1, 1, .1F, -1, -1, -2, 0, -1};
constexpr float kLabels[] = {1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0};

LabelScores scores_of(int begin, int end) {
  LabelScores scores({"cat", "dog", "bird"});
  for (int i = begin; i < end; ++i) scores.add(kLogits + 3 * i, kLabels + 3 * i);
  return scores;
}

TEST(LabelScores, AreThoseCountedByHand) {
  const LabelScores scores = scores_of(0, 4);
  EXPECT_EQ(scores.all_right(),
            2);  // the first and the last: a logit of 0 is a probability of 0.5, not above
  EXPECT_EQ(scores.samples(0), 1);
  EXPECT_EQ(scores.precision(0), 1.0 / 2);
  EXPECT_EQ(scores.recall(0), 1);
  EXPECT_EQ(scores.f1(0), 2 * .5 * 1 / 1.5);
  EXPECT_EQ(scores.precision(1), 1.0 / 2);
  EXPECT_EQ(scores.f1(2), 1);
}

TEST(LabelScores, AreTheSameOverAnyPartsEmptyOnesToo) {
  LabelScores joined({"cat", "dog", "bird"});
  for (const auto& [begin, end] : {std::pair(0, 1), {1, 1}, {1, 4}})
    joined.add_numbers(scores_of(begin, end).numbers());
  EXPECT_EQ(to_json(joined), to_json(scores_of(0, 4)));
  EXPECT_EQ(joined.all_right(), 2);
}

TEST(LabelScores, AreNoneOfNoSamples) {
  const LabelScores scores = scores_of(3, 4);
  EXPECT_FALSE(scores.precision(0));
  EXPECT_FALSE(scores.recall(0));
  EXPECT_FALSE(scores.f1(0));
  EXPECT_EQ(to_json(scores)["labels"][0].dump(),
            R"({"label":"cat","count":0,"precision":null,"recall":null,"f1":null})");
}

TEST(LabelScores, ListThoseOfLeastF1WhereThereAreMany) {
  std::vector<std::string> names;
  std::vector<float> logits(101, 1), labels(101, 1);
  for (int i = 0; i < 101; ++i) names.push_back("label" + std::to_string(i));
  logits[77] = -1;
  LabelScores scores(names);
  scores.add(logits.data(), labels.data());
  const std::string text = to_text(scores);
  EXPECT_EQ(text.find("\nlabel77"), text.find('\n')) << text;
  EXPECT_NE(text.find("(20 of 101 labels, those of least F1; --json has all)"), std::string::npos) << text;
}

}  // namespace
}  // namespace kolo::models
