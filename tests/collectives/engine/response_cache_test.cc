#include <kolo/collectives/engine/response_cache.h>

#include <gtest/gtest.h>

#include "simulated_negotiation.h"

namespace kolo::detail {
namespace {

TEST(ResponseCache, FindsANameWithTheSameRequestOnly) {
  ResponseCache cache(2);
  cache.insert(allreduce_request("a", {3}), {}, 1);
  EXPECT_EQ(cache.find(*allreduce_request("a", {3}), 0), 0);
  EXPECT_EQ(cache.find(*allreduce_request("a", {4}), 0), -1);
  EXPECT_EQ(cache.find(*allreduce_request("b", {3}), 0), -1);
}

TEST(ResponseCache, FindsOwnRowsByRank) {
  ResponseCache cache(2);
  cache.insert(request_of(OpKind::allgather, "a", {1, 3}), {1, 2}, 1);
  EXPECT_EQ(cache.find(*request_of(OpKind::allgather, "a", {2, 3}), 1), 0);
  EXPECT_EQ(cache.find(*request_of(OpKind::allgather, "a", {2, 3}), 0), -1);
}

TEST(ResponseCache, ThrowsOutTheNameThatWasExecutedLongestAgo) {
  ResponseCache cache(2);
  cache.insert(allreduce_request("a"), {}, 1);
  cache.insert(allreduce_request("b"), {}, 1);
  cache.touch(cache.find("a"));
  const int slot = cache.find("b");
  EXPECT_EQ(cache.slot_to_evict("c"), slot);
  cache.insert(allreduce_request("c"), {}, 5);
  EXPECT_EQ(cache.find("c"), slot);
  EXPECT_EQ(cache.entry(slot).changed, 5);
  EXPECT_EQ(cache.find("b"), -1);
}

TEST(ResponseCache, ReplacesANameInItsSlot) {
  ResponseCache cache(1);
  cache.insert(allreduce_request("a", {3}), {}, 1);
  EXPECT_EQ(cache.slot_to_evict("a"), -1);
  cache.insert(allreduce_request("a", {4}), {}, 2);
  EXPECT_EQ(cache.find(*allreduce_request("a", {4}), 0), 0);
}

TEST(ResponseCache, UsesAFreedSlotAgain) {
  ResponseCache cache(2);
  cache.insert(allreduce_request("a"), {}, 1);
  cache.insert(allreduce_request("b"), {}, 1);
  cache.erase("a", 2);
  EXPECT_FALSE(cache.has(0));
  EXPECT_EQ(cache.slot_to_evict("c"), -1);
  cache.insert(allreduce_request("c"), {}, 3);
  EXPECT_EQ(cache.find("c"), 0);
}

TEST(ResponseCache, KeepsNothingWithoutCapacity) {
  ResponseCache cache(0);
  EXPECT_EQ(cache.slot_to_evict("a"), -1);
  cache.insert(allreduce_request("a"), {}, 1);
  EXPECT_EQ(cache.find("a"), -1);
}

}  // namespace
}  // namespace kolo::detail
