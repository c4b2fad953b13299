#include <kolo/core/kernels/cuda/launch_layer_norm.h>

#include <algorithm>
#include <memory>

#include <kolo/core/kernels/cuda/cuda_kernel.h>
#include <kolo/core/ops/normalization.h>

namespace kolo::cuda {
namespace {

const float* input(const KernelContext& context, int i) { return context.input(i).data<float>(); }
float* output(const KernelContext& context, int i) { return context.output(i).data<float>(); }

// All dimensions but the last, and that.
struct RowSizes {
  std::int64_t rows = 1;
  std::int64_t width;
  explicit RowSizes(const Shape& x) : width(x.dim(-1)) {
    for (int axis = 0; axis + 1 < x.rank(); ++axis) rows *= x.dim(axis);
  }
};

class LayerNormKernel final : public Kernel {
 public:
  explicit LayerNormKernel(KernelInit& init)
      : sizes_(init.input_shape(0)),
        epsilon_(init.attr<double>("epsilon")),
        adds_(init.num_inputs() > 3),
        has_bias_(init.num_inputs() > 4) {}
  void compute(KernelContext& context) override {
    check_cuda(launch_layer_norm(stream_of(context), {.rows = sizes_.rows,
                                                      .width = sizes_.width,
                                                      .x = input(context, 0),
                                                      .scale = input(context, 1),
                                                      .offset = input(context, 2),
                                                      .y = output(context, 0),
                                                      .mean = output(context, 1),
                                                      .inverse = output(context, 2),
                                                      .epsilon = epsilon_,
                                                      .added = adds_ ? input(context, 3) : nullptr,
                                                      .bias = has_bias_ ? input(context, 4) : nullptr,
                                                      .sum = adds_ ? output(context, 3) : nullptr}),
               "layer_norm");
  }

 private:
  RowSizes sizes_;
  double epsilon_;
  bool adds_;
  bool has_bias_;
};

// Enough teams to keep today's GPUs busy; of more the sums of parts would be as much to move as the rows.
std::int64_t parts_of(const RowSizes& sizes) {
  constexpr std::int64_t kFewestRows = 8, kMostParts = 512;
  if (sizes.width <= kWidestHeldGradient)
    return std::clamp<std::int64_t>(sizes.rows / kFewestRows, 1, kMostParts);
  return std::clamp<std::int64_t>(sizes.rows / 32, 1, 128);
}

class LayerNormGradKernel final : public Kernel {
 public:
  explicit LayerNormGradKernel(KernelInit& init)
      : sizes_(init.input_shape(0)), parts_(parts_of(sizes_)), adds_(init.num_inputs() > 5) {
    init.request_scratch(static_cast<std::size_t>(2 * parts_ * sizes_.width) * sizeof(double));
  }
  void compute(KernelContext& context) override {
    check_cuda(
        launch_layer_norm_grad(stream_of(context), {.rows = sizes_.rows,
                                                    .width = sizes_.width,
                                                    .parts = parts_,
                                                    .x = input(context, 0),
                                                    .scale = input(context, 1),
                                                    .mean = input(context, 2),
                                                    .inverse = input(context, 3),
                                                    .dy = input(context, 4),
                                                    .dx = output(context, 0),
                                                    .dscale = output(context, 1),
                                                    .doffset = output(context, 2),
                                                    .partial = reinterpret_cast<double*>(context.scratch()),
                                                    .added = adds_ ? input(context, 5) : nullptr}),
        "the gradient of layer_norm");
  }

 private:
  RowSizes sizes_;
  std::int64_t parts_;  // runs of rows that are summed apart
  bool adds_;
};

const RegisterGpuKernel layer_norm_kernels[] = {
    {"LayerNorm", kReal, planned<LayerNormKernel>()},
    {"LayerNormGrad", kReal, planned<LayerNormGradKernel>()},
    {detail::kSumLayerNormOp, kReal, planned<LayerNormKernel>()},
    {detail::kSumLayerNormGradOp, kReal, planned<LayerNormGradKernel>()},
};

}  // namespace
}  // namespace kolo::cuda
