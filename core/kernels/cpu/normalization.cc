#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include <kolo/core/kernels/cpu/loops/normalization_loops.h>
#include <kolo/core/kernels/cpu/moving_averages.h>
#include <kolo/core/kernels/cpu/onednn/onednn.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/kernels/parallel.h>

namespace kolo {
namespace {

// x seen as [batch, channels, inner].
struct ChannelView {
  std::int64_t batch;
  std::int64_t channels;
  std::int64_t inner;
  std::int64_t per_channel() const { return batch * inner; }
};

ChannelView channel_view_of(const Shape& x) {
  ChannelView view{x.dim(0), x.dim(1), 1};
  for (int axis = 2; axis < x.rank(); ++axis) view.inner *= x.dim(axis);
  return view;
}

// A channel at a time while its planes are in the cache.
template <typename Visit>
void for_planes(const ChannelView& view, std::int64_t c, const Visit& visit) {
  for (std::int64_t n = 0; n < view.batch; ++n) visit((n * view.channels + c) * view.inner);
}

template <typename T>
class PlaneBatchNorm final : public Kernel {
 public:
  explicit PlaneBatchNorm(const KernelInit& init)
      : epsilon_(init.attr<double>("epsilon")), momentum_(init.attr<double>("momentum")) {}

  void compute(KernelContext& context) override {
    const ChannelView view = channel_view_of(context.input(0).shape());
    const T *x = context.input(0).data<T>(), *scale = context.input(1).data<T>(),
            *offset = context.input(2).data<T>();
    T *y = context.output(0).data<T>(), *mean = context.output(1).data<T>(),
      *variance = context.output(2).data<T>();
    const double n = std::max<double>(1, static_cast<double>(view.per_channel()));
    parallel_for(view.channels, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t c = begin; c < end; ++c) {
        double sum = 0, squares = 0;
        for_planes(view, c, [&](std::int64_t at) { sum += loops_.sum(x + at, view.inner); });
        mean[c] = static_cast<T>(sum / n);
        for_planes(view, c, [&](std::int64_t at) { squares += loops_.squares(x + at, mean[c], view.inner); });
        variance[c] = static_cast<T>(squares / n);
        const T factor = static_cast<T>(scale[c] / std::sqrt(squares / n + epsilon_));
        for_planes(view, c, [&](std::int64_t at) {
          loops_.affine(x + at, mean[c], factor, offset[c], y + at, view.inner);
        });
      }
    });
    detail::move_averages<T>(context, view.per_channel(), momentum_);
  }

 private:
  const detail::NormalizationLoops<T>& loops_ = detail::normalization_loops<T>();
  double epsilon_;
  double momentum_;
};

// With r = 1 / √(variance + epsilon) and z = (x − mean) · r:
// doffset = Σ dy, dscale = Σ dy · z, dx = scale · r · (dy − doffset / n − z · dscale / n).
template <typename T>
class PlaneBatchNormGrad final : public Kernel {
 public:
  explicit PlaneBatchNormGrad(const KernelInit& init) : epsilon_(init.attr<double>("epsilon")) {}

  void compute(KernelContext& context) override {
    const ChannelView view = channel_view_of(context.input(0).shape());
    const T *x = context.input(0).data<T>(), *scale = context.input(1).data<T>(),
            *mean = context.input(2).data<T>(), *variance = context.input(3).data<T>(),
            *dy = context.input(4).data<T>();
    T *dx = context.output(0).data<T>(), *dscale = context.output(1).data<T>(),
      *doffset = context.output(2).data<T>();
    const double n = std::max<double>(1, static_cast<double>(view.per_channel()));
    parallel_for(view.channels, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t c = begin; c < end; ++c) {
        double sums[2] = {0, 0};
        for_planes(view, c, [&](std::int64_t at) {
          loops_.gradient_sums(dy + at, x + at, mean[c], view.inner, sums);
        });
        const double r = 1 / std::sqrt(variance[c] + epsilon_);
        doffset[c] = static_cast<T>(sums[0]);
        dscale[c] = static_cast<T>(sums[1] * r);
        const T factor = static_cast<T>(scale[c] * r), of_mean = static_cast<T>(sums[0] / n),
                of_x = static_cast<T>(sums[1] * r * r / n);
        for_planes(view, c, [&](std::int64_t at) {
          loops_.gradient(dy + at, x + at, mean[c], factor, of_mean, of_x, dx + at, view.inner);
        });
      }
    });
  }

 private:
  const detail::NormalizationLoops<T>& loops_ = detail::normalization_loops<T>();
  double epsilon_;
};

