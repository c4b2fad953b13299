#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include <kolo/core/kernels/cpu/parallel.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo {
namespace {

// Elements that one thread sums at a time: what is summed with what follows from the sizes alone.
constexpr std::int64_t kBlock = 4096;
constexpr int kLanes = 8;

template <typename T>
double sum_of_squares(const T* x, std::int64_t count) {
  std::array<double, kLanes> sums{};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) {
      const auto value = static_cast<double>(x[i + lane]);
      sums[lane] += value * value;
    }
  double sum = 0;
  for (; i < count; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  for (const double lane : sums) sum += lane;
  return sum;
}

template <typename T>
class GlobalNormKernel final : public Kernel {
 public:
  void compute(KernelContext& context) override {
    double total = 0;
    for (int i = 0; i < context.num_inputs(); ++i) total += of(context.input(i));
    *context.output(0).template data<T>() = static_cast<T>(std::sqrt(total));
  }

 private:
  double of(const Tensor& x) {
    const std::int64_t count = x.elements(), blocks = (count + kBlock - 1) / kBlock;
    sums_.resize(std::max(sums_.size(), static_cast<std::size_t>(blocks)));
    parallel_for(blocks, kElementGrain / kBlock, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t block = begin; block < end; ++block)
        sums_[block] = sum_of_squares(x.data<T>() + block * kBlock, std::min(kBlock, count - block * kBlock));
    });
    double sum = 0;
    for (std::int64_t block = 0; block < blocks; ++block) sum += sums_[block];
    return sum;
  }

  std::vector<double> sums_;  // of blocks; keeps its capacity from step to step
};

template <typename T>
std::unique_ptr<Kernel> make(KernelInit&) {
  return std::make_unique<GlobalNormKernel<T>>();
}

const RegisterKernel global_norm_f32("GlobalNorm", "CPU", {DType::f32}, make<float>);
const RegisterKernel global_norm_f64("GlobalNorm", "CPU", {DType::f64}, make<double>);

}  // namespace
}  // namespace kolo
