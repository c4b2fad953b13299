// What a schedule is made of: the gradients that are reduced, the rows that are gathered, the parts that each
// rank updates, and what of all that must be the same on all ranks.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kolo/collectives/engine/process_set.h>
#include <kolo/collectives/reduce/reduction.h>
#include <kolo/collectives/schedule/bucket.h>
#include <kolo/core/runtime/compare_ranks.h>

namespace kolo {

class Device;

/// Rows of a tensor: each rank gives those that it has, every rank gets all.
struct RowGatherSpec {
  std::string name;
  Shape dense_shape;  // of the whole tensor; fully known
  DType dtype = DType::f32;
  DType index_dtype = DType::i32;
};

/// Of one gradient where each rank updates a part of every bucket.
struct ShardSpec {
  bool part_only = true;          // a rank looks at nothing but its own part of the reduced gradient
  std::optional<DType> gathered;  // type of the variable of which the updated parts are gathered; none: it is
                                  // not
};

struct ScheduleSpec {
  std::string name;  // for messages; need not be the same on all ranks
  Reduction reduction = ReduceOp::average;
  std::vector<GradientSpec> gradients =
      {};  // in the order in which the backward pass makes them; floating types
  BucketLimits limits = {};
  std::vector<RowGatherSpec> gathers = {};  // come after all buckets
  // One for each gradient, or none. A bucket of gradients that are all part_only is reduce-scattered, others
  // are reduced as a whole. What is gathered comes after all buckets and gathers.
  std::vector<ShardSpec> shards = {};
  // One for each gradient, or none: whether this rank makes it as a product (factors.h). Need not be the same
  // on all ranks.
  std::vector<bool> products = {};
  detail::NamedTexts options = {};  // further values that must agree on all ranks
  ProcessSet process_set = {};      // the ranks that share the schedule
  // Of a training step: the GPUs of its session, which outlive the schedule; none where it computes on CPUs.
  std::optional<std::vector<Device*>> gpus = {};
};

namespace detail {

/// Gradients and what else stands in their order, by numbers: "gradient 3": `"fc1/w" [784,1024] float32`.
/// what: what they are called.
NamedTexts described(std::span<const GradientSpec> gradients, std::string_view what = "gradient");
/// All that must be the same on all ranks, gradients first.
NamedTexts described(const ScheduleSpec& spec);
/// `gradient 3 is "fc1/w" [784,1024] on rank 0 but "fc1/w" [784,1000] on rank 1`: types are named where only
/// they differ. ranks: the numbers by which ranks are called; none: 0, 1, 2, … .
std::string words_of(const RankDifference& difference, std::span<const int> ranks = {});

}  // namespace detail
}  // namespace kolo
