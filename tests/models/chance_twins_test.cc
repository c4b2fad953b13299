// Rows coincide by chance in tables of few different values; few that were found say little of how many may.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include <kolo/models/chance_twins.h>
#include <kolo/models/learnt_samples.h>

namespace kolo::models::detail {
namespace {

using Row = std::vector<float>;

SampleContents contents_of(const std::vector<Row>& rows) {
  const auto count = static_cast<std::int64_t>(rows.size()), each = static_cast<std::int64_t>(rows[0].size());
  Tensor numbers = Tensor::zeros(DType::f32, {count, each});
  for (std::int64_t i = 0; i < count * each; ++i)
    numbers.data<float>()[i] = rows[static_cast<std::size_t>(i / each)][static_cast<std::size_t>(i % each)];
  SampleContents contents = contents_of_array(numbers);
  contents.numbers = {numbers};
  return contents;
}

// Of so many different numbers in each column.
std::vector<Row> rows_of(std::mt19937& random, int count, const std::vector<unsigned>& different) {
  std::vector<Row> rows(static_cast<std::size_t>(count));
  for (Row& row : rows)
    for (const unsigned each : different) row.push_back(static_cast<float>(random() % each));
  return rows;
}

std::int64_t learnt_of(const std::vector<Row>& rows, const std::vector<Row>& asked) {
  return learnt_among(learnt_samples({}, contents_of(rows)), contents_of(asked)).samples;
}

TEST(ChanceOfTwin, OfNewRowsHardlyAnyTableIsTold) {
  int told = 0;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    const std::vector<unsigned> kinds = {350, 10, 2};
    const std::vector<Row> rows = rows_of(random, 300, kinds);
    told += learnt_of(rows, rows_of(random, 100, kinds)) > 0 ? 1 : 0;
  }
  EXPECT_LE(told, 1) << "of 200 tables";
}

TEST(ChanceOfTwin, ThreeLearntRowsOfAFineTableAreTold) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    const std::vector<unsigned> kinds = {1U << 23, 1U << 23, 2};
    const std::vector<Row> rows = rows_of(random, 300, kinds);
    std::vector<Row> asked = rows_of(random, 400, kinds);
    EXPECT_EQ(learnt_of(rows, asked), 0);
    asked.insert(asked.end(), rows.begin(), rows.begin() + 3);
    EXPECT_EQ(learnt_of(rows, asked), 3);
  }
}

TEST(ChanceOfTwin, OfRowsThatAreDenserIsTheirs) {
  std::mt19937 random(1);
  std::vector<Row> rows = rows_of(random, 1000, {400, 50, 2}), asked, learnt;
  for (const Row& row : rows)
    if (random() % 4 == 0) learnt.push_back({row[0], 1, 1});
  rows.insert(rows.end(), learnt.begin(), learnt.end());
  for (const Row& row : rows_of(random, 200, {400})) asked.push_back({row[0], 1, 1});
  EXPECT_GT(chance_of_asked(contents_of(asked), 1250), 2 * chance_of_twin(contents_of(rows), 1250));
  EXPECT_EQ(learnt_of(rows, asked), 0);
  learnt.resize(200);
  EXPECT_EQ(learnt_of(rows, learnt), 200);
}

TEST(ChanceOfTwin, CopiesOfRareRowsAreNoChanceAndIdleMachinesAre) {
  std::mt19937 random(1);
  const std::vector<Row> often = rows_of(random, 600, {8, 1U << 23, 1U << 23, 2}),
                         rare = rows_of(random, 20, {8, 1U << 23, 1U << 23, 1});
  std::vector<Row> copied = often, idle = often;
  for (int copy = 0; copy < 20; ++copy) copied.insert(copied.end(), rare.begin(), rare.end());
  for (int row = 0; row < 400; ++row) idle.push_back({static_cast<float>(random() % 8), 0, 0, 0});
  EXPECT_LT(chance_of_twin(contents_of(copied), 1000), 0.01);
  EXPECT_NEAR(chance_of_twin(contents_of(idle), 1000), 0.4, 0.02);
  EXPECT_EQ(learnt_of(copied, rare), 20);
}

}  // namespace
}  // namespace kolo::models::detail
