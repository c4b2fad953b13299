// Ops that draw random numbers. The host counts the blocks that they have used.
#include <kolo/core/kernels/cpu/dropout.h>
#include <kolo/core/kernels/cuda/cuda_kernel.h>
#include <kolo/core/kernels/cuda/launch_random.h>
#include <kolo/core/kernels/numbered_kernel.h>
#include <kolo/core/tensor/allocator.h>

namespace kolo::cuda {
namespace {

// Of the blocks that a step draws, the first lies in the GPU's memory where the work is kept.
class DrawingKernel : public NumberedKernel {
 public:
  DrawingKernel(const KernelInit& init, std::int64_t elements)
      : blocks_(static_cast<std::uint64_t>((elements + 3) / 4)),
        first_block_(gpu_of(init).allocator, sizeof(std::uint64_t)) {}

  void compute(KernelContext& context) final { compute_with(context, reserve(context)); }
  StepNumber next_number(KernelContext& context) final { return {word(), reserve(context)}; }
  void compute_by_number(KernelContext& context) final { draw(context, {.position_at = word()}); }
  void compute_with(KernelContext& context, std::uint64_t number) final {
    draw(context, {.position = number});
  }
  void put_numbers(KernelContext& context, std::span<const StepNumber> numbers) final {
    check_cuda(launch_numbers(stream_of(context), numbers), "numbers of a step");
  }

 protected:
  virtual void draw(KernelContext& context, RandomSequence of) = 0;

 private:
  std::uint64_t reserve(const KernelContext& context) const { return context.random().reserve(blocks_); }
  std::uint64_t* word() { return reinterpret_cast<std::uint64_t*>(first_block_.data()); }

  const std::uint64_t blocks_;
  Buffer first_block_;
};

class RandomKernel final : public DrawingKernel {
 public:
  RandomKernel(KernelInit& init, Distribution distribution, const char* first, const char* second)
      : DrawingKernel(init, init.output_shape(0).elements()),
        distribution_(distribution),
        first_(init.attr<double>(first)),
        second_(init.attr<double>(second)) {}

 private:
  void draw(KernelContext& context, RandomSequence of) override {
    of.seed = context.random().seed(), of.op_seed = context.random().op_seed();
    const Tensor& y = context.output(0);
    check_cuda(launch_random(stream_of(context), {.of = of,
                                                  .distribution = distribution_,
                                                  .first = first_,
                                                  .second = second_,
                                                  .y = y.data<float>(),
                                                  .elements = y.elements()}),
               "random numbers");
  }

  Distribution distribution_;
  double first_;
  double second_;
};

// What is made of x by numbers that ops on the same seed do not share.
RandomSequence of_layer(const RandomState& random, RandomSequence of) {
  of.seed = random.seed(), of.op_seed = detail::dropout_seed(random.op_seed());
  return of;
}

class NoiseKernel final : public DrawingKernel {
 public:
  explicit NoiseKernel(KernelInit& init)
      : DrawingKernel(init, init.input_shape(0).elements()), stddev_(init.attr<double>("stddev")) {}

 private:
  void draw(KernelContext& context, RandomSequence of) override {
    const Tensor& x = context.input(0);
    check_cuda(launch_noise(stream_of(context), {.of = of_layer(context.random(), of),
                                                 .stddev = stddev_,
                                                 .x = x.data<float>(),
                                                 .y = context.output(0).data<float>(),
                                                 .elements = x.elements()}),
               "noise");
  }

  double stddev_;
};

class DropoutKernel final : public DrawingKernel {
 public:
  explicit DropoutKernel(KernelInit& init)
      : DrawingKernel(init, init.input_shape(0).elements()), rate_(init.attr<double>("rate")) {}

 private:
  void draw(KernelContext& context, RandomSequence of) override {
    const Tensor& x = context.input(0);
    check_cuda(launch_dropout(stream_of(context), {.of = of_layer(context.random(), of),
                                                   .first_kept = detail::first_kept_word(rate_),
                                                   .scale = static_cast<float>(1 / (1 - rate_)),
                                                   .x = x.data<float>(),
                                                   .y = context.output(0).data<float>(),
                                                   .kept = context.output(1).data<std::uint8_t>(),
                                                   .elements = x.elements()}),
               "dropout");
  }

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
