#include <kolo/collectives/algorithms/adasum.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include <kolo/core/base/error.h>
#include <tests/collectives/algorithms/simulated_allreduce.h>

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::FloatNear;

template <typename T>
void adasum(Arrays<T>& arrays, const std::vector<std::int64_t>& tensors = {}, int turns = 1) {
  SimulatedNetwork network(static_cast<int>(arrays.size()), 7);
  std::vector<std::shared_ptr<Collective>> operations;
  for (int rank = 0; rank < network.size(); ++rank)
    operations.push_back(
        adasum_allreduce(network.context(rank, 64), TypedBuffer::of(std::span<T>(arrays[rank])), tensors));
  for (int turn = 0; turn < turns; ++turn) network.run(operations);
}

// Rows 28 to 33 of the collectives' worked examples.
struct Row {
  const char* name;
  Arrays<float> vectors;
  float x, y;
};

class AdasumRows : public testing::TestWithParam<Row> {};

TEST_P(AdasumRows, GivesTheWorkedResultOnEveryRank) {
  auto arrays = GetParam().vectors;
  adasum(arrays);
  for (const auto& array : arrays)
    EXPECT_THAT(array, ElementsAre(FloatNear(GetParam().x, 1e-6f), FloatNear(GetParam().y, 1e-6f)));
}

INSTANTIATE_TEST_SUITE_P(
    Collectives, AdasumRows,
    testing::Values(Row{"Row28", {{1, 0}, {0, 1}}, 1, 1}, Row{"Row29", {{2, 0}, {2, 0}}, 2, 0},
                    Row{"Row30", {{1, 0}, {1, 1}}, 1.25, 0.75}, Row{"Row31", {{3, 4}, {0, 0}}, 3, 4},
                    Row{"Row32", {{1, 0}, {1, 1}, {0, 2}, {1, -1}}, 1.3721719f, 0.8829185f},
                    Row{"Row33", {{1, 0}, {1, 1}, {0, 2}}, 0.95f, 1.65f}),
    [](const auto& info) { return info.param.name; });

using Vector = std::vector<double>;

Vector plain_adasum(const Vector& a, const Vector& b) {
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) ab += a[i] * b[i], aa += a[i] * a[i], bb += b[i] * b[i];
  Vector sum(a.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    sum[i] = (aa == 0 ? 1 : 1 - ab / (2 * aa)) * a[i] + (bb == 0 ? 1 : 1 - ab / (2 * bb)) * b[i];
  return sum;
}

// What the ranks from the largest power of two on fold into, then pairs.
Vector plain_adasum(std::vector<Vector> vectors) {
  std::size_t power = 1;
  while (power * 2 <= vectors.size()) power *= 2;
  for (std::size_t r = power; r < vectors.size(); ++r)
    vectors[r - power] = plain_adasum(vectors[r - power], vectors[r]);
  vectors.resize(power);
  for (; vectors.size() > 1; vectors.resize(vectors.size() / 2))
    for (std::size_t r = 0; r < vectors.size() / 2; ++r)
      vectors[r] = plain_adasum(vectors[2 * r], vectors[2 * r + 1]);
  return vectors[0];
}

std::vector<Vector> random_vectors(int ranks, int elements) {
  std::mt19937 random(11);
  std::normal_distribution<double> normal;
  std::vector<Vector> vectors(ranks, Vector(elements));
  for (auto& vector : vectors)
    for (auto& value : vector) value = normal(random);
  return vectors;
}

TEST(Adasum, EqualsPairwiseSumsOverWholeVectorsForAnyNumberOfRanks) {
  for (const int ranks : {1, 2, 3, 4, 5, 7, 8, 16, 31, 64, 100}) {
    for (const int elements : {0, 1, 2, 3, 61, 1003}) {
      Arrays<double> arrays = random_vectors(ranks, elements);
      const Vector expected = plain_adasum(arrays);
      adasum(arrays);
      for (const auto& array : arrays)
        for (int i = 0; i < elements; ++i)
          ASSERT_NEAR(array[i], expected[i], 1e-9) << ranks << " ranks, " << elements << " elements";
    }
  }
}

TEST(Adasum, TreatsEachTensorOfAFusedBufferByItself) {
  const std::vector<Vector> first = random_vectors(6, 37), second = random_vectors(6, 111);
  Arrays<double> fused = first;
  for (int rank = 0; rank < 6; ++rank)
    fused[rank].insert(fused[rank].end(), second[rank].begin(), second[rank].end());
  adasum(fused, {37, 0, 111});
  Vector expected = plain_adasum(first);
  const Vector rest = plain_adasum(second);
  expected.insert(expected.end(), rest.begin(), rest.end());
  for (const auto& array : fused)
    for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(array[i], expected[i], 1e-9) << i;
}