template <typename T>
class BatchNormInference final : public Kernel {
 public:
  explicit BatchNormInference(const KernelInit& init) : epsilon_(init.attr<double>("epsilon")) {}

  void compute(KernelContext& context) override {
    const ChannelView view = channel_view_of(context.input(0).shape());
    const T *x = context.input(0).data<T>(), *scale = context.input(1).data<T>(),
            *offset = context.input(2).data<T>(), *mean = context.input(3).data<T>(),
            *variance = context.input(4).data<T>();
    T* y = context.output(0).data<T>();
    const std::int64_t grain =
        std::max<std::int64_t>(1, kElementGrain / std::max<std::int64_t>(1, view.inner));
    parallel_for(view.batch * view.channels, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t plane = begin; plane < end; ++plane) {
        const std::int64_t c = plane % view.channels;
        const T factor = static_cast<T>(scale[c] / std::sqrt(variance[c] + epsilon_));
        loops_.affine(x + plane * view.inner, mean[c], factor, offset[c], y + plane * view.inner, view.inner);
      }
    });
  }

 private:
  const detail::NormalizationLoops<T>& loops_ = detail::normalization_loops<T>();
  double epsilon_;
};

// oneDNN is faster on small planes only, [N,C] above all: on row-major tensors it has no code of its own for
// the processor, and takes three to five times as long as the loops above.
constexpr std::int64_t kSmallPlane = 16;

std::unique_ptr<Kernel> decline_planes(KernelInit& init) {
  return init.decline("oneDNN: the plain loops are faster on large planes");
}
bool has_large_planes(const KernelInit& init) {
  const Shape& x = init.input_shape(0);
  return x.is_fully_known() && channel_view_of(x).inner >= kSmallPlane;
}

// oneDNN's view: four dimensions, for which it has most implementations.
struct OneDnnChannels {
  explicit OneDnnChannels(const Shape& x) {
    const ChannelView view = channel_view_of(x);
    data = detail::row_major(DType::f32, {view.batch, view.channels, view.inner, 1});
    channels = detail::row_major(DType::f32, {view.channels});
  }
  dnnl::memory::desc data;
  dnnl::memory::desc channels;
};

const auto kScaleAndShift = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;

using Forward = dnnl::batch_normalization_forward;
using Backward = dnnl::batch_normalization_backward;

Forward::desc forward_pass(const OneDnnChannels& view, const KernelInit& init) {
  return {dnnl::prop_kind::forward_training, view.data, static_cast<float>(init.attr<double>("epsilon")),
          kScaleAndShift};
}

class OneDnnBatchNorm final : public Kernel {
 public:
  OneDnnBatchNorm(detail::OneDnnCall call, double momentum) : call_(std::move(call)), momentum_(momentum) {}

  void compute(KernelContext& context) override {
    call_.run({context.input(0).raw(), context.input(1).raw(), context.input(2).raw(),
               context.output(0).raw(), context.output(1).raw(), context.output(2).raw()},
              context.scratch());
    detail::move_averages<float>(context, channel_view_of(context.input(0).shape()).per_channel(), momentum_);
  }

 private:
  detail::OneDnnCall call_;
  double momentum_;
};

