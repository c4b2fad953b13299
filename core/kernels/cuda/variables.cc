#include <kolo/core/kernels/cuda/cuda_kernel.h>
#include <kolo/core/kernels/cuda/launch_elementwise.h>
#include <kolo/core/kernels/host_kernels.h>
#include <kolo/core/kernels/nothing.h>

namespace kolo::cuda {
namespace {

class AssignKernel final : public Kernel {
 public:
  explicit AssignKernel(KernelInit& init) : api_(gpu_of(init).api) {}
  void compute(KernelContext& context) override {
    check_assigned_shape(context);
    VariableStorage& variable = context.variable(0);
    copy_within(api_, context, context.input(1), variable.value);
    variable.initialized = true;  // whoever reads it does so behind the copy
  }

 private:
  const CudaApi& api_;
};

template <int kOp>
void assign_update(KernelContext& context) {
  check_assigned_shape(context);
  const Tensor& variable = context.variable(0).value;
  BinaryArguments arguments{.op = kOp,
                            .type = element_type(variable.dtype()),
                            .a = variable.raw(),
                            .b = context.input(1).raw(),
                            .y = variable.raw(),
                            .walk = {},
                            .elements = variable.elements()};
  detail::StridedIndex<2> index;
  index.push(arguments.elements, {1, 1});
  arguments.walk = walk_of(index);
  check_cuda(launch_binary(stream_of(context), arguments), "assign");
}

const std::vector<DType> kAdded = {DType::f32, DType::i64};

const RegisterGpuKernel variable_kernels[] = {
    // As TensorFlow 1 registers them: a whole number of 32 bits is a counter, which the host reads.
    {"Variable", {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i64}, nothing},
    {"VariablePart", {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i64}, nothing},
    {"Assign", {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i64}, make_kernel<AssignKernel>},
    {"AssignAdd", kAdded, assign_update<BinaryOps::index("Add")>},
    {"AssignSub", kAdded, assign_update<BinaryOps::index("Sub")>},
};

}  // namespace
}  // namespace kolo::cuda
