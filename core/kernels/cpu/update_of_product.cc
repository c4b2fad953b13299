// The kernels of updates whose gradient is a product that no memory holds.
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <kolo/core/kernels/cpu/gemm/thin_gemm.h>
#include <kolo/core/kernels/cpu/gemm/update_of_product.h>
#include <kolo/core/kernels/cpu/update_kernel.h>
#include <kolo/core/kernels/parallel.h>
#include <kolo/core/ops/update_of_product.h>

namespace kolo {
namespace {

using detail::ThinGemm;

// Behind the inputs of the rule: x [rows, inputs], dy [rows, outputs]; the gradient is xᵀ · dy.
class UpdateOfProductKernel final : public detail::UpdateKernel<float> {
 public:
  UpdateOfProductKernel(const UpdateRuleOps& rule, const ThinGemm& shape, KernelInit& init)
      : UpdateKernel<float>(rule, 1), update_(shape, 1, intra_op_threads()) {
    init.request_scratch(update_.scratch_bytes());
  }

  void compute(KernelContext& context) override {
    const detail::GradientFactors factors{context.input(behind_scalars()).data<float>(),
                                          context.input(behind_scalars() + 1).data<float>()};
    update_.run(rule(context), range(context, 0), std::span(&factors, 1),
                reinterpret_cast<float*>(context.scratch()));
  }

 private:
  const detail::UpdateOfProduct update_;
};

const std::vector<RegisterKernel> product_update_kernels = [] {
  std::vector<RegisterKernel> made;
  for (const UpdateRuleOps& rule : update_rules())
    made.emplace_back(
        update_of_product_op(rule), "CPU", std::vector<DType>{DType::f32},
        KernelFactory([&rule](KernelInit& init) -> std::unique_ptr<Kernel> {
          const Shape &x = init.input_shape(init.num_inputs() - 2),
                      &dy = init.input_shape(init.num_inputs() - 1);
          return std::make_unique<UpdateOfProductKernel>(rule, ThinGemm{x.dim(0), x.dim(1), dy.dim(1)}, init);
        }));
  return made;
}();

}  // namespace
}  // namespace kolo
