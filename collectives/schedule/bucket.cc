#include <kolo/collectives/schedule/bucket.h>

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

}  // namespace kolo
