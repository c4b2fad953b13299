#include <kolo/collectives/graph/sharding.h>

#include <gmock/gmock.h>

#include <limits>
#include <numeric>
#include <string>

#include <kolo/collectives/graph/group_ops.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/process.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/runtime/session.h>

#include "tests/core/op_checks.h"

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

const std::vector<GradientSpec> kGradients = {
    {.name = "a", .shape = {37, 11}}, {.name = "b", .shape = {}},  {.name = "c", .shape = {0, 3}},
    {.name = "d", .shape = {1001}},   {.name = "e", .shape = {5}},
};

TEST(ShardCounts, AreWholeCacheLinesAndEven) {
  const auto buckets = make_buckets(kGradients, {});
  ASSERT_EQ(buckets.size(), 1u);
  // 407, 1, 0, 1001 and 5 elements begin at multiples of 16: 26 + 1 + 63 + 1 pieces.
  EXPECT_THAT(shard_counts(buckets[0], 3), ElementsAre(31 * 16, 30 * 16, 30 * 16));
  EXPECT_THAT(shard_counts(buckets[0], 1), ElementsAre(91 * 16));
}

TEST(ShardCounts, AreZeroForRanksBeyondThePieces) {
  const auto buckets = make_buckets({{{.name = "b", .shape = {20}}}}, {});
  EXPECT_THAT(shard_counts(buckets[0], 4), ElementsAre(16, 16, 0, 0));
}

// Each element of each gradient belongs to one rank, and a rank's part is its range of the bucket.
TEST(OwnedParts, CoverEveryGradientOnce) {
  for (const BucketLimits limits : {BucketLimits{}, BucketLimits{512, 1024}})
    for (const int ranks : {1, 2, 3, 5, 200})
      for (const Bucket& bucket : make_buckets(kGradients, limits)) {
        std::vector<std::int64_t> next(bucket.gradients.size(), 0);
        for (int rank = 0; rank < ranks; ++rank) {
          const auto parts = owned_parts(bucket, kGradients, rank, ranks);
          const auto counts = shard_counts(bucket, ranks);
          const std::int64_t begin = std::accumulate(counts.begin(), counts.begin() + rank, std::int64_t{0});
          for (std::size_t k = 0; k < parts.size(); ++k) {
            if (parts[k].count == 0) continue;
            EXPECT_EQ(parts[k].first, next[k]);
            next[k] += parts[k].count;
            EXPECT_GE(bucket.offsets[k] / 4 + parts[k].first, begin);
            EXPECT_LE(bucket.offsets[k] / 4 + parts[k].first + parts[k].count, begin + counts[rank]);
          }
        }
        for (std::size_t k = 0; k < next.size(); ++k)
          EXPECT_EQ(next[k], kGradients[bucket.gradients[k]].shape.elements()) << ranks;
      }
}

