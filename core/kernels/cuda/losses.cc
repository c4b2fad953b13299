#include <kolo/core/kernels/cuda/launch_losses.h>

#include <memory>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/kernels/cuda/cuda_kernel.h>
#include <kolo/core/ops/losses.h>

namespace kolo::cuda {
namespace {

Lines lines_of(const KernelInit& init) {
  const Shape& x = init.input_shape(0);
  auto axis = init.attr<std::int64_t>("axis");
  if (axis < 0) axis += x.rank();
  Lines lines{1, 1, 1};
  for (int i = 0; i < x.rank(); ++i)
    (i < axis ? lines.outer : i == axis ? lines.count : lines.inner) *= x.dim(i);
  return lines;
}

class SoftmaxKernel final : public Kernel {
 public:
  SoftmaxKernel(KernelInit& init, bool log) : log_(log), lines_(lines_of(init)) {}
  void compute(KernelContext& context) override {
    check_cuda(launch_softmax(stream_of(context), {.log = log_,
                                                   .x = context.input(0).data<float>(),
                                                   .y = context.output(0).data<float>(),
                                                   .lines = lines_}),
               "softmax");
  }

 private:
  bool log_;
  Lines lines_;
};

class SoftmaxGradKernel final : public Kernel {
 public:
  SoftmaxGradKernel(KernelInit& init, bool log) : log_(log), lines_(lines_of(init)) {}
  void compute(KernelContext& context) override {
    check_cuda(launch_softmax_grad(stream_of(context), {.log = log_,
                                                        .y = context.input(0).data<float>(),
                                                        .dy = context.input(1).data<float>(),
                                                        .dx = context.output(0).data<float>(),
                                                        .lines = lines_}),
               "the gradient of softmax");
  }

 private:
  bool log_;
  Lines lines_;
};

class CrossEntropyKernel final : public Kernel, public DeferredCheck {
 public:
  CrossEntropyKernel(KernelInit& init, bool scaled)
      : loss_(scaled ? 1 : 0),
        scale_(scaled ? static_cast<float>(init.attr<double>("scale")) : 1),
        label_type_(element_type(init.input_dtype(1))),
        rows_(init.input_shape(0).dim(0)),
        classes_(init.input_shape(0).dim(1)),
        bad_label_(init) {}
  void compute(KernelContext& context) override {
    check_cuda(launch_cross_entropy(stream_of(context), {.logits = context.input(0).data<float>(),
                                                         .labels = context.input(1).raw(),
                                                         .label_type = label_type_,
                                                         .loss = context.output(loss_).data<float>(),
                                                         .backprop = context.output(1 - loss_).data<float>(),
                                                         .scale = scale_,
                                                         .rows = rows_,
                                                         .classes = classes_,
                                                         .bad = bad_label_.get()}),
               "cross entropy");
  }
  void check() override {
    if (const auto bad = bad_label_.take())
      throw InvalidArgumentError(
          "Received a label value of {} which is outside the valid range of [0, {}): label {} of {}",
          bad->value(), classes_, bad->place(), rows_);
  }

 private:
  int loss_;  // the output
  float scale_;
  ElementType label_type_;
  std::int64_t rows_;
  std::int64_t classes_;
  BadValueWord bad_label_;
};

const RegisterGpuKernel loss_kernels[] = {
    {"Softmax", {DType::f32}, planned<SoftmaxKernel>(false)},
    {"LogSoftmax", {DType::f32}, planned<SoftmaxKernel>(true)},
    {"SoftmaxGrad", {DType::f32}, planned<SoftmaxGradKernel>(false)},
    {"LogSoftmaxGrad", {DType::f32}, planned<SoftmaxGradKernel>(true)},
    {"SparseSoftmaxCrossEntropyWithLogits", {DType::f32}, planned<CrossEntropyKernel>(false)},
    {detail::kScaledCrossEntropyOp, {DType::f32}, planned<CrossEntropyKernel>(true)},
};

}  // namespace
}  // namespace kolo::cuda
