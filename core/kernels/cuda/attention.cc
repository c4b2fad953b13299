#include <cmath>

#include <kolo/core/kernels/cuda/cuda_kernel.h>
#include <kolo/core/kernels/cuda/launch_attention.h>

namespace kolo::cuda {
namespace {

AttentionShape shape_of(const KernelInit& init) {
  const Shape& qkv = init.input_shape(0);
  const auto heads = init.attr<std::int64_t>("heads");
  const std::int64_t size = qkv.dim(2) / (3 * heads);
  return {.batch = qkv.dim(0),
          .places = qkv.dim(1),
          .heads = heads,
          .size = size,
          .causal = init.attr<bool>("causal"),
          .scale = static_cast<float>(1 / std::sqrt(static_cast<double>(size)))};
}

class AttentionKernel final : public Kernel {
 public:
  explicit AttentionKernel(KernelInit& init) : of_(shape_of(init)) {}
  void compute(KernelContext& context) override {
    const auto launch = of_.size <= kMostTiledSize ? launch_tiled_attention : launch_attention;
    check_cuda(launch(stream_of(context), {.of = of_,
                                           .qkv = context.input(0).data<float>(),
                                           .y = context.output(0).data<float>(),
                                           .log_sum = context.output(1).data<float>()}),
               "attention");
  }

 private:
  AttentionShape of_;
};

class AttentionGradKernel final : public Kernel {
 public:
  explicit AttentionGradKernel(KernelInit& init) : of_(shape_of(init)) {}
  void compute(KernelContext& context) override {
    const auto launch = of_.size <= kMostTiledSize ? launch_tiled_attention_grad : launch_attention_grad;
    check_cuda(launch(stream_of(context), {.of = of_,
                                           .qkv = context.input(0).data<float>(),
                                           .y = context.input(1).data<float>(),
                                           .log_sum = context.input(2).data<float>(),
                                           .dy = context.input(3).data<float>(),
                                           .dqkv = context.output(0).data<float>()}),
               "the gradient of attention");
  }

 private:
  AttentionShape of_;
};

const RegisterGpuKernel attention_kernels[] = {
    {"SelfAttention", {DType::f32}, planned<AttentionKernel>()},
    {"SelfAttentionGrad", {DType::f32}, planned<AttentionGradKernel>()},
};

}  // namespace
}  // namespace kolo::cuda
