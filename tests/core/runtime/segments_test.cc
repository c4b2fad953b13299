#include <kolo/core/runtime/segments.h>

#include <gmock/gmock.h>

#include <cstdint>
#include <utility>
#include <vector>

#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>

namespace kolo {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

const Stream* stream(int number) {
  return reinterpret_cast<const Stream*>(static_cast<std::intptr_t>(number));
}
OrderedNode on(int number) { return {.before = {}, .stream = stream(number), .runs_ahead = true}; }
OrderedNode on_host() { return {}; }
OrderedNode name() { return {.before = {}, .is_name = true}; }
OrderedNode that_can_be_skipped(OrderedNode node) {
  node.can_be_skipped = true;
  return node;
}

std::vector<std::pair<int, int>> segments(const std::vector<OrderedNode>& nodes,
                                          std::vector<int> not_repeatable = {}) {
  std::vector<bool> repeatable(nodes.size(), true);
  for (const int n : not_repeatable) repeatable[n] = false;
  std::vector<std::pair<int, int>> found;
  for (const Segment& segment : find_segments(nodes, repeatable))
    found.emplace_back(segment.first, segment.last);
  return found;
}

TEST(FindSegments, TakesTheLongestRunsOfAStream) {
  EXPECT_THAT(segments({on_host(), on(1), on(1), on(1), on(1), on(1), on(2), on(1), on(1), on(1), on(1)}),
              ElementsAre(Pair(1, 5), Pair(7, 10)));
}

TEST(FindSegments, LeavesOutRunsOfFewNodes) { EXPECT_THAT(segments({on(1), on(1), on(1)}), IsEmpty()); }

TEST(FindSegments, AreNotCutByNamesButEndWithMembers) {
  EXPECT_THAT(segments({name(), on(1), on(1), name(), on(1), on(1), name()}), ElementsAre(Pair(1, 5)));
}

TEST(FindSegments, AreCutByNamesThatAreBoundInEachStep) {
  EXPECT_THAT(segments({on(1), on(1), name(), on(1), on(1)}, {2}), IsEmpty());
}

TEST(FindSegments, AreCutByWhatDiffersFromStepToStep) {
  EXPECT_THAT(segments({on(1), on(1), on(1), on(1), on(1), on(1), on(1), on(1), on(1)}, {4}),
              ElementsAre(Pair(0, 3), Pair(5, 8)));
  EXPECT_THAT(segments({on(1), on(1), that_can_be_skipped(on(1)), on(1), on(1)}), IsEmpty());
}

TEST(LeadersOf, AreTheFirstOfEachSegment) {
  EXPECT_THAT(leaders_of({{1, 3}}, 5), ElementsAre(0, 1, 1, 1, 4));
}

// Steps on a virtual GPU whose streams fall behind one another, with more than a segment's nodes.
TEST(Segments, ReplayWhatRunsNodeByNode) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Graph graph;
    const Scope s = Scope(graph).device("/gpu:0");
    const Output x = placeholder(s, DType::f32, {3});
    const Variable v(s.named("v"), constant(s, Tensor::of<float>({3}, {1, 2, 3})));
    Output y = x;
    for (int i = 0; i < 5; ++i) y = add(s, mul(s, y, constant(s, 0.5f)), v);
    const Output update = assign_add(s, v, y);
    SessionConfig config;
    config.virtual_gpus = {{.total_bytes = std::int64_t{1} << 30, .delay_seed = seed}};
    Session session(graph, config);
    session.run(v.initializer());
    std::vector<float> expected = {1, 2, 3};
    for (int step = 0; step < 6; ++step) {
      const Tensor fed = Tensor::of<float>({3}, {0, static_cast<float>(step), 8});
      const Tensor fetched = session.run(update, {{x, fed}});
      for (std::size_t k = 0; k < 3; ++k) {
        float sum = fed.span<float>()[k];
        for (int i = 0; i < 5; ++i) sum = sum * 0.5f + expected[k];
        expected[k] += sum;
        ASSERT_EQ(fetched.span<float>()[k], expected[k]) << "step " << step << ", seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace kolo
