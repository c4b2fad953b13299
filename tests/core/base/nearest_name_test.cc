#include <gtest/gtest.h>

#include <kolo/core/base/nearest_name.h>

namespace kolo {
namespace {

TEST(NearestName, FindsALetterTooManyTooFewOrWrong) {
  EXPECT_EQ(nearest_name("addam", {"sgd", "adam", "adagrad"}), "adam");
  EXPECT_EQ(nearest_name("adm", {"sgd", "adam", "adagrad"}), "adam");
  EXPECT_EQ(nearest_name("sdd", {"sgd", "adam", "adagrad"}), "sgd");
}

TEST(NearestName, IsTheFirstOfEquallyNear) { EXPECT_EQ(nearest_name("bat", {"cat", "hat"}), "cat"); }

TEST(NearestName, CountsCaseAsHalfADifference) {
  // "MatMul": "matmul" differs in two cases (one letter's worth), "MatMax" in two letters.
  EXPECT_EQ(nearest_name("MatMul", {"MatMax", "matmul"}), "matmul");
  EXPECT_EQ(nearest_name("AB", {"ab"}), "ab");
}

TEST(NearestName, MayDifferInHalfOfTheLettersButNotInMore) {
  EXPECT_EQ(nearest_name("abxx", {"abcd"}), "abcd");
  EXPECT_EQ(nearest_name("axxx", {"abcd"}), "");
}

TEST(NearestName, OfNothingOrAmongNothingIsNothing) {
  EXPECT_EQ(nearest_name("", {"sgd"}), "");
  EXPECT_EQ(nearest_name("sgd", {}), "");
}

TEST(DidYouMean, EndsAMessageOnlyWhereANameIsNear) {
  EXPECT_EQ(did_you_mean("Adam", {"adam"}), "; did you mean \"adam\"?");
  EXPECT_EQ(did_you_mean("lenet", {"mlp"}), "");
}

}  // namespace
}  // namespace kolo
