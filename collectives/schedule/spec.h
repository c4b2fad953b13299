// What a schedule is made of: the gradients that are reduced, the rows that are gathered, the parts that each
// rank updates, and what of all that must be the same on all ranks.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kolo/collectives/engine/process_set.h>
#include <kolo/collectives/reduce/reduction.h>
#include <kolo/collectives/schedule/bucket.h>

namespace kolo {

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
  // Further named values that must agree on all ranks.
  std::vector<std::pair<std::string, std::string>> options = {};
  ProcessSet process_set = {};  // the ranks that share the schedule
};

}  // namespace kolo
