#include <kolo/core/kernels/cpu/loops/update_rules.h>

#include <algorithm>
#include <cmath>

#include <kolo/core/kernels/parallel.h>

#include <kolo/core/kernels/cpu/loops/each_target-inl.h>

HWY_BEFORE_NAMESPACE();
namespace kolo::detail::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// One vector of elements, the place of an update: reads the arrays of a range at position i, and writes them.
template <typename T, typename D, int kGradients, bool kDivides>
struct At {
  using V = hn::Vec<D>;
  const UpdatedRange<T>& range;
  D d;
  std::int64_t i;
  T divisor;  // range's, where no write can change it

  V gradient() const {
    V sum = hn::LoadU(d, range.gradients[0] + i);
    for (int k = 1; k < kGradients; ++k) sum = hn::Add(sum, hn::LoadU(d, range.gradients[k] + i));
    if constexpr (!kDivides) return sum;
    // By a power of two, where a product is as exact as a quotient.
    return kGradients == 2 ? hn::Mul(sum, all(T(1) / divisor)) : hn::Div(sum, all(divisor));
  }
  V v() const { return hn::LoadU(d, range.v + i); }
  V slot(int k) const { return hn::LoadU(d, range.slots[k] + i); }
  void set_v(V value) const { hn::StoreU(value, d, range.v + i); }
  void set_slot(int k, V value) const { hn::StoreU(value, d, range.slots[k] + i); }
  V all(T value) const { return hn::Set(d, value); }
};

template <typename T, typename Place>
void update(const elements::GradientDescentRule<T>& rule, const Place& at) {
  at.set_v(hn::Sub(at.v(), hn::Mul(at.gradient(), at.all(rule.rate))));
}

template <typename T, typename Place>
void update(const elements::MomentumRule<T>& rule, const Place& at) {
  const auto a = hn::Add(hn::Mul(at.slot(0), at.all(rule.momentum)), at.gradient());
  at.set_slot(0, a);
  at.set_v(hn::Sub(at.v(), hn::Mul(a, at.all(rule.rate))));
}

template <typename T, typename Place>
void update(const elements::NesterovRule<T>& rule, const Place& at) {
  const auto g = at.gradient(), momentum = at.all(rule.momentum), rate = at.all(rule.rate);
  const auto a = hn::Add(hn::Mul(at.slot(0), momentum), g);
  at.set_slot(0, a);
  at.set_v(hn::Sub(at.v(), hn::Add(hn::Mul(g, rate), hn::Mul(hn::Mul(a, momentum), rate))));
}

template <typename T, typename Place>
void update(const elements::AdagradRule<T>& rule, const Place& at) {
  const auto g = at.gradient();
  const auto a = hn::Add(at.slot(0), hn::Mul(g, g));
  at.set_slot(0, a);
  at.set_v(hn::Sub(at.v(), hn::Div(hn::Mul(g, at.all(rule.rate)), hn::Sqrt(a))));
}

template <typename T, typename Place>
void update(const elements::RmsPropRule<T>& rule, const Place& at) {
  const auto g = at.gradient();
  auto ms = at.slot(0);
  ms = hn::Add(ms, hn::Mul(hn::Sub(hn::Mul(g, g), ms), at.all(rule.one_minus_decay)));
  const auto step = hn::Div(hn::Mul(g, at.all(rule.rate)), hn::Sqrt(hn::Add(ms, at.all(rule.epsilon))));
  const auto mom = hn::Add(hn::Mul(at.slot(1), at.all(rule.momentum)), step);
  at.set_slot(0, ms);
  at.set_slot(1, mom);
  at.set_v(hn::Sub(at.v(), mom));
}

