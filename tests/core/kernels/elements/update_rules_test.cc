// The optimizers' rules: the formulas for one number, which GPUs run, against those for vectors.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <type_traits>
#include <vector>

#include <kolo/core/kernels/cpu/loops/update_rules.h>
#include <kolo/core/kernels/elements/update_rules.h>

#include "tests/core/kernels/elements/numbers.h"

namespace kolo::detail {
namespace {

// For the slots, whose roots the rules take.
template <typename T>
const std::array<std::vector<T>, kMaxSlots>& positive_numbers(std::size_t count) {
  static const auto made = [count] {
    std::array<std::vector<T>, kMaxSlots> slots;
    std::mt19937_64 random(7);
    std::uniform_real_distribution<double> positive(0, 2);
    for (std::vector<T>& slot : slots)
      for (std::size_t i = 0; i < count; ++i) slot.push_back(static_cast<T>(positive(random)));
    return slots;
  }();
  return made;
}

// The formula for a number against the one for vectors of the instruction set in use.
template <typename Rule, typename T>
void expect_updates_like(const Rule& rule, const char* name) {
  std::vector<T> v = pairs<T>().first, g = pairs<T>().second;
  const auto& slots = positive_numbers<T>(v.size());
  std::vector<T> cpu_v = v, cpu_slots[kMaxSlots] = {slots[0], slots[1], slots[2]};
  UpdatedRange<T> range{.v = cpu_v.data(),
                        .slots = {cpu_slots[0].data(), cpu_slots[1].data(), cpu_slots[2].data()},
                        .gradients = {g.data()},
                        .count = static_cast<std::int64_t>(v.size())};
  apply_rule(UpdateRule<T>(rule), std::span<const UpdatedRange<T>>(&range, 1));
  for (std::size_t i = 0; i < v.size(); ++i) {
    T own[kMaxSlots] = {slots[0][i], slots[1][i], slots[2][i]};
    const T before = v[i];
    update(rule, v[i], own, g[i]);
    bool same = same_bits(v[i], cpu_v[i]);
    for (int k = 0; k < Rule::kSlots; ++k) same &= same_bits(own[k], cpu_slots[k][i]);
    ASSERT_TRUE(same) << name << ": v " << before << ", g " << g[i] << " gives " << v[i] << ", on the CPU "
                      << cpu_v[i];
  }
}

template <typename T>
class UpdateRules : public ::testing::Test {};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(UpdateRules, Reals);

// Of one gradient and of several, whole or divided.
TYPED_TEST(UpdateRules, AddUpGradients) {
  using T = TypeParam;
  const T scalars[] = {T(0.05), T(0.9)};
  const auto rule = UpdateRule<T>(elements::MomentumRule<T>::of(scalars));
  const auto& [v, g] = pairs<T>();
  const auto count = static_cast<std::int64_t>(v.size());
  const auto updated = [&, &v = v, &g = g](std::array<const T*, kMaxGradients> gradients, int number,
                                           T divisor) {
    std::vector<T> updated_v = v, slot = g;
    const UpdatedRange<T> range{.v = updated_v.data(),
                                .slots = {slot.data()},
                                .gradients = gradients,
                                .num_gradients = number,
                                .divisor = divisor,
                                .count = count};
    apply_rule(rule, std::span<const UpdatedRange<T>>(&range, 1));
    return updated_v;
  };
  for (const int number : {1, 2, 3})
    for (const bool divides : {false, true}) {
      const T divisor = divides ? std::array<T, 3>{3, 2, 3}[static_cast<std::size_t>(number - 1)] : T(1);
      std::vector<T> sums;
      for (std::size_t i = 0; i < v.size(); ++i) {
        const T one = g[i], two = one + v[i];
        sums.push_back((number == 1 ? one : number == 2 ? two : two + g[i]) / divisor);
      }
      const auto expected = updated({sums.data()}, 1, 1),
                 found = updated({g.data(), v.data(), g.data()}, number, divisor);
      for (std::size_t i = 0; i < v.size(); ++i)
        ASSERT_TRUE(same_bits(expected[i], found[i])) << number << " of " << g[i] << ", " << v[i];
    }
}

TYPED_TEST(UpdateRules, GiveTheBitsOfOneNumberInEachInstructionSet) {
  using T = TypeParam;
  const T s[] = {T(0.05), T(0.9), T(0.3), T(0.01), T(-0.5)};
  const T adam[] = {T(0.9), T(0.999), T(0.01), T(0.9), T(0.999), T(1e-8), T(0.1)};
  // Each rule reads as many as it wants: Adam's begin with powers of the betas.
  elements::UpdateRules<T>::each([&](auto row) {
    using Rule = typename decltype(row)::type;
    const bool is_adam = std::is_base_of_v<elements::AdamRule<T>, Rule>;
    expect_updates_like<Rule, T>(Rule::of(is_adam ? adam : s), Rule::kName);
  });
  const T with_power[] = {T(0.05), T(0.9), T(0.3), T(0.01), T(-0.7)};  // Ftrl's, not a root
  expect_updates_like<elements::FtrlRule<T>, T>(elements::FtrlRule<T>::of(with_power), "ftrl");
}

}  // namespace
}  // namespace kolo::detail
