#include <kolo/collectives/algorithms/partial_results.h>

#include <kolo/collectives/reduce/reduce.h>

namespace kolo {

void PartialResults::combine(std::byte* dst, int dst_ranks, const std::byte* src, int src_ranks,
                             std::int64_t elements) const {
  if (!is_scaled()) return reduce(op_, dtype_, dst, src, elements);
  // Powers of two, so that the products are exact.
  const double both = scale(dst_ranks + src_ranks);
  reduce_scaled(dtype_, dst, static_cast<float>(scale(dst_ranks) / both), src,
                static_cast<float>(scale(src_ranks) / both), elements, 1);
}

void PartialResults::finish(std::byte* dst, int dst_ranks, const std::byte* src, int src_ranks,
                            std::int64_t elements) const {
  if (is_scaled())
    reduce_scaled(dtype_, dst, static_cast<float>(scale(dst_ranks)), src,
                  static_cast<float>(scale(src_ranks)), elements, static_cast<float>(divisor_));
  else if (divisor_ != 1) reduce_and_divide(dtype_, dst, src, elements, divisor_);
  else reduce(op_, dtype_, dst, src, elements);
}

}  // namespace kolo
