#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/kernels/cpu/loops/update_rules.h>
#include <kolo/core/kernels/cpu/update_kernel.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/kernels/parallel.h>
#include <kolo/core/kernels/row_numbers.h>
#include <kolo/core/ops/training.h>

namespace kolo {
namespace {

using detail::UpdatedRange;
using detail::UpdateKernel;

template <typename T>
class ApplyKernel final : public UpdateKernel<T> {
 public:
  ApplyKernel(const UpdateRuleOps& rule, int variables)
      : UpdateKernel<T>(rule, variables), ranges_(static_cast<std::size_t>(variables)) {}

  void compute(KernelContext& context) override {
    for (std::size_t i = 0; i < ranges_.size(); ++i) {
      const int index = static_cast<int>(i);
      ranges_[i] = this->range(context, index);
      ranges_[i].gradients[0] = context.input(this->behind_scalars() + index).template data<T>();
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
      range.gradients[0] = gradient + listed_[first].second * width;
      if (end > first + 1) range.gradients[0] = sum(first, end, gradient, width);
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
    return std::make_unique<ApplyKernel<T>>(rule, variables_updated(rule, init.num_inputs()));
  };
  const KernelFactory sparse = [&rule](KernelInit&) -> std::unique_ptr<Kernel> {
    return std::make_unique<SparseApplyKernel<T>>(rule);
  };
  kernels.emplace_back("Apply" + rule.name, "CPU", types, dense);
  kernels.emplace_back("FusedApply" + rule.name, "CPU", types, dense);
  if (rule.has_sparse) kernels.emplace_back("SparseApply" + rule.name, "CPU", types, sparse);
}

const std::vector<RegisterKernel> update_kernels = [] {
  std::vector<RegisterKernel> made;
  for (const UpdateRuleOps& rule : update_rules()) {
    add_kernels<float>(rule, made);
    add_kernels<double>(rule, made);
  }
  return made;
}();

}  // namespace

}  // namespace kolo
