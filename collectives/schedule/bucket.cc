#include <kolo/collectives/schedule/bucket.h>

#include <algorithm>

#include <kolo/core/tensor/allocator.h>

namespace kolo {

std::vector<Bucket> make_buckets(std::span<const GradientSpec> gradients, const BucketLimits& limits) {
  constexpr auto kAlign = static_cast<std::int64_t>(kAlignment);
  std::vector<Bucket> buckets;
  bool open = false;
  int group = -1;  // of the bucket that is open
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const auto& gradient = gradients[i];
    const std::int64_t bytes = gradient.shape.elements() * static_cast<std::int64_t>(size_of(gradient.dtype));
    const std::int64_t padded = (bytes + kAlign - 1) / kAlign * kAlign;
    if (open) {
      const std::int64_t limit = buckets.size() == 1 ? limits.first_bytes : limits.bytes;
      open = gradient.dtype == buckets.back().dtype && gradient.group == group &&
             (group >= 0 || buckets.back().bytes + padded <= limit);
    }
    group = gradient.group;
    if (!open) buckets.push_back({.dtype = gradient.dtype, .gradients = {}, .offsets = {}});
    Bucket& bucket = buckets.back();
    bucket.gradients.push_back(static_cast<int>(i));
    bucket.offsets.push_back(bucket.bytes);
    bucket.bytes += padded;
    const std::int64_t limit = buckets.size() == 1 ? limits.first_bytes : limits.bytes;
    open = group >= 0 || (bytes < limit / 4 && bucket.bytes < kWorthSending);
  }
  return buckets;
}

std::vector<std::int64_t> shard_counts(const Bucket& bucket, int ranks) {
  const auto piece = static_cast<std::int64_t>(kAlignment / size_of(bucket.dtype));
  const std::int64_t pieces = bucket.bytes / static_cast<std::int64_t>(kAlignment);
  std::vector<std::int64_t> counts;
  for (int rank = 0; rank < ranks; ++rank)
    counts.push_back((pieces / ranks + (rank < pieces % ranks ? 1 : 0)) * piece);
  return counts;
}

std::vector<OwnedPart> owned_parts(const Bucket& bucket, const std::vector<GradientSpec>& gradients, int rank,
                                   int ranks) {
  const auto counts = shard_counts(bucket, ranks);
  std::int64_t begin = 0;
  for (int before = 0; before < rank; ++before) begin += counts[before];
  const std::int64_t end = begin + counts[rank];
  std::vector<OwnedPart> parts;
  for (std::size_t k = 0; k < bucket.gradients.size(); ++k) {
    const std::int64_t offset = bucket.offsets[k] / static_cast<std::int64_t>(size_of(bucket.dtype));
    const std::int64_t elements = gradients[bucket.gradients[k]].shape.elements();
    const std::int64_t first = std::clamp<std::int64_t>(begin - offset, 0, elements);
    parts.push_back({first, std::clamp<std::int64_t>(end - offset, first, elements) - first});
  }
  return parts;
}

}  // namespace kolo
