#include <kolo/core/kernels/cpu/loops/update_rules.h>

#include <algorithm>
#include <cmath>

#include <kolo/core/kernels/parallel.h>

#include <kolo/core/kernels/cpu/loops/each_target-inl.h>

#include <kolo/core/kernels/cpu/loops/lanes-inl.h>

HWY_BEFORE_NAMESPACE();
namespace kolo::elements::HWY_NAMESPACE {

#include <kolo/core/kernels/elements/update_formulas-inl.h>

}  // namespace kolo::elements::HWY_NAMESPACE
namespace kolo::detail::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The rule for the elements of a vector at position i.
template <int kGradients, bool kDivides, typename D, typename Rule, typename T = hn::TFromD<D>>
HWY_INLINE void update_at(D d, const Rule& rule, const UpdatedRange<T>& range, std::int64_t i, T divisor) {
  using Numbers = Lanes<D>;
  Numbers g = hn::LoadU(d, range.gradients[0] + i);
  for (int k = 1; k < kGradients; ++k) g += hn::LoadU(d, range.gradients[k] + i);
  // By a power of two, where a product is as exact as a quotient.
  if constexpr (kDivides) g = kGradients == 2 ? g * (T(1) / divisor) : g / divisor;
  Numbers v = hn::LoadU(d, range.v + i), slots[kMaxSlots];
  for (int k = 0; k < Rule::kSlots; ++k) slots[k] = hn::LoadU(d, range.slots[k] + i);
  elements::HWY_NAMESPACE::update(rule, v, slots, g);
  for (int k = 0; k < Rule::kSlots; ++k) hn::StoreU(slots[k].v, d, range.slots[k] + i);
  hn::StoreU(v.v, d, range.v + i);
}

template <typename T, int kGradients, bool kDivides>
struct Update {
  const UpdatedRange<T>& range;
  std::int64_t begin;
  std::int64_t end;

  template <typename Rule>
  void operator()(const Rule& given) const {
    const Rule rule = given;  // like the divisor where no write can change it
    const hn::ScalableTag<T> vector;
    const hn::CappedTag<T, 1> single;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(vector));
    const T divisor = range.divisor;
    std::int64_t i = begin;
    for (; i + lanes <= end; i += lanes) update_at<kGradients, kDivides>(vector, rule, range, i, divisor);
    for (; i < end; ++i) update_at<kGradients, kDivides>(single, rule, range, i, divisor);
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
