#include <algorithm>
#include <memory>

#include <kolo/core/kernels/cuda/cuda_kernel.h>
#include <kolo/core/kernels/cuda/launch_normalization.h>

namespace kolo::cuda {
namespace {

// So many warps keep today's GPUs busy; in parts shorter than this there is less to add than to divide up. A
// warp reads 32 elements at a time and waits for each: with parts of 1024 a sum of ResNet-50's took 24 µs on
// an H100.
constexpr std::int64_t kWarps = 8192, kShortestPart = 256;

Channels channels_of(const Shape& x) {
  Channels of{.batch = x.dim(0), .channels = x.dim(1), .inner = 1, .parts = 1};
  for (int axis = 2; axis < x.rank(); ++axis) of.inner *= x.dim(axis);
  const std::int64_t most = std::max<std::int64_t>(1, of.batch * of.inner / kShortestPart);
  of.parts = std::clamp<std::int64_t>(kWarps / std::max<std::int64_t>(1, of.channels), 1, most);
  return of;
}
std::size_t partial_bytes(const Channels& of) {
  return static_cast<std::size_t>(2 * of.channels * of.parts) * sizeof(double);
}

const float* in(const KernelContext& context, int i) { return context.input(i).data<float>(); }
float* out(const KernelContext& context, int i) { return context.output(i).data<float>(); }

class BatchNormKernel final : public Kernel {
 public:
  explicit BatchNormKernel(KernelInit& init)
      : of_(channels_of(init.input_shape(0))),
        epsilon_(init.attr<double>("epsilon")),
        momentum_(init.attr<double>("momentum")) {
    init.request_scratch(partial_bytes(of_));
  }
  void compute(KernelContext& context) override {
    check_cuda(
        launch_batch_norm(stream_of(context), {.of = of_,
                                               .x = in(context, 0),
                                               .scale = in(context, 1),
                                               .offset = in(context, 2),
                                               .moving_mean = in(context, 3),
                                               .moving_variance = in(context, 4),
                                               .y = out(context, 0),
                                               .mean = out(context, 1),
                                               .variance = out(context, 2),
                                               .new_moving_mean = out(context, 3),
                                               .new_moving_variance = out(context, 4),
                                               .epsilon = epsilon_,
                                               .momentum = momentum_,
                                               .partial = reinterpret_cast<double*>(context.scratch())}),
        "batch_norm");
  }

 private:
  Channels of_;
  double epsilon_;
  double momentum_;
};

class BatchNormGradKernel final : public Kernel {
 public:
  explicit BatchNormGradKernel(KernelInit& init)
      : of_(channels_of(init.input_shape(0))), epsilon_(init.attr<double>("epsilon")) {
    init.request_scratch(partial_bytes(of_) + static_cast<std::size_t>(3 * of_.channels) * sizeof(float));
  }
  void compute(KernelContext& context) override {
    check_cuda(launch_batch_norm_grad(
                   stream_of(context),
                   {.of = of_,
                    .x = in(context, 0),
                    .scale = in(context, 1),
                    .mean = in(context, 2),
                    .variance = in(context, 3),
                    .dy = in(context, 4),
                    .dx = out(context, 0),
                    .dscale = out(context, 1),
                    .doffset = out(context, 2),
                    .epsilon = epsilon_,
                    .partial = reinterpret_cast<double*>(context.scratch()),
                    .coefficients = reinterpret_cast<float*>(context.scratch() + partial_bytes(of_))}),
               "the gradient of batch_norm");
  }

 private:
  Channels of_;
  double epsilon_;
};

class BatchNormInferenceKernel final : public Kernel {
 public:
  explicit BatchNormInferenceKernel(KernelInit& init)
      : of_(channels_of(init.input_shape(0))), epsilon_(init.attr<double>("epsilon")) {}
  void compute(KernelContext& context) override {
    check_cuda(launch_batch_norm_inference(stream_of(context), {.of = of_,
                                                                .x = in(context, 0),
                                                                .scale = in(context, 1),
                                                                .offset = in(context, 2),
                                                                .mean = in(context, 3),
                                                                .variance = in(context, 4),
                                                                .y = out(context, 0),
                                                                .epsilon = epsilon_}),
               "batch_norm_inference");
  }

 private:
  Channels of_;
  double epsilon_;
};

const RegisterGpuKernel normalization_kernels[] = {
    {"BatchNorm", kReal, planned<BatchNormKernel>()},
    {"BatchNormGrad", kReal, planned<BatchNormGradKernel>()},
    {"BatchNormInference", kReal, planned<BatchNormInferenceKernel>()},
};

}  // namespace
}  // namespace kolo::cuda