std::optional<detail::OneDnnCall> plan_norm(const KernelInit& init) {
  const OneDnnChannels view(init.input_shape(0));
  const auto chosen = detail::fast_description<Forward::primitive_desc>(forward_pass(view, init));
  if (!chosen) return std::nullopt;
  return detail::OneDnnCall(Forward(chosen), chosen.scratchpad_desc(),
                            {{DNNL_ARG_SRC, view.data, view.data},
                             {DNNL_ARG_SCALE, view.channels, view.channels},
                             {DNNL_ARG_SHIFT, view.channels, view.channels}},
                            {{DNNL_ARG_DST, view.data, view.data},
                             {DNNL_ARG_MEAN, view.channels, view.channels},
                             {DNNL_ARG_VARIANCE, view.channels, view.channels}});
}

std::unique_ptr<Kernel> make_onednn_norm(KernelInit& init) {
  if (has_large_planes(init)) return decline_planes(init);
  return detail::make_kernel_around(init, plan_norm, [&](detail::OneDnnCall call) {
    return std::make_unique<OneDnnBatchNorm>(std::move(call), init.attr<double>("momentum"));
  });
}

std::optional<detail::OneDnnCall> plan_norm_gradient(const KernelInit& init) {
  const OneDnnChannels view(init.input_shape(0));
  const Backward::desc pass(dnnl::prop_kind::backward, view.data, view.data,
                            static_cast<float>(init.attr<double>("epsilon")), kScaleAndShift);
  const Forward::primitive_desc hint(forward_pass(view, init), detail::own_scratch(), detail::onednn_engine(),
                                     true);
  const auto chosen = detail::fast_description<Backward::primitive_desc>(pass, hint);
  if (!chosen) return std::nullopt;
  return detail::OneDnnCall(Backward(chosen), chosen.scratchpad_desc(),
                            {{DNNL_ARG_SRC, view.data, view.data},
                             {DNNL_ARG_SCALE, view.channels, view.channels},
                             {DNNL_ARG_SHIFT, view.channels, view.channels},
                             {DNNL_ARG_MEAN, view.channels, view.channels},
                             {DNNL_ARG_VARIANCE, view.channels, view.channels},
                             {DNNL_ARG_DIFF_DST, view.data, view.data}},
                            {{DNNL_ARG_DIFF_SRC, view.data, view.data},
                             {DNNL_ARG_DIFF_SCALE, view.channels, view.channels},
                             {DNNL_ARG_DIFF_SHIFT, view.channels, view.channels}});
}

std::unique_ptr<Kernel> make_onednn_norm_gradient(KernelInit& init) {
  if (has_large_planes(init)) return decline_planes(init);
  // This oneDNN wants an offset though the gradients do not depend on it: it is given the scale again.
  return detail::make_onednn_kernel(init, {0, 1, 1, 2, 3, 4}, plan_norm_gradient);
}

const RegisterKernel onednn("BatchNorm", "CPU", {DType::f32}, make_onednn_norm, 1);
const RegisterKernel planes_f32("BatchNorm", "CPU", {DType::f32}, make_kernel<PlaneBatchNorm<float>>);
const RegisterKernel planes_f64("BatchNorm", "CPU", {DType::f64}, make_kernel<PlaneBatchNorm<double>>);
const RegisterKernel onednn_grad("BatchNormGrad", "CPU", {DType::f32}, make_onednn_norm_gradient, 1);
const RegisterKernel planes_grad_f32("BatchNormGrad", "CPU", {DType::f32},
                                     make_kernel<PlaneBatchNormGrad<float>>);
const RegisterKernel planes_grad_f64("BatchNormGrad", "CPU", {DType::f64},
                                     make_kernel<PlaneBatchNormGrad<double>>);
const RegisterKernel inference_f32("BatchNormInference", "CPU", {DType::f32},
                                   make_kernel<BatchNormInference<float>>);
const RegisterKernel inference_f64("BatchNormInference", "CPU", {DType::f64},
                                   make_kernel<BatchNormInference<double>>);

}  // namespace

}  // namespace kolo
