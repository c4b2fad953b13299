#include <algorithm>
#include <cstdint>
#include <memory>

#include <kolo/core/kernels/cpu/dropout.h>
#include <kolo/core/kernels/elements/philox.h>
#include <kolo/core/kernels/elements/random.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/kernels/parallel.h>

namespace kolo {
namespace {

using elements::kPerBlock;

elements::Uniform uniform(const KernelInit& init) {
  return {init.attr<double>("low"), init.attr<double>("high")};
}
template <typename Distribution>
Distribution normal(const KernelInit& init) {
  return {init.attr<double>("mean"), init.attr<double>("stddev")};
}

// Element i of a call comes from block (position of the call) + i / kPerBlock, whichever thread makes it.
template <typename Distribution, typename T>
class RandomKernel final : public Kernel {
 public:
  explicit RandomKernel(const Distribution& distribution) : distribution_(distribution) {}
  void compute(KernelContext& context) override {
    const Tensor& out = context.output(0);
    const std::int64_t blocks = (out.elements() + kPerBlock<T> - 1) / kPerBlock<T>;
    const RandomState& state = context.random();
    const std::uint64_t first = context.random().reserve(static_cast<std::uint64_t>(blocks));
    const detail::PhiloxBlocks philox(state.seed(), state.op_seed());
    T* to = out.data<T>();
    parallel_for(blocks, 1024, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t block = begin; block < end; ++block) {
        T values[kPerBlock<T>];
        distribution_.fill(philox.block(first + static_cast<std::uint64_t>(block)), values);
        const std::int64_t at = block * kPerBlock<T>;
        std::copy_n(values, std::min<std::int64_t>(kPerBlock<T>, out.elements() - at), to + at);
      }
    });
  }

 private:
  Distribution distribution_;
};

template <typename T>
class GaussianNoise final : public Kernel {
 public:
  explicit GaussianNoise(const KernelInit& init) : noise_{0, init.attr<double>("stddev")} {}
  void compute(KernelContext& context) override {
    const T* x = context.input(0).data<T>();
    T* y = context.output(0).data<T>();
    const std::int64_t elements = context.input(0).elements();
    const std::int64_t blocks = (elements + kPerBlock<T> - 1) / kPerBlock<T>;
    RandomState& state = context.random();
    const std::uint64_t first = state.reserve(static_cast<std::uint64_t>(blocks));
    const detail::PhiloxBlocks philox(state.seed(), detail::dropout_seed(state.op_seed()));
    parallel_for(blocks, 1024, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t block = begin; block < end; ++block) {
        T values[kPerBlock<T>];
        noise_.fill(philox.block(first + static_cast<std::uint64_t>(block)), values);
        const std::int64_t at = block * kPerBlock<T>;
        const std::int64_t count = std::min<std::int64_t>(kPerBlock<T>, elements - at);
        for (std::int64_t i = 0; i < count; ++i) y[at + i] = x[at + i] + values[i];
      }
    });
  }

 private:
  elements::Normal noise_;
};

template <typename Distribution>
RegisterKernel kernel(const char* op, Distribution (*distribution)(const KernelInit& init)) {
  return RegisterKernel(op, "CPU", {DType::f32, DType::f64},
                        [distribution](KernelInit& init) -> std::unique_ptr<Kernel> {
                          if (init.output_dtype(0) == DType::f32)
                            return std::make_unique<RandomKernel<Distribution, float>>(distribution(init));
                          return std::make_unique<RandomKernel<Distribution, double>>(distribution(init));
                        });
}

const RegisterKernel random_kernels[] = {
    kernel("RandomUniform", uniform),
    kernel("RandomNormal", normal<elements::Normal>),
    kernel("TruncatedNormal", normal<elements::TruncatedNormal>),
    {"GaussianNoise", "CPU", {DType::f32}, make_kernel<GaussianNoise<float>>},
    {"GaussianNoise", "CPU", {DType::f64}, make_kernel<GaussianNoise<double>>},
};

}  // namespace

}  // namespace kolo
