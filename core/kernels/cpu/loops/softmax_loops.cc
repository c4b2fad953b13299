#include <kolo/core/kernels/cpu/loops/softmax_loops.h>

#include <algorithm>
#include <limits>

#include <kolo/core/kernels/cpu/loops/each_target-inl.h>

#include <kolo/core/kernels/cpu/loops/exponential-inl.h>

HWY_BEFORE_NAMESPACE();
namespace kolo::detail::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::ScalableTag<float>;
using V = hn::Vec<Floats>;
constexpr std::int64_t kMostLanes = hn::MaxLanes(Floats());

HWY_INLINE std::int64_t lanes_of() { return static_cast<std::int64_t>(hn::Lanes(Floats())); }

// The end of a row that is no full vector, filled up with `beyond`.
struct Rest {
  HWY_ALIGN float lanes[kMostLanes];
  HWY_INLINE Rest(const float* x, std::int64_t count, float beyond) {
    hn::Store(hn::Set(Floats(), beyond), Floats(), lanes);
    std::copy_n(x, count, lanes);
  }
  HWY_INLINE V vector() const { return hn::Load(Floats(), lanes); }
};
HWY_INLINE void store_rest(V values, float* to, std::int64_t count) {
  HWY_ALIGN float lanes[kMostLanes];
  hn::Store(values, Floats(), lanes);
  std::copy_n(lanes, count, to);
}

float largest(const float* x, std::int64_t count) {
  const Floats d;
  const std::int64_t lanes = lanes_of();
  constexpr float kLeast = -std::numeric_limits<float>::infinity();
  V most = hn::Set(d, kLeast);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) most = hn::Max(most, hn::LoadU(d, x + i));
  if (i < count) most = hn::Max(most, Rest(x + i, count - i, kLeast).vector());
  return hn::GetLane(hn::MaxOfLanes(d, most));
}

// Sums of 64 numbers a lane at most, and of those in double: a vocabulary has 10^5 numbers.
float exponentials(const float* x, float center, float* y, std::int64_t count) {
  const Floats d;
  const std::int64_t lanes = lanes_of(), piece = 64 * lanes;
  const V from = hn::Set(d, center);
  double total = 0;
  std::int64_t i = 0;
  while (i + lanes <= count) {
    V sum = hn::Zero(d);
    for (const std::int64_t end = std::min(i + piece, count); i + lanes <= end; i += lanes) {
      const V e = exponential(d, hn::Sub(hn::LoadU(d, x + i), from));
      sum = hn::Add(sum, e);
      hn::StoreU(e, d, y + i);
    }
    total += hn::GetLane(hn::SumOfLanes(d, sum));
  }
  if (i < count)
    store_rest(exponential(d, hn::Sub(Rest(x + i, count - i, center).vector(), from)), y + i, count - i);
  for (; i < count; ++i) total += y[i];
  return static_cast<float>(total);
}

float dot(const float* a, const float* b, std::int64_t count) {
  const Floats d;
  const std::int64_t lanes = lanes_of();
  V sum = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) sum = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), sum);
  if (i < count)
    sum = hn::MulAdd(Rest(a + i, count - i, 0).vector(), Rest(b + i, count - i, 0).vector(), sum);
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

void scale(float* y, float factor, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] *= factor;
}

void score_gradient(float* scores, float* dp, float log_sum, float mean, float factor, std::int64_t count) {
  const Floats d;
  const std::int64_t lanes = lanes_of();
  const V from = hn::Set(d, log_sum), center = hn::Set(d, mean), by = hn::Set(d, factor);
  const auto gradient = [&](V p, V of_p) { return hn::Mul(hn::Mul(p, by), hn::Sub(of_p, center)); };
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const V p = exponential(d, hn::Sub(hn::LoadU(d, scores + i), from));
    hn::StoreU(p, d, scores + i);
    hn::StoreU(gradient(p, hn::LoadU(d, dp + i)), d, dp + i);
  }
  if (i == count) return;
  const V p = exponential(d, hn::Sub(Rest(scores + i, count - i, 0).vector(), from));
  store_rest(p, scores + i, count - i);
  store_rest(gradient(p, Rest(dp + i, count - i, 0).vector()), dp + i, count - i);
}

SoftmaxLoops choose() { return {largest, exponentials, dot, scale, score_gradient}; }

}  // namespace kolo::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kolo::detail {

HWY_EXPORT(choose);

const SoftmaxLoops& softmax_loops() {
  static const SoftmaxLoops loops = HWY_DYNAMIC_DISPATCH(choose)();
  return loops;
}

}  // namespace kolo::detail
#endif
