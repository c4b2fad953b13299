// What the kernels have in common that apply an optimizer's rule to variables.
#pragma once

#include <string>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/kernels/cpu/loops/update_rules.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/ops/training.h>

namespace kolo::detail {

template <typename T>
using MakeRule = UpdateRule<T> (*)(const T* scalars);

/// name: of a rule in elements::UpdateRules.
template <typename T>
MakeRule<T> rule_maker(const std::string& name) {
  using Rules = elements::UpdateRules<T>;
  MakeRule<T> maker = nullptr;
  Rules::at(Rules::index(name), [&](auto row) {
    maker = [](const T* scalars) -> UpdateRule<T> { return decltype(row)::type::of(scalars); };
  });
  if (maker == nullptr) throw InternalError("update rule {} has no formula", name);
  return maker;
}

// The inputs of `variables` updates by one rule: all variables each with its slots, the scalars, and what the
// op has behind them. Apply ops have one variable, the ops that fuse_updates makes of them have more.
template <typename T>
class UpdateKernel : public Kernel {
 public:
  UpdateKernel(const UpdateRuleOps& rule, int variables)
      : rule_(rule),
        make_rule_(rule_maker<T>(rule.name)),
        variables_(variables),
        scalars_(rule.scalars.size()) {}

 protected:
  int first_scalar() const { return variables_ * (1 + static_cast<int>(rule_.slots.size())); }
  int behind_scalars() const { return first_scalar() + static_cast<int>(scalars_.size()); }

  UpdateRule<T> rule(const KernelContext& context) {
    for (std::size_t k = 0; k < scalars_.size(); ++k)
      scalars_[k] = *context.input(first_scalar() + static_cast<int>(k)).template data<T>();
    return make_rule_(scalars_.data());
  }

  // Variable number i and its slots; no gradient yet.
  UpdatedRange<T> range(const KernelContext& context, int i) const {
    int input = i * (1 + static_cast<int>(rule_.slots.size()));
    const Tensor& v = context.variable(input).value;
    UpdatedRange<T> range{.v = v.data<T>(), .count = v.elements()};
    for (std::size_t k = 0; k < rule_.slots.size(); ++k)
      range.slots[k] = context.variable(++input).value.template data<T>();
    return range;
  }

 private:
  const UpdateRuleOps& rule_;
  MakeRule<T> make_rule_;
  int variables_;
  std::vector<T> scalars_;
};

}  // namespace kolo::detail
