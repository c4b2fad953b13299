#include <kolo/core/kernels/cpu/detail/update_rules.h>

#include <kolo/core/kernels/cpu/parallel.h>

// Four sets are enough: SSE2, SSE4, AVX2 and AVX-512; the others would add compile time and no speed.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kolo/core/kernels/cpu/detail/update_rules.cc"
#include <hwy/foreach_target.h>
// Must follow foreach_target.h, which includes this file once for each instruction set.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace kolo::detail::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <typename T, typename D>
void update(const GradientDescentRule<T>& rule, D d, std::int64_t i) {
  const auto change = hn::Mul(hn::LoadU(d, rule.gradient + i), hn::Set(d, rule.rate));
  hn::StoreU(hn::Sub(hn::LoadU(d, rule.v + i), change), d, rule.v + i);
}

template <typename T, typename D>
void update(const MomentumRule<T>& rule, D d, std::int64_t i) {
  const auto g = hn::LoadU(d, rule.gradient + i);
  const auto momentum = hn::Set(d, rule.momentum);
  const auto rate = hn::Set(d, rule.rate);
  const auto a = hn::Add(hn::Mul(hn::LoadU(d, rule.a + i), momentum), g);
  hn::StoreU(a, d, rule.a + i);
  const auto change =
      rule.use_nesterov ? hn::Add(hn::Mul(g, rate), hn::Mul(hn::Mul(a, momentum), rate)) : hn::Mul(a, rate);
  hn::StoreU(hn::Sub(hn::LoadU(d, rule.v + i), change), d, rule.v + i);
}

template <typename T, typename D>
void update(const AdagradRule<T>& rule, D d, std::int64_t i) {
  const auto g = hn::LoadU(d, rule.gradient + i);
  const auto a = hn::Add(hn::LoadU(d, rule.a + i), hn::Mul(g, g));
  hn::StoreU(a, d, rule.a + i);
  const auto change = hn::Div(hn::Mul(g, hn::Set(d, rule.rate)), hn::Sqrt(a));
  hn::StoreU(hn::Sub(hn::LoadU(d, rule.v + i), change), d, rule.v + i);
}

template <typename T, typename D>
void update(const AdamRule<T>& rule, D d, std::int64_t i) {
  const auto g = hn::LoadU(d, rule.gradient + i);
  auto m = hn::LoadU(d, rule.m + i);
  auto w = hn::LoadU(d, rule.w + i);
  m = hn::Add(m, hn::Mul(hn::Sub(g, m), hn::Set(d, rule.one_minus_beta1)));
  w = hn::Add(w, hn::Mul(hn::Sub(hn::Mul(g, g), w), hn::Set(d, rule.one_minus_beta2)));
  hn::StoreU(m, d, rule.m + i);
  hn::StoreU(w, d, rule.w + i);
  const auto change =
      hn::Div(hn::Mul(m, hn::Set(d, rule.rate)), hn::Add(hn::Sqrt(w), hn::Set(d, rule.epsilon)));
  hn::StoreU(hn::Sub(hn::LoadU(d, rule.v + i), change), d, rule.v + i);
}

template <typename T>
struct Update {
  std::int64_t begin;
  std::int64_t end;

  template <typename Rule>
  void operator()(const Rule& rule) const {
    const hn::ScalableTag<T> vector;
    const hn::CappedTag<T, 1> single;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(vector));
    std::int64_t i = begin;
    for (; i + lanes <= end; i += lanes) update(rule, vector, i);
    for (; i < end; ++i) update(rule, single, i);
  }
};

void update_f32(const UpdateRule<float>& rule, std::int64_t begin, std::int64_t end) {
  std::visit(Update<float>{begin, end}, rule);
}
void update_f64(const UpdateRule<double>& rule, std::int64_t begin, std::int64_t end) {
  std::visit(Update<double>{begin, end}, rule);
}

}  // namespace kolo::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kolo::detail {
namespace {

HWY_EXPORT(update_f32);
HWY_EXPORT(update_f64);

// Below this a second thread costs more than it saves.
constexpr std::int64_t kElementsPerThread = 16384;

}  // namespace

void apply_rule(const UpdateRule<float>& rule, std::int64_t count) {
  parallel_for(count, kElementsPerThread, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(update_f32)(rule, begin, end);
  });
}

void apply_rule(const UpdateRule<double>& rule, std::int64_t count) {
  parallel_for(count, kElementsPerThread, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(update_f64)(rule, begin, end);
  });
}

}  // namespace kolo::detail
#endif  // HWY_ONCE
