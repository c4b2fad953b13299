// The optimizers' updates: one launch for all variables of a node.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/kernels/cuda/cuda_kernel.h>
#include <kolo/core/kernels/cuda/launch_updates.h>
#include <kolo/core/kernels/cuda/row_order.h>
#include <kolo/core/kernels/elements/update_rules.h>
#include <kolo/core/kernels/row_numbers.h>
#include <kolo/core/ops/training.h>

namespace kolo::cuda {
namespace {

using elements::UpdateRules;

// The inputs: all variables each with its slots, the scalars, all gradients. Apply ops have one variable, the
// ops that fuse_updates makes of them have more.
class ApplyKernel final : public Kernel {
 public:
  ApplyKernel(const KernelInit& init, const UpdateRuleOps& rule)
      : rule_(UpdateRules<float>::index(rule.name)),
        slots_(static_cast<int>(rule.slots.size())),
        scalars_(static_cast<int>(rule.scalars.size())),
        variables_(variables_updated(rule, init.num_inputs())) {
    if (slots_ > kMaxUpdateSlots || scalars_ > kMaxUpdateScalars)
      throw InternalError("Apply{} has {} slots and {} scalars; GPU kernels take {} and {}", rule.name,
                          slots_, scalars_, kMaxUpdateSlots, kMaxUpdateScalars);
  }

  // More variables than fit into a kernel's arguments take several launches.
  void compute(KernelContext& context) override {
    for (int first = 0; first < variables_; first += kMaxUpdateRanges)
      update(context, first, std::min(kMaxUpdateRanges, variables_ - first));
  }

 private:
  void update(const KernelContext& context, int first, int count) const {
    const int first_scalar = variables_ * (1 + slots_), first_gradient = first_scalar + scalars_;
    UpdateArguments arguments{.rule = rule_, .scalars = {}, .ranges = count, .range = {}};
    for (int k = 0; k < scalars_; ++k) arguments.scalars[k] = context.input(first_scalar + k).data<float>();
    for (int i = 0; i < count; ++i) {
      const int input = (first + i) * (1 + slots_);
      const Tensor& variable = context.variable(input).value;
      UpdateRange& range = arguments.range[i];
      range.variable = variable.data<float>();
      for (int k = 0; k < slots_; ++k) range.slots[k] = context.variable(input + 1 + k).value.data<float>();
      range.gradient = context.input(first_gradient + first + i).data<float>();
      range.elements = variable.elements();
    }
    check_cuda(launch_update(stream_of(context), arguments), "an update");
  }

  int rule_;  // its number in UpdateRules
  int slots_;
  int scalars_;
  int variables_;
};

// The inputs: the variable, its slots, the scalars, indices, gradients of the rows that they name.
class RowApplyKernel final : public Kernel, public DeferredCheck {
 public:
  RowApplyKernel(KernelInit& init, const UpdateRuleOps& rule)
      : rule_(UpdateRules<float>::index(rule.name)),
        slots_(static_cast<int>(rule.slots.size())),
        scalars_(static_cast<int>(rule.scalars.size())),
        rows_(init.input_shape(0).dim(0)),
        order_(init, count_of(init.input_shape(1 + slots_ + scalars_)), rows_),
        bad_(init) {}

  void compute(KernelContext& context) override {
    const Tensor& variable = context.variable(0).value;
    const int first_scalar = 1 + slots_, behind_scalars = first_scalar + scalars_;
    const Tensor& indices = context.input(behind_scalars);
    if (indices.elements() == 0 || variable.elements() == 0) return;
    RowUpdateArguments arguments{.rule = rule_,
                                 .scalars = {},
                                 .variable = variable.data<float>(),
                                 .slots = {},
                                 .gradients = context.input(behind_scalars + 1).data<float>(),
                                 .rows = {.outer = 1,
                                          .rows = rows_,
                                          .inner = variable.elements() / rows_,
                                          .indices = indices.raw(),
                                          .index_type = element_type(indices.dtype()),
                                          .count = indices.elements(),
                                          .bad = bad_.get()}};
    for (int k = 0; k < scalars_; ++k) arguments.scalars[k] = context.input(first_scalar + k).data<float>();
    for (int k = 0; k < slots_; ++k) arguments.slots[k] = context.variable(1 + k).value.data<float>();
    order_.sort(context, arguments.rows);
    check_cuda(launch_row_update(stream_of(context), arguments), "an update of rows");
  }

  void check() override {
    if (const auto bad = bad_.take()) detail::throw_no_such_row(bad->value(), bad->place(), rows_);
  }

 private:
  static std::int64_t count_of(const Shape& indices) {
    return indices.is_fully_known() ? indices.elements() : -1;
  }

  int rule_;  // its number in UpdateRules
  int slots_;
  int scalars_;
  std::int64_t rows_;
  RowOrder order_;
  BadValueWord bad_;
};

const std::vector<RegisterGpuKernel> update_kernels = [] {
  std::vector<RegisterGpuKernel> made;
  for (const UpdateRuleOps& rule : update_rules()) {
    if (UpdateRules<float>::index(rule.name) < 0) continue;
    const KernelFactory make = [&rule](KernelInit& init) -> std::unique_ptr<Kernel> {
      return std::make_unique<ApplyKernel>(init, rule);
    };
    made.emplace_back("Apply" + rule.name, std::vector<DType>{DType::f32}, make);
    made.emplace_back("FusedApply" + rule.name, std::vector<DType>{DType::f32}, make);
    if (!rule.has_sparse) continue;
    made.emplace_back("SparseApply" + rule.name, std::vector<DType>{DType::f32},
                      [&rule](KernelInit& init) -> std::unique_ptr<Kernel> {
                        return std::make_unique<RowApplyKernel>(init, rule);
                      });
  }
  return made;
}();

}  // namespace
}  // namespace kolo::cuda
