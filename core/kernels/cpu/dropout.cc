#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>

#include <kolo/core/kernels/cpu/parallel.h>
#include <kolo/core/kernels/cpu/philox.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo {
namespace {

// One word of a block of four for each element: element i of a call comes from block (position of the call) +
// i / 4, whichever thread makes it.
template <typename T>
class Dropout final : public Kernel {
 public:
  explicit Dropout(const KernelInit& init)
      : scale_(static_cast<T>(1 / (1 - init.attr<double>("rate")))),
        first_kept_(static_cast<std::uint64_t>(std::llround(std::ldexp(init.attr<double>("rate"), 32)))) {}

  void compute(KernelContext& context) override {
    const T* x = context.input(0).data<T>();
    T* y = context.output(0).data<T>();
    std::uint8_t* kept = context.output(1).data<std::uint8_t>();
    const std::int64_t elements = context.input(0).elements(), blocks = (elements + 3) / 4;
    const RandomState& state = context.random();
    const std::uint64_t first = context.random().reserve(static_cast<std::uint64_t>(blocks));
    const detail::PhiloxBlocks philox(state.seed(), state.op_seed());
    parallel_for(blocks, 1024, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t block = begin; block < end; ++block) {
        const auto words = philox.block(first + static_cast<std::uint64_t>(block));
        const std::int64_t last = std::min<std::int64_t>(4 * block + 4, elements);
        for (std::int64_t i = 4 * block; i < last; ++i) {
          kept[i] = words[static_cast<std::size_t>(i % 4)] >= first_kept_;
          y[i] = kept[i] != 0 ? x[i] * scale_ : T(0);
        }
      }
    });
  }

 private:
  T scale_;
  std::uint64_t first_kept_;  // a word from here on keeps its element; 2³² · rate
};

template <typename T>
class DropoutGrad final : public Kernel {
 public:
  explicit DropoutGrad(const KernelInit& init)
      : scale_(static_cast<T>(1 / (1 - init.attr<double>("rate")))) {}

  void compute(KernelContext& context) override {
    const T* dy = context.input(0).data<T>();
    const std::uint8_t* kept = context.input(1).data<std::uint8_t>();
    T* dx = context.output(0).data<T>();
    const T scale = scale_;
    parallel_for(context.output(0).elements(), kElementGrain, [&](std::int64_t begin, std::int64_t end) {
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) dx[i] = kept[i] != 0 ? dy[i] * scale : T(0);
    });
  }

 private:
  T scale_;
};

template <template <typename> class K, typename T>
std::unique_ptr<Kernel> make(KernelInit& init) {
  return std::make_unique<K<T>>(init);
}

const RegisterKernel dropout_f32("Dropout", "CPU", {DType::f32}, make<Dropout, float>);
const RegisterKernel dropout_f64("Dropout", "CPU", {DType::f64}, make<Dropout, double>);
const RegisterKernel dropout_grad_f32("DropoutGrad", "CPU", {DType::f32}, make<DropoutGrad, float>);
const RegisterKernel dropout_grad_f64("DropoutGrad", "CPU", {DType::f64}, make<DropoutGrad, double>);

}  // namespace
}  // namespace kolo