TEST(OwnShard, IsTheElementsOfItsPart) {
  Graph graph;
  Scope s(graph);
  const Output x = constant(s, Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
  const Output part = own_shard(s, x, {.first = 2, .count = 3}), none = own_shard(s, x, {6, 0});
  EXPECT_EQ(part.shape(), Shape({3}));
  record_op_check("OwnShard", OpCheck::shape);
  Session session(graph);
  const auto values = session.run({part, none});
  EXPECT_THAT(values[0].span<float>(), ElementsAre(3, 4, 5));
  EXPECT_EQ(values[1].shape(), Shape({0}));
  record_op_check("OwnShard", OpCheck::value);
  EXPECT_THAT(
      [&] {
        own_shard(s, x, {4, 3});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("do not lie in a tensor of shape [2,3]")));
}

TEST(OwnShard, IsRefusedWhereItsEndIsNoNumber) {
  Graph graph;
  Scope s(graph);
  const Output x = placeholder(s, DType::f32, {-1});
  EXPECT_EQ(own_shard(s, x, {.first = 4, .count = 3}).shape(), Shape({3}));
  EXPECT_THAT([&] { own_shard(s, x, {.first = std::numeric_limits<std::int64_t>::max(), .count = 2}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("do not lie in a tensor")));
}

// As rank 1 of 2.
class ShardedGroup : public testing::Test {
 protected:
  ShardedGroup() {
    ProcessInfo second = before;
    second.rank = 1;
    second.size = 2;
    set_process(second);
    reduced = group_allreduce(s, {ones(s, DType::f32, {40}), ones(s, DType::f32, {24})}, {"a", "b"},
                              {.sharded = true});
  }
  ~ShardedGroup() override { set_process(before); }

  const ProcessInfo before = process();
  Graph graph;
  Scope s{graph};
  Outputs reduced;
};

TEST_F(ShardedGroup, SaysWhatThisRankOwns) {
  // Of 5 pieces of 16 elements rank 0 has the first 3, which hold the first gradient with its padding.
  EXPECT_THAT(own_parts(*reduced[0].node), ElementsAre(OwnedPart{40, 0}, OwnedPart{0, 24}));
}

TEST_F(ShardedGroup, IsFoundBehindCastsAndScales) {
  const Output scaled = div(s, cast(s, reduced[1], DType::f64), fill(s, DType::f64, {}, 3));
  const auto source = sharded_source(scaled);
  ASSERT_TRUE(source.has_value());
  EXPECT_EQ(source->group, reduced[1].node);
  EXPECT_EQ(source->index, 1);
  EXPECT_FALSE(sharded_source(square(s, reduced[1])).has_value());
  // The part is cast and scaled, not a part taken of what was.
  const Output part = own_shard(s, scaled, {0, 24});
  EXPECT_EQ(part.node->op(), "Div");
  EXPECT_EQ(part.shape(), Shape({24}));
  EXPECT_EQ(part.node->input(0).node->input(0).node->op(), "OwnShard");
}

TEST_F(ShardedGroup, GathersWholeVariables) {
  const Outputs whole =
      gather_shards(s, *reduced[0].node,
                    {{.gradient = 1, .part = ones(s, DType::f32, {24})}, {0, ones(s, DType::f32, {0})}});
  ASSERT_EQ(whole.size(), 2u);
  EXPECT_EQ(whole[0].shape(), Shape({24}));
  EXPECT_EQ(whole[1].shape(), Shape({40}));
  record_op_check("GatherShards", OpCheck::shape);
  EXPECT_THAT([&] { gather_shards(s, *ones(s, DType::f32, {1}).node, {}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("no sharded reduction")));
}

TEST_F(ShardedGroup, IsNotRunByAnotherRank) {
  set_process(before);
  const Outputs whole =
      gather_shards(s, *reduced[0].node, {{.gradient = 1, .part = ones(s, DType::f32, {24})}});
  Session session(graph);
  EXPECT_THAT([&] { session.run(whole[0]); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr("was built for rank 1 of 2")));
}

TEST(GatherShards, GivesThePartsWhereThereIsOneRank) {
  Graph graph;
  Scope s(graph);
  const Outputs reduced = group_allreduce(s, {ones(s, DType::f32, {3})}, {"a"}, {.sharded = true});
  const Output part = own_shard(s, reduced[0], own_parts(*reduced[0].node)[0]);
  const Outputs whole = gather_shards(s, *reduced[0].node, {{.gradient = 0, .part = add(s, part, part)}});
  Session session(graph);
  EXPECT_THAT(session.run(whole[0]).span<float>(), ElementsAre(2, 2, 2));
}

// The set is an attribute: of a graph from a file, too.
TEST_F(ShardedGroup, IsOfAllRanks) {
  AttrMap attrs = reduced[0].node->attrs();
  attrs.insert_or_assign("process_set", 1);
  EXPECT_THAT([&] { s.add("GroupAllReduce", reduced[0].node->inputs(), attrs); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("over all ranks, not over process set 1")));
}

TEST_F(ShardedGroup, TakesSumAndAverageOfWholeGradients) {
  EXPECT_THAT(
      [&] {
        group_allreduce(s, {ones(s, DType::f32, {3})}, {"a"}, {.op = ReduceOp::adasum, .sharded = true});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("op is adasum")));
}

}  // namespace
}  // namespace kolo