TEST(Adasum, GivesTheSameBitsToAllRanksAndInEveryRun) {
  for (const int ranks : {2, 5, 8}) {
    Arrays<float> arrays;
    for (const auto& vector : random_vectors(ranks, 517)) arrays.emplace_back(vector.begin(), vector.end());
    Arrays<float> again = arrays;
    adasum(arrays, {500, 17});
    adasum(again, {500, 17});
    for (const auto& array : arrays) ASSERT_EQ(array, arrays[0]) << ranks << " ranks";
    ASSERT_EQ(again, arrays);
  }
}

TEST(Adasum, WorksOnSixteenBitTypes) {
  Arrays<Half> halves = {{Half(1.f), Half(0.f)}, {Half(1.f), Half(1.f)}};
  adasum(halves);
  for (const auto& array : halves) EXPECT_THAT(array, ElementsAre(Half(1.25f), Half(0.75f)));
  Arrays<BFloat16> brains = {{BFloat16(1.f), BFloat16(0.f)}, {BFloat16(1.f), BFloat16(1.f)}};
  adasum(brains);
  for (const auto& array : brains) EXPECT_THAT(array, ElementsAre(BFloat16(1.25f), BFloat16(0.75f)));
}

// Equal vectors stay what they are.
TEST(Adasum, RunsAgainOnTheSameBuffers) {
  Arrays<float> arrays(5, std::vector<float>(99, 3.0f));
  adasum(arrays, {}, 3);
  for (const auto& array : arrays) EXPECT_THAT(array, testing::Each(3.0f));
}

// Nodes {0, 1} and {2, 3}: their means are [1, 0.5] and [0.5, 0.5].
TEST(HierarchicalAdasum, AveragesInsideNodesAndCombinesAcross) {
  const Topology topology(std::vector<int>{0, 0, 2, 2});
  SimulatedNetwork network(topology, 7);
  Arrays<double> arrays = {{1, 0}, {1, 1}, {0, 2}, {1, -1}};
  const Vector expected = plain_adasum({{1, 0.5}, {0.5, 0.5}});
  std::vector<std::shared_ptr<Collective>> operations;
  for (int rank = 0; rank < 4; ++rank)
    operations.push_back(
        hierarchical_adasum(network.context(rank, 64), TypedBuffer::of(std::span(arrays[rank]))));
  network.run(operations);
  for (const auto& array : arrays)
    for (int i = 0; i < 2; ++i) EXPECT_NEAR(array[i], expected[i], 1e-12);
}

// Ranks 2 and 3 have joined, and their node's average is that of rank 4; of the last node nobody is left.
TEST(HierarchicalAdasum, AveragesOverThoseOfANodeThatContribute) {
  const Topology topology(std::vector<int>{0, 0, 2, 2, 2, 5, 5});
  const bool contributes[] = {true, true, false, false, true, false, false};
  SimulatedNetwork network(topology, 7);
  Arrays<Half> arrays(7, {Half(0.0f), Half(0.0f)});
  arrays[0] = {Half(2.0f), Half(0.0f)};
  arrays[1] = {Half(4.0f), Half(0.0f)};
  arrays[4] = {Half(0.0f), Half(5.0f)};
  std::vector<std::shared_ptr<Collective>> operations;
  for (int rank = 0; rank < 7; ++rank)
    operations.push_back(hierarchical_adasum(
        network.context(rank, 64), TypedBuffer::of(std::span(arrays[rank])), {}, contributes[rank]));
  network.run(operations);
  for (const auto& array : arrays) EXPECT_THAT(array, ElementsAre(Half(3.0f), Half(5.0f)));  // orthogonal
}

TEST(Adasum, RefusesIntegersAndTensorsThatDoNotFillTheBuffer) {
  SimulatedNetwork network(2, 7);
  std::vector<std::int32_t> numbers(4);
  EXPECT_THROW(adasum_allreduce(network.context(0, 64), TypedBuffer::of(std::span(numbers))),
               InvalidArgumentError);
  std::vector<float> floats(4);
  const std::vector<std::int64_t> tensors = {1, 2};
  EXPECT_THAT([&] { adasum_allreduce(network.context(0, 64), TypedBuffer::of(std::span(floats)), tensors); },
              testing::ThrowsMessage<InvalidArgumentError>(
                  testing::HasSubstr("a buffer of 4 elements was given tensors of 3 in all")));
}

}  // namespace
}  // namespace kolo
