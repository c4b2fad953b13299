// The optimizers' rules over ranges of elements, in the widest vectors of the processor. Each rule reads and
// writes its arrays once: memory is the cost, not arithmetic.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <variant>

#include <kolo/core/kernels/elements/update_rules.h>

namespace kolo::detail {

template <typename T>
using UpdateRule = typename elements::UpdateRules<T>::template As<std::variant>;

inline constexpr int kMaxSlots = 3;
inline constexpr int kMaxGradients = 3;

/// `count` elements of a variable, of its slots in the order in which the rule names them, of its gradient.
/// That is (g0 + g1 + …) ÷ divisor, for one to three `gradients`, whose elements are added from left to
/// right; of two the divisor is 1 or 2.
template <typename T>
struct UpdatedRange {
  T* v = nullptr;
  std::array<T*, kMaxSlots> slots{};
  std::array<const T*, kMaxGradients> gradients{};
  int num_gradients = 1;
  T divisor = 1;
  std::int64_t count = 0;

  /// Elements [first, first + n), without gradients.
  UpdatedRange part(std::int64_t first, std::int64_t n) const {
    UpdatedRange range = *this;
    range.v += first;
    for (T*& slot : range.slots)
      if (slot != nullptr) slot += first;
    range.gradients = {};
    range.num_gradients = 0;
    range.count = n;
    return range;
  }
};

/// Applies the rule to all ranges, on as many threads as a kernel may use: each takes an equal part of the
/// elements, whichever ranges they are in. Ranges must not overlap.
void apply_rule(const UpdateRule<float>& rule, std::span<const UpdatedRange<float>> ranges);
void apply_rule(const UpdateRule<double>& rule, std::span<const UpdatedRange<double>> ranges);

}  // namespace kolo::detail
