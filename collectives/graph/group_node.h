// What a GroupAllReduce or AllReduce node of the user's graph says about its schedule.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <kolo/collectives/schedule/spec.h>
#include <kolo/core/graph/node.h>

namespace kolo::detail {

inline constexpr char kGroupAllReduceOp[] = "GroupAllReduce";
inline constexpr char kAllReduceOp[] = "AllReduce";

/// Throws InvalidArgumentError where `factor` cannot split the division of `op`.
void check_predivision(double factor, ReduceOp op);
int num_slices(const Node& group);
/// Of the inputs, those before the slices.
int num_gradients(const Node& group);
/// The group of each gradient, −1 where it has none.
std::vector<std::int64_t> groups_of(const Node& group);
/// Inputs in the order in which the backward pass makes them, that of their nodes' creation, but for those
/// that come last.
std::vector<int> backward_order(const Node& group);
/// What they are, in that order.
std::vector<GradientSpec> gradient_specs(const Node& group);
/// As the node says, else as init() found.
BucketLimits limits_of_buckets(const Node& group);

}  // namespace kolo::detail
