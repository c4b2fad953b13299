// Groups gradients into the pieces of memory that are reduced at once, and divides these among ranks that
// each update a part of the variables.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <kolo/collectives/engine/options.h>
#include <kolo/core/tensor/dtype.h>
#include <kolo/core/tensor/shape.h>

namespace kolo {

struct GradientSpec {
  std::string name;
  Shape shape;  // fully known
  DType dtype = DType::f32;
  int group = -1;  // those of one group, 0 or more, stand one behind the other and share a bucket
};

/// Upper bounds in bytes.
struct BucketLimits {
  std::int64_t first_bytes = EngineOptions::kFirstBucketBytes;
  std::int64_t bytes = EngineOptions::kBucketBytes;
};

/// Bytes after which waiting for more gradients costs more than it saves: a reduction begins in 10 to 50 µs,
/// and 1 MiB takes 100 µs and more.
inline constexpr std::int64_t kWorthSending = std::int64_t{1} << 20;

struct Bucket {
  DType dtype = DType::f32;
  std::vector<int> gradients;         // consecutive indices
  std::vector<std::int64_t> offsets;  // of each, in bytes, multiples of kAlignment
  std::int64_t bytes = 0;             // of all, a multiple of kAlignment
};

/// Gradients in the order in which the backward pass makes them, the last layer's first → buckets in the
/// order in which they are reduced. A bucket closes before a gradient that would exceed its limit or has
/// another type (a gradient larger than the limit is a bucket by itself), after one of at least a quarter of
/// the limit, and when it holds kWorthSending: that much takes far longer to send than a reduction takes to
/// begin, so it leaves while the rest is computed (LeNet's 12 MB dense gradient does not wait for the
/// convolutions). A group has a bucket of its own, whatever the limits, or one for each type. Depends on
/// nothing else, so all ranks find the same.
std::vector<Bucket> make_buckets(std::span<const GradientSpec> gradients, const BucketLimits& limits);

/// The elements [first, first + count) of a tensor, row-major; perhaps none.
struct OwnedPart {
  std::int64_t first = 0;
  std::int64_t count = 0;
  bool operator==(const OwnedPart&) const = default;
};

/// Elements of each rank's range of a bucket, in the order of the ranks: whole pieces of kAlignment bytes, as
/// even as these allow. Together they are the bucket's; some may be empty.
std::vector<std::int64_t> shard_counts(const Bucket& bucket, int ranks);
/// What `rank` owns of each gradient of a bucket, in the bucket's order. gradients: those that the buckets
/// were made of.
std::vector<OwnedPart> owned_parts(const Bucket& bucket, const std::vector<GradientSpec>& gradients, int rank,
                                   int ranks);

}  // namespace kolo
