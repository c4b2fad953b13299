// Updates of large matrices with gradients that are products of few rows. The gradient is made part by part,
// and each part is used while it is in the cache: no memory holds all of it.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <kolo/core/kernels/cpu/parallel.h>
#include <kolo/core/kernels/cpu/thin_gemm.h>
#include <kolo/core/kernels/cpu/update_kernel.h>
#include <kolo/core/ops/product_updates.h>

namespace kolo {
namespace {

using detail::ThinGemm;
using detail::UpdatedRange;

constexpr std::int64_t kPartBytes = 256 * 1024;  // the gradient's; the variable and its slots go by

// Behind the inputs of the rule: x [rows, inputs], dy [rows, outputs]; the gradient is xᵀ · dy.
class ProductUpdate final : public detail::UpdateKernel<float> {
 public:
  ProductUpdate(const UpdateRuleOps& rule, const ThinGemm& shape, KernelInit& init)
      : UpdateKernel<float>(rule, 1), shape_(shape), threads_(intra_op_threads()) {
    const auto row_bytes = shape.outputs * static_cast<std::int64_t>(sizeof(float));
    part_ = std::clamp(kPartBytes / row_bytes, std::int64_t{1}, shape.inputs);
    init.request_scratch(static_cast<std::size_t>(threads_ * floats_of_thread()) * sizeof(float));
  }

  void compute(KernelContext& context) override {
    const float* const x = context.input(behind_scalars()).data<float>();
    const float* const dy = context.input(behind_scalars() + 1).data<float>();
    const UpdatedRange<float> whole = range(context, 0);
    const detail::UpdateRule<float> rule_of_step = rule(context);
    auto* const scratch = reinterpret_cast<float*>(context.scratch());
    parallel_for(threads_, 1, [&](std::int64_t first_thread, std::int64_t end_thread) {
      const std::int64_t end = shape_.inputs * end_thread / threads_;
      float* const gradient = scratch + first_thread * floats_of_thread();
      for (std::int64_t row = shape_.inputs * first_thread / threads_; row < end; row += part_) {
        const std::int64_t rows = std::min(part_, end - row);
        make_part(x, dy, row, rows, gradient);
        const UpdatedRange<float> part =
            part_of(whole, row * shape_.outputs, rows * shape_.outputs, gradient);
        detail::apply_rule(rule_of_step, std::span<const UpdatedRange<float>>(&part, 1));
      }
    });
  }

 private:
  // A part of the gradient, and of x that it is made of.
  std::int64_t floats_of_thread() const {
    constexpr std::int64_t kCacheLine = 16;
    return (part_ * (shape_.outputs + shape_.rows) + kCacheLine - 1) / kCacheLine * kCacheLine;
  }

  void make_part(const float* x, const float* dy, std::int64_t first, std::int64_t rows,
                 float* gradient) const {
    float* const columns = gradient + part_ * shape_.outputs;
    for (std::int64_t i = 0; i < shape_.rows; ++i)
      std::copy_n(x + i * shape_.inputs + first, rows, columns + i * rows);
    ThinGemm{shape_.rows, rows, shape_.outputs}.weight_gradient(columns, dy, gradient, 0, rows);
  }

  static UpdatedRange<float> part_of(UpdatedRange<float> range, std::int64_t first, std::int64_t count,
                                     const float* gradient) {
    range.v += first;
    for (float*& slot : range.slots)
      if (slot != nullptr) slot += first;
    range.gradients[0] = gradient;
    range.count = count;
    return range;
  }

  ThinGemm shape_;
  std::int64_t threads_;
  std::int64_t part_ = 1;  // rows of the gradient
};

const std::vector<RegisterKernel> kernels = [] {
  std::vector<RegisterKernel> made;
  for (const UpdateRuleOps& rule : update_rules())
    made.emplace_back(
        product_update_op(rule), "CPU", std::vector<DType>{DType::f32},
        KernelFactory([&rule](KernelInit& init) -> std::unique_ptr<Kernel> {
          const Shape &x = init.input_shape(init.num_inputs() - 2),
                      &dy = init.input_shape(init.num_inputs() - 1);
          return std::make_unique<ProductUpdate>(rule, ThinGemm{x.dim(0), x.dim(1), dy.dim(1)}, init);
        }));
  return made;
}();

}  // namespace
}  // namespace kolo