template <typename T, typename Place>
void update(const elements::CenteredRmsPropRule<T>& rule, const Place& at) {
  const auto g = at.gradient(), part = at.all(rule.one_minus_decay);
  auto ms = at.slot(0), mg = at.slot(1);
  ms = hn::Add(ms, hn::Mul(hn::Sub(hn::Mul(g, g), ms), part));
  mg = hn::Add(mg, hn::Mul(hn::Sub(g, mg), part));
  const auto variance = hn::Add(hn::Sub(ms, hn::Mul(mg, mg)), at.all(rule.epsilon));
  const auto step = hn::Div(hn::Mul(g, at.all(rule.rate)), hn::Sqrt(variance));
  const auto mom = hn::Add(hn::Mul(at.slot(2), at.all(rule.momentum)), step);
  at.set_slot(0, ms);
  at.set_slot(1, mg);
  at.set_slot(2, mom);
  at.set_v(hn::Sub(at.v(), mom));
}

template <typename T, typename Place>
void update(const elements::AdamRule<T>& rule, const Place& at) {
  const auto g = at.gradient();
  auto v = at.v(), m = at.slot(0), w = at.slot(1);
  m = hn::Add(m, hn::Mul(hn::Sub(g, m), at.all(rule.one_minus_beta1)));
  w = hn::Add(w, hn::Mul(hn::Sub(hn::Mul(g, g), w), at.all(rule.one_minus_beta2)));
  at.set_slot(0, m);
  at.set_slot(1, w);
  if (rule.decay != 0) v = hn::Sub(v, hn::Mul(v, at.all(rule.decay)));
  const auto step = hn::Div(hn::Mul(m, at.all(rule.rate)), hn::Add(hn::Sqrt(w), at.all(rule.epsilon)));
  at.set_v(hn::Sub(v, step));
}

template <typename T, typename Place>
void update(const elements::AdadeltaRule<T>& rule, const Place& at) {
  const auto g = at.gradient(), rho = at.all(rule.rho), rest = at.all(rule.one_minus_rho);
  const auto epsilon = at.all(rule.epsilon), d = at.slot(1);
  const auto a = hn::Add(hn::Mul(at.slot(0), rho), hn::Mul(hn::Mul(g, g), rest));
  const auto u = hn::Mul(hn::Div(hn::Sqrt(hn::Add(d, epsilon)), hn::Sqrt(hn::Add(a, epsilon))), g);
  at.set_slot(0, a);
  at.set_slot(1, hn::Add(hn::Mul(d, rho), hn::Mul(hn::Mul(u, u), rest)));
  at.set_v(hn::Sub(at.v(), hn::Mul(u, at.all(rule.rate))));
}

