#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/kernels/cpu/parallel.h>
#include <kolo/core/kernels/cpu/row_numbers.h>
#include <kolo/core/kernels/cpu/update_rules.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/ops/training.h>

namespace kolo {
namespace {

using detail::UpdatedRange;
using detail::UpdateRule;

template <typename T>
using MakeRule = UpdateRule<T> (*)(const T* scalars);

template <typename Rule, typename T>
UpdateRule<T> rule_of(const T* scalars) {
  return Rule::of(scalars);
}

template <typename T>
MakeRule<T> rule_maker(const std::string& name) {
  using namespace elements;
  static const std::map<std::string, MakeRule<T>> makers = {
      {"Adadelta", rule_of<AdadeltaRule<T>>},
      {"Adagrad", rule_of<AdagradRule<T>>},
      {"Adam", rule_of<AdamRule<T>>},
      {"AdamW", [](const T* scalars) -> UpdateRule<T> { return AdamRule<T>::with_decay(scalars); }},
      {"CenteredRMSProp", rule_of<CenteredRmsPropRule<T>>},
      {"Ftrl", rule_of<FtrlRule<T>>},
      {"GradientDescent", rule_of<GradientDescentRule<T>>},
      {"Lion", rule_of<LionRule<T>>},
      {"Momentum", rule_of<MomentumRule<T>>},
      {"Nesterov", rule_of<NesterovRule<T>>},
      {"RMSProp", rule_of<RmsPropRule<T>>},
  };
  return makers.at(name);
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

template <typename T>
class ApplyKernel final : public UpdateKernel<T> {
 public:
  ApplyKernel(const UpdateRuleOps& rule, int variables)
      : UpdateKernel<T>(rule, variables), ranges_(static_cast<std::size_t>(variables)) {}

  void compute(KernelContext& context) override {
    for (std::size_t i = 0; i < ranges_.size(); ++i) {
      const int index = static_cast<int>(i);
      ranges_[i] = this->range(context, index);
      ranges_[i].gradient = context.input(this->behind_scalars() + index).template data<T>();
    }
    detail::apply_rule(this->rule(context), std::span<const UpdatedRange<T>>(ranges_));
  }

 private:
  std::vector<UpdatedRange<T>> ranges_;
};

// The vectors keep their capacity from step to step.
template <typename T>
class SparseApplyKernel final : public UpdateKernel<T> {
 public:
  explicit SparseApplyKernel(const UpdateRuleOps& rule) : UpdateKernel<T>(rule, 1) {}

  void compute(KernelContext& context) override {
    const Tensor &v = context.variable(0).value, &indices = context.input(this->behind_scalars());
    const T* gradient = context.input(this->behind_scalars() + 1).template data<T>();
    const std::int64_t rows = v.shape().dim(0);
    detail::with_row_numbers(indices, rows, [&](const auto* numbers) {
      listed_.clear();
      for (std::int64_t i = 0; i < indices.elements(); ++i)
        listed_.emplace_back(static_cast<std::int64_t>(numbers[i]), i);
    });
    if (listed_.empty() || v.elements() == 0) return;
    std::sort(listed_.begin(), listed_.end());
    make_ranges(this->range(context, 0), gradient, v.elements() / rows);
    detail::apply_rule(this->rule(context), std::span<const UpdatedRange<T>>(ranges_));
  }

 private:
  // One range for each row that is listed; rows that are listed twice are summed in the order in which they
  // stand.
  void make_ranges(const UpdatedRange<T>& whole, const T* gradient, std::int64_t width) {
    ranges_.clear();
    sums_.resize(listed_.size() * static_cast<std::size_t>(width));
    for (std::size_t first = 0, end; first < listed_.size(); first = end) {
      const std::int64_t row = listed_[first].first;
      end = first + 1;
      while (end < listed_.size() && listed_[end].first == row) ++end;
      UpdatedRange<T> range = whole;
      range.count = width;
      range.v += row * width;
      for (T*& slot : range.slots)
        if (slot != nullptr) slot += row * width;
      range.gradient = gradient + listed_[first].second * width;
      if (end > first + 1) range.gradient = sum(first, end, gradient, width);
      ranges_.push_back(range);
    }
  }

  const T* sum(std::size_t first, std::size_t end, const T* gradient, std::int64_t width) {
    T* sum = sums_.data() + first * static_cast<std::size_t>(width);
    std::copy_n(gradient + listed_[first].second * width, width, sum);
    for (std::size_t i = first + 1; i < end; ++i)
      for (std::int64_t k = 0; k < width; ++k) sum[k] += gradient[listed_[i].second * width + k];
    return sum;
  }

  std::vector<std::pair<std::int64_t, std::int64_t>> listed_;  // row, place in the indices
  std::vector<UpdatedRange<T>> ranges_;
  std::vector<T> sums_;
};

template <typename T>
void add_kernels(const UpdateRuleOps& rule, std::vector<RegisterKernel>& kernels) {
  const std::vector<DType> types = {dtype_of<T>()};
  const KernelFactory dense = [&rule](KernelInit& init) -> std::unique_ptr<Kernel> {
    const auto slots = static_cast<int>(rule.slots.size()), scalars = static_cast<int>(rule.scalars.size());
    return std::make_unique<ApplyKernel<T>>(rule, (init.num_inputs() - scalars) / (2 + slots));
  };
  const KernelFactory sparse = [&rule](KernelInit&) -> std::unique_ptr<Kernel> {
    return std::make_unique<SparseApplyKernel<T>>(rule);
  };
  kernels.emplace_back("Apply" + rule.name, "CPU", types, dense);
  kernels.emplace_back("FusedApply" + rule.name, "CPU", types, dense);
  if (rule.has_sparse) kernels.emplace_back("SparseApply" + rule.name, "CPU", types, sparse);
}

const std::vector<RegisterKernel> kernels = [] {
  std::vector<RegisterKernel> made;
  for (const UpdateRuleOps& rule : update_rules()) {
    add_kernels<float>(rule, made);
    add_kernels<double>(rule, made);
  }
  return made;
}();

}  // namespace

}  // namespace kolo
