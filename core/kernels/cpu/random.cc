#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numbers>
#include <type_traits>

#include <kolo/core/kernels/cpu/normal_quantile.h>
#include <kolo/core/kernels/cpu/parallel.h>
#include <kolo/core/kernels/elements/philox.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo {
namespace {

using Words = std::array<std::uint32_t, 4>;

// A block of words gives four floats or two doubles, whatever the distribution.
template <typename T>
inline constexpr int kPerBlock = std::is_same_v<T, float> ? 4 : 2;

// Number `i` of a block, uniform in [0, 1): as many bits as the type's mantissa holds, so that 1 is never
// rounded to.
template <typename T>
T uniform(const Words& words, int i) {
  if constexpr (std::is_same_v<T, float>) return static_cast<float>(words[i] >> 8) * 0x1p-24f;
  else return static_cast<double>((std::uint64_t{words[2 * i + 1]} << 32 | words[2 * i]) >> 11) * 0x1p-53;
}

struct Uniform {
  double low, high;
  explicit Uniform(const KernelInit& init) : low(init.attr<double>("low")), high(init.attr<double>("high")) {}
  template <typename T>
  void fill(const Words& words, T* out) const {
    const T from = static_cast<T>(low), width = static_cast<T>(high - low);
    // Rounding may reach `high`, which must stay outside.
    const T last = std::nextafter(static_cast<T>(high), from);
    for (int i = 0; i < kPerBlock<T>; ++i) out[i] = std::min(last, from + width * uniform<T>(words, i));
  }
};

// Box and Muller: "A note on the generation of random normal deviates", Annals of Mathematical Statistics 29
// (1958).
struct Normal {
  double mean, stddev;
  explicit Normal(const KernelInit& init)
      : mean(init.attr<double>("mean")), stddev(init.attr<double>("stddev")) {}
  template <typename T>
  void fill(const Words& words, T* out) const {
    for (int i = 0; i < kPerBlock<T>; i += 2) {
      const T radius = std::sqrt(-2 * std::log(1 - uniform<T>(words, i)));  // 1 − u lies in (0, 1]
      const T angle = 2 * std::numbers::pi_v<T> * uniform<T>(words, i + 1);
      out[i] = static_cast<T>(mean) + static_cast<T>(stddev) * radius * std::cos(angle);
      out[i + 1] = static_cast<T>(mean) + static_cast<T>(stddev) * radius * std::sin(angle);
    }
  }
};

// By the inverse of the distribution, not by drawing again: every element then takes the same count of
// numbers.
struct TruncatedNormal {
  double mean, stddev;
  explicit TruncatedNormal(const KernelInit& init)
      : mean(init.attr<double>("mean")), stddev(init.attr<double>("stddev")) {}
  template <typename T>
  void fill(const Words& words, T* out) const {
    constexpr double kBelow = 0.022750131948179207;  // Φ(−2)
    for (int i = 0; i < kPerBlock<T>; ++i) {
      // The middle of the interval that the bits stand for: symmetric about 0.
      const double u =
          std::is_same_v<T, float> ? uniform<T>(words, i) + 0x1p-25 : uniform<T>(words, i) + 0x1p-54;
      const double x =
          std::clamp(detail::normal_quantile_within_two(kBelow + (1 - 2 * kBelow) * u), -2.0, 2.0);
      out[i] = static_cast<T>(mean + stddev * x);
    }
  }
};

// Element i of a call comes from block (position of the call) + i / kPerBlock, whichever thread makes it.
template <typename Distribution, typename T>
class RandomKernel final : public Kernel {
 public:
  explicit RandomKernel(const KernelInit& init) : distribution_(init) {}
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

template <typename Distribution>
RegisterKernel kernel(const char* op) {
  return RegisterKernel(op, "CPU", {DType::f32, DType::f64}, [](KernelInit& init) -> std::unique_ptr<Kernel> {
    if (init.output_dtype(0) == DType::f32) return std::make_unique<RandomKernel<Distribution, float>>(init);
    return std::make_unique<RandomKernel<Distribution, double>>(init);
  });
}

const RegisterKernel kernels[] = {
    kernel<Uniform>("RandomUniform"),
    kernel<Normal>("RandomNormal"),
    kernel<TruncatedNormal>("TruncatedNormal"),
};

}  // namespace

}  // namespace kolo
