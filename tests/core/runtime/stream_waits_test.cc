#include <kolo/core/runtime/stream_waits.h>

#include <gmock/gmock.h>

namespace kolo {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Streams are told apart by their addresses alone.
const Stream* stream(int number) {
  return reinterpret_cast<const Stream*>(static_cast<std::intptr_t>(number));
}

OrderedNode on(int number, std::vector<int> before) {
  return {.before = std::move(before), .stream = stream(number), .runs_ahead = true};
}
OrderedNode on_host(std::vector<int> before) { return {.before = std::move(before)}; }
OrderedNode name_for(std::vector<int> before) { return {.before = std::move(before), .is_name = true}; }

std::vector<std::vector<int>> waits(std::vector<OrderedNode> nodes) {
  std::vector<std::vector<int>> ends;
  for (const StreamWaits& of_node : stream_waits(nodes)) ends.push_back(of_node.ends);
  return ends;
}

TEST(StreamWaits, JoinNodesOfDifferentStreams) {
  EXPECT_THAT(waits({on(1, {}), on(2, {0}), on(1, {1})}),
              ElementsAre(IsEmpty(), ElementsAre(0), ElementsAre(1)));
}

TEST(StreamWaits, AreNotNeededWithinAStream) { EXPECT_THAT(waits({on(1, {}), on(1, {0})})[1], IsEmpty()); }

TEST(StreamWaits, AreTheHostsOwnWhereItComesAfterAStream) {
  EXPECT_THAT(waits({on(1, {}), on_host({0}), on(2, {1})}), ElementsAre(IsEmpty(), IsEmpty(), IsEmpty()));
}

TEST(StreamWaits, AreNotNeededForANodeThatIsDoneWhenTheNextStarts) {
  OrderedNode waited = on(1, {});
  waited.runs_ahead = false;
  EXPECT_THAT(waits({waited, on(2, {0})})[1], IsEmpty());
}

TEST(StreamWaits, SeeThroughNames) {
  std::vector<OrderedNode> nodes = {on(1, {}), name_for({0}), name_for({1}), on(2, {2})};
  EXPECT_THAT(stream_waits(nodes)[3].ends, ElementsAre(0));
  EXPECT_THAT(nodes[3].before, ElementsAre(0));
}

TEST(StreamWaits, AreLeftOutWhereAnotherImpliesThem) {
  // 2 waits for 1, which stands behind 0 in its stream.
  EXPECT_THAT(waits({on(1, {}), on(1, {0}), on(2, {0, 1})})[2], ElementsAre(1));
  // 2 stands behind 1, which waits for 0.
  EXPECT_THAT(waits({on(1, {}), on(2, {0}), on(2, {0, 1})})[2], IsEmpty());
  // The host has waited for 0 before it comes to 2.
  EXPECT_THAT(waits({on(1, {}), on_host({0}), on(2, {0, 1})})[2], IsEmpty());
}

TEST(StreamWaits, StayWhereTheNodeBetweenMayBeSkipped) {
  OrderedNode between = on(2, {0});
  between.can_be_skipped = true;
  EXPECT_THAT(waits({on(1, {}), between, on(3, {0, 1})})[2], ElementsAre(0, 1));
  EXPECT_THAT(waits({on(1, {}), between, on(3, {1})})[2], ElementsAre(0, 1)) << "also without an edge";
}

TEST(StreamWaits, KnowTheFencesThatAreOverBefore) {
  OrderedNode fence = on_host({0}), beside = on_host({0});
  fence.is_fence = beside.is_fence = true;
  std::vector<OrderedNode> nodes = {on(1, {}), fence,         beside,    on_host({1}),
                                    on(3, {}), on(2, {3, 4}), on(2, {3})};
  const std::vector<StreamWaits> waits = stream_waits(nodes);
  EXPECT_THAT(waits[5].ends, ElementsAre(4));
  EXPECT_THAT(waits[5].fences, ElementsAre(1));
  EXPECT_THAT(waits[6].fences, IsEmpty()) << "it waits for no stream";
}

}  // namespace
}  // namespace kolo
