// Ops that draw random numbers. The host counts the blocks that they have used.
#include <kolo/core/kernels/cpu/dropout.h>
#include <kolo/core/kernels/cuda/cuda_kernel.h>
#include <kolo/core/kernels/cuda/launch_random.h>

namespace kolo::cuda {
namespace {

RandomSequence next_blocks(const KernelContext& context, std::int64_t elements) {
  RandomState& state = context.random();
  return {.seed = state.seed(),
          .op_seed = state.op_seed(),
          .position = state.reserve(static_cast<std::uint64_t>((elements + 3) / 4))};
}

class RandomKernel final : public Kernel {
 public:
  RandomKernel(KernelInit& init, Distribution distribution, const char* first, const char* second)
      : distribution_(distribution), first_(init.attr<double>(first)), second_(init.attr<double>(second)) {}
  void compute(KernelContext& context) override {
    const Tensor& y = context.output(0);
    check_cuda(launch_random(stream_of(context), {.of = next_blocks(context, y.elements()),
                                                  .distribution = distribution_,
                                                  .first = first_,
                                                  .second = second_,
                                                  .y = y.data<float>(),
                                                  .elements = y.elements()}),
               "random numbers");
  }

 private:
  Distribution distribution_;
  double first_;
  double second_;
};

class NoiseKernel final : public Kernel {
 public:
  explicit NoiseKernel(KernelInit& init) : stddev_(init.attr<double>("stddev")) {}
  void compute(KernelContext& context) override {
    const Tensor& x = context.input(0);
    RandomSequence sequence = next_blocks(context, x.elements());
    sequence.op_seed = detail::dropout_seed(sequence.op_seed);
    check_cuda(launch_noise(stream_of(context), {.of = sequence,
                                                 .stddev = stddev_,
                                                 .x = x.data<float>(),
                                                 .y = context.output(0).data<float>(),
                                                 .elements = x.elements()}),
               "noise");
  }

 private:
  double stddev_;
};

class DropoutKernel final : public Kernel {
 public:
  explicit DropoutKernel(KernelInit& init) : rate_(init.attr<double>("rate")) {}
  void compute(KernelContext& context) override {
    const Tensor& x = context.input(0);
    RandomSequence sequence = next_blocks(context, x.elements());
    sequence.op_seed = detail::dropout_seed(sequence.op_seed);
    check_cuda(launch_dropout(stream_of(context), {.of = sequence,
                                                   .first_kept = detail::first_kept_word(rate_),
                                                   .scale = static_cast<float>(1 / (1 - rate_)),
                                                   .x = x.data<float>(),
                                                   .y = context.output(0).data<float>(),
                                                   .kept = context.output(1).data<std::uint8_t>(),
                                                   .elements = x.elements()}),
               "dropout");
  }

 private:
  double rate_;
};

class DropoutGradKernel final : public Kernel {
 public:
  explicit DropoutGradKernel(KernelInit& init)
      : scale_(static_cast<float>(1 / (1 - init.attr<double>("rate")))) {}
  void compute(KernelContext& context) override {
    check_cuda(launch_dropout_grad(stream_of(context), {.scale = scale_,
                                                        .dy = context.input(0).data<float>(),
                                                        .kept = context.input(1).data<std::uint8_t>(),
                                                        .dx = context.output(0).data<float>(),
                                                        .elements = context.output(0).elements()}),
               "the gradient of dropout");
  }

 private:
  float scale_;
};

const RegisterGpuKernel random_kernels[] = {
    {"RandomUniform", kReal, planned<RandomKernel>(Distribution::uniform, "low", "high")},
    {"RandomNormal", kReal, planned<RandomKernel>(Distribution::normal, "mean", "stddev")},
    {"TruncatedNormal", kReal, planned<RandomKernel>(Distribution::truncated_normal, "mean", "stddev")},
    {"GaussianNoise", kReal, planned<NoiseKernel>()},
    {"Dropout", kReal, planned<DropoutKernel>()},
    {"DropoutGrad", kReal, planned<DropoutGradKernel>()},
};

}  // namespace
}  // namespace kolo::cuda