template <typename T, typename D>
hn::Vec<D> power(D d, hn::Vec<D> x, T exponent) {
  if (exponent == T(0.5)) return hn::Sqrt(x);
  HWY_ALIGN T lanes[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(x, d, lanes);
  for (std::size_t k = 0; k < hn::Lanes(d); ++k) lanes[k] = std::pow(lanes[k], exponent);
  return hn::Load(d, lanes);
}

template <typename T, typename Place>
void update(const elements::FtrlRule<T>& rule, const Place& at) {
  const auto g = at.gradient(), a = at.slot(0), v = at.v(), rate = at.all(rule.rate), l1 = at.all(rule.l1);
  const auto n = hn::Add(a, hn::Mul(g, g));
  const auto new_power = power<T>(at.d, n, rule.power), old_power = power<T>(at.d, a, rule.power);
  const auto shrunk = hn::Add(g, hn::Mul(v, at.all(rule.two_shrinkage)));
  const auto back = hn::Mul(hn::Div(hn::Sub(new_power, old_power), rate), v);
  const auto z = hn::Add(at.slot(1), hn::Sub(shrunk, back));
  const auto root =
      hn::Div(hn::Sub(hn::CopySign(l1, z), z), hn::Add(hn::Div(new_power, rate), at.all(rule.two_l2)));
  at.set_slot(0, n);
  at.set_slot(1, z);
  at.set_v(hn::IfThenElseZero(hn::Gt(hn::Abs(z), l1), root));
}

// NaN stays NaN.
template <typename D, typename V = hn::Vec<D>>
V sign(D d, V x) {
  const auto zero = hn::Zero(d), one = hn::Set(d, 1);
  return hn::IfThenElse(hn::Gt(x, zero), one, hn::IfThenElse(hn::Lt(x, zero), hn::Neg(one), x));
}

template <typename T, typename Place>
void update(const elements::LionRule<T>& rule, const Place& at) {
  const auto g = at.gradient(), m = at.slot(0), v = at.v();
  const auto c = hn::Add(hn::Mul(m, at.all(rule.beta1)), hn::Mul(g, at.all(rule.one_minus_beta1)));
  const auto direction = hn::Add(sign(at.d, c), hn::Mul(v, at.all(rule.decay)));
  at.set_slot(0, hn::Add(hn::Mul(m, at.all(rule.beta2)), hn::Mul(g, at.all(rule.one_minus_beta2))));
  at.set_v(hn::Sub(v, hn::Mul(direction, at.all(rule.rate))));
}

template <typename T, int kGradients, bool kDivides>
struct Update {
  const UpdatedRange<T>& range;
  std::int64_t begin;
  std::int64_t end;

  template <typename Rule>
  void operator()(const Rule& rule) const {
    const hn::ScalableTag<T> vector;
    const hn::CappedTag<T, 1> single;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(vector));
    const T divisor = range.divisor;
    std::int64_t i = begin;
    for (; i + lanes <= end; i += lanes)
      update(rule, At<T, decltype(vector), kGradients, kDivides>{range, vector, i, divisor});
    for (; i < end; ++i)
      update(rule, At<T, decltype(single), kGradients, kDivides>{range, single, i, divisor});
  }
};

template <typename T>
void update_range(const UpdateRule<T>& rule, const UpdatedRange<T>& range, std::int64_t begin,
                  std::int64_t end) {
  static_assert(kMaxGradients == 3);
  switch (range.num_gradients) {
    case 1:
      return range.divisor == 1 ? std::visit(Update<T, 1, false>{range, begin, end}, rule)
                                : std::visit(Update<T, 1, true>{range, begin, end}, rule);
    case 2: return std::visit(Update<T, 2, true>{range, begin, end}, rule);
    default: return std::visit(Update<T, 3, true>{range, begin, end}, rule);
  }
}

void update_f32(const UpdateRule<float>& rule, const UpdatedRange<float>& range, std::int64_t begin,
                std::int64_t end) {
  update_range(rule, range, begin, end);
}
void update_f64(const UpdateRule<double>& rule, const UpdatedRange<double>& range, std::int64_t begin,
                std::int64_t end) {
  update_range(rule, range, begin, end);
}

}  // namespace kolo::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kolo::detail {
namespace {

HWY_EXPORT(update_f32);
HWY_EXPORT(update_f64);

// Calls update(range, begin, end) for the parts of the ranges that make up all elements.
template <typename T, typename Update>
void for_ranges(std::span<const UpdatedRange<T>> ranges, const Update& update) {
  std::int64_t total = 0;
  for (const UpdatedRange<T>& range : ranges) total += range.count;
  parallel_for(total, kElementGrain, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t first = 0;  // of the range, among all elements
    for (const UpdatedRange<T>& range : ranges) {
      if (first >= end) break;
      const std::int64_t from = std::max(begin - first, std::int64_t{0});
      const std::int64_t to = std::min(end - first, range.count);
      if (from < to) update(range, from, to);
      first += range.count;
    }
  });
}

}  // namespace

void apply_rule(const UpdateRule<float>& rule, std::span<const UpdatedRange<float>> ranges) {
  for_ranges(ranges, [&](const auto& range, std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(update_f32)(rule, range, begin, end);
  });
}

void apply_rule(const UpdateRule<double>& rule, std::span<const UpdatedRange<double>> ranges) {
  for_ranges(ranges, [&](const auto& range, std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(update_f64)(rule, range, begin, end);
  });
}

}  // namespace kolo::detail
#endif  // HWY_ONCE
