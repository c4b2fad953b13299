#include <kolo/core/kernels/cpu/loops/peak_loops.h>

#include <kolo/core/kernels/cpu/loops/each_target-inl.h>

HWY_BEFORE_NAMESPACE();
namespace kolo::detail::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::ScalableTag<float>;

// Two units times a latency of 5 cycles at most.
constexpr int kChains = 12;

// Written out: an array of vectors would be kept in memory. All start elsewhere: equal ones would be one.
double chains(std::int64_t rounds, float* sink) {
  const Floats d;
  const auto factor = hn::Set(d, 0.999f), more = hn::Set(d, 0.001f);
  auto a = hn::Set(d, 1.0f), b = hn::Set(d, 2.0f), c = hn::Set(d, 3.0f), e = hn::Set(d, 4.0f),
       f = hn::Set(d, 5.0f), g = hn::Set(d, 6.0f), h = hn::Set(d, 7.0f), i = hn::Set(d, 8.0f),
       j = hn::Set(d, 9.0f), k = hn::Set(d, 10.0f), l = hn::Set(d, 11.0f), m = hn::Set(d, 12.0f);
  for (std::int64_t round = 0; round < rounds; ++round) {
    a = hn::MulAdd(a, factor, more), b = hn::MulAdd(b, factor, more), c = hn::MulAdd(c, factor, more);
    e = hn::MulAdd(e, factor, more), f = hn::MulAdd(f, factor, more), g = hn::MulAdd(g, factor, more);
    h = hn::MulAdd(h, factor, more), i = hn::MulAdd(i, factor, more), j = hn::MulAdd(j, factor, more);
    k = hn::MulAdd(k, factor, more), l = hn::MulAdd(l, factor, more), m = hn::MulAdd(m, factor, more);
  }
  const auto all =
      hn::Add(hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, e)), hn::Add(hn::Add(f, g), hn::Add(h, i))),
              hn::Add(hn::Add(j, k), hn::Add(l, m)));
  *sink = hn::GetLane(hn::SumOfLanes(d, all));
  return 2.0 * kChains * static_cast<double>(hn::Lanes(d)) * static_cast<double>(rounds);
}

void triad_loop(float* a, const float* b, const float* c, float factor, std::int64_t count) {
  const Floats d;
  const auto by = hn::Set(d, factor);
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(hn::MulAdd(by, hn::LoadU(d, c + i), hn::LoadU(d, b + i)), d, a + i);
  for (; i < count; ++i) a[i] = b[i] + factor * c[i];
}

}  // namespace kolo::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kolo::detail {

HWY_EXPORT(chains);
HWY_EXPORT(triad_loop);

double multiply_adds(std::int64_t rounds, float* sink) { return HWY_DYNAMIC_DISPATCH(chains)(rounds, sink); }
void triad(float* a, const float* b, const float* c, float factor, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(triad_loop)(a, b, c, factor, count);
}
const char* instruction_set() {
  const std::int64_t supported = hwy::SupportedTargets() & HWY_TARGETS;
  return hwy::TargetName(supported & -supported);
}

}  // namespace kolo::detail
#endif
