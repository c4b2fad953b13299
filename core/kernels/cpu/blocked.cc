// The ops of blocked.h that are no convolutions or pooling.
#include <kolo/core/ops/blocked.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <kolo/core/kernels/cpu/conv/image_blocks.h>
#include <kolo/core/kernels/cpu/loops/blocked_loops.h>
#include <kolo/core/kernels/cpu/moving_averages.h>
#include <kolo/core/kernels/cpu/onednn/onednn.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/kernels/parallel.h>

namespace kolo {
namespace {

template <bool kToBlocked>
std::unique_ptr<Kernel> make_reorder(KernelInit& init) {
  return detail::make_onednn_kernel(init, {0}, [](const KernelInit& in) {
    const std::int64_t block = in.attr<std::int64_t>("block");
    const auto order = [&](DType type, bool in_blocks) {
      return detail::images_in_order(type, in.input_shape(0), in_blocks ? block : 0);
    };
    const auto from = order(in.input_dtype(0), !kToBlocked), to = order(in.output_dtype(0), kToBlocked);
    const auto& engine = detail::onednn_engine();
    const dnnl::reorder::primitive_desc chosen(engine, from, engine, to, detail::own_scratch());
    return std::optional(detail::OneDnnCall(dnnl::reorder(chosen), chosen.scratchpad_desc(),
                                            {{DNNL_ARG_FROM, from, from}}, {{DNNL_ARG_TO, to, to}}));
  });
}

const RegisterKernel to_blocked(kToBlockedOp, "CPU", {DType::f32}, make_reorder<true>);
const RegisterKernel to_row_major(kToRowMajorOp, "CPU", {DType::f32, DType::bf16}, make_reorder<false>);

// Images seen as planes [images, blocks, pixels, block].
class Planes {
 public:
  // block: or kChannelsLast.
  Planes(const Shape& shape, std::int64_t block)
      : images_(shape.dim(0)),
        pixels_(shape.dim(2) * shape.dim(3)),
        block_(block == kChannelsLast ? shape.dim(1) : block),
        blocks_(shape.dim(1) / block_),
        channels_last_(block == kChannelsLast) {}

  template <typename T>
  const detail::BlockedLoops<T>& loops() const {
    if constexpr (std::is_same_v<T, float>)
      if (!channels_last_) return detail::blocked_loops(block_);
    return detail::channels_last_loops<T>();
  }

  std::int64_t images() const { return images_; }
  std::int64_t pixels() const { return pixels_; }
  std::int64_t block() const { return block_; }
  std::int64_t channels() const { return blocks_ * block_; }
  std::int64_t per_channel() const { return images_ * pixels_; }
  std::int64_t count() const { return images_ * blocks_; }
  std::int64_t plane(std::int64_t image, std::int64_t b) const { return image * blocks_ + b; }
  std::int64_t begin(std::int64_t plane) const { return plane * pixels_ * block_; }
  std::int64_t first_channel(std::int64_t plane) const { return plane % blocks_ * block_; }

  // Calls sums(plane) for all planes of a block of channels, statistics(block), then values(plane), whose
  // data the cache may still hold. Each thread takes blocks, or planes where there are fewer blocks than
  // threads: nothing that is computed depends on it.
  template <typename Sums, typename Statistics, typename Values>
  void by_blocks(const Sums& sums, const Statistics& statistics, const Values& values) const {
    if (blocks_ >= intra_op_threads()) {
      parallel_for(blocks_, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t b = begin; b < end; ++b) {
          for (std::int64_t image = 0; image < images_; ++image) sums(plane(image, b));
          statistics(b);
          for (std::int64_t image = images_; image-- > 0;) values(plane(image, b));
        }
      });
      return;
    }
    for_each(sums);
    for (std::int64_t b = 0; b < blocks_; ++b) statistics(b);
    for_each(values);
  }
  template <typename Visit>
  void for_each(const Visit& visit) const {
    parallel_for(count(), std::max<std::int64_t>(1, kElementGrain / (pixels_ * block_)),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t p = begin; p < end; ++p) visit(p);
                 });
  }

 private:
  std::int64_t images_, pixels_, block_, blocks_;
  bool channels_last_;
};

Planes planes_of(const KernelInit& init) { return {init.input_shape(0), init.attr<std::int64_t>("block")}; }

// Two sums for each plane and channel, added up in the order of the images, and some numbers for each
// channel: in the step's scratch memory.
class Sums {
 public:
  explicit Sums(const Planes& planes) : planes_(planes) {}

  void request(KernelInit& init, std::int64_t floats_of_channel) const {
    const std::int64_t doubles = 2 * planes_.count() * planes_.block();
    init.request_scratch(static_cast<std::size_t>(doubles) * sizeof(double) +
                         static_cast<std::size_t>(floats_of_channel * planes_.channels()) * sizeof(float));
  }
  void use(std::byte* scratch) { scratch_ = scratch; }

  double* first(std::int64_t plane) const { return doubles() + 2 * plane * planes_.block(); }
  double* second(std::int64_t plane) const { return first(plane) + planes_.block(); }
  // The i-th number of channel 0; those of the others follow.
  float* numbers(std::int64_t i) const {
    return reinterpret_cast<float*>(doubles() + 2 * planes_.count() * planes_.block()) +
           i * planes_.channels();
  }
  std::pair<double, double> total(std::int64_t b, std::int64_t lane) const {
    double first_sum = 0, second_sum = 0;
    for (std::int64_t image = 0; image < planes_.images(); ++image) {
      first_sum += first(planes_.plane(image, b))[lane];
      second_sum += second(planes_.plane(image, b))[lane];
    }
    return {first_sum, second_sum};
  }

 private:
  double* doubles() const { return reinterpret_cast<double*>(scratch_); }
  const Planes& planes_;
  std::byte* scratch_ = nullptr;
};

// What x − mean is multiplied by. One rounding wherever it is needed: what is computed anew from the variance
// as it is kept (recompute.cc), and what rectifiers let through, is the same to the bit.
void find_factors(const float* scale, const float* variance, std::int64_t channels, double epsilon,
                  float* factor) {
  for (std::int64_t c = 0; c < channels; ++c)
    factor[c] = static_cast<float>(scale[c] / std::sqrt(variance[c] + epsilon));
}

template <typename T>
class BlockedBatchNorm final : public Kernel {
 public:
  explicit BlockedBatchNorm(KernelInit& init)
      : planes_(planes_of(init)),
        epsilon_(init.attr<double>("epsilon")),
        momentum_(init.attr<double>("momentum")),
        relu_(init.attr<bool>("relu")) {
    sums_.request(init, 2);
  }

  void compute(KernelContext& context) override {
    sums_.use(context.scratch());
    const T* const x = context.input(0).data<T>();
    const float* const offset = context.input(2).data<float>();
    const T* const added = context.num_inputs() > 5 ? context.input(5).data<T>() : nullptr;
    T* const y = context.output(0).data<T>();
    float* const mean = context.output(1).data<float>();
    float *const center = sums_.numbers(0), *const factor = sums_.numbers(1);
    find_centers(x, center);
    planes_.by_blocks(
        [&](std::int64_t plane) {
          loops_.moments(x + planes_.begin(plane), center + planes_.first_channel(plane), planes_.pixels(),
                         planes_.block(), sums_.first(plane), sums_.second(plane));
        },
        [&](std::int64_t b) { finish(context, b, center, factor); },
        [&](std::int64_t plane) {
          const std::int64_t at = planes_.begin(plane), c = planes_.first_channel(plane);
          loops_.affine(x + at, mean + c, factor + c, offset + c, added == nullptr ? nullptr : added + at,
                        relu_, y + at, planes_.pixels(), planes_.block());
        });
    detail::move_averages<float>(context, planes_.per_channel(), momentum_);
  }

 private:
  // Squares are taken around a number near the mean, that of the first image: around 0 they would be large
  // numbers whose difference is small.
  void find_centers(const T* x, float* center) const {
    std::fill_n(center, planes_.channels(), 0.0f);
    for (std::int64_t b = 0; b < planes_.count() / planes_.images(); ++b) {
      float* const of_block = center + b * planes_.block();
      loops_.moments(x + planes_.begin(b), of_block, planes_.pixels(), planes_.block(), sums_.first(b),
                     sums_.second(b));
      for (std::int64_t i = 0; i < planes_.block(); ++i)
        of_block[i] = static_cast<float>(sums_.first(b)[i] / static_cast<double>(planes_.pixels()));
    }
  }

  void finish(KernelContext& context, std::int64_t b, const float* center, float* factor) const {
    const float* const scale = context.input(1).data<float>();
    float *const mean = context.output(1).data<float>(), *const variance = context.output(2).data<float>();
    const auto n = static_cast<double>(planes_.per_channel());
    for (std::int64_t i = 0; i < planes_.block(); ++i) {
      const std::int64_t c = b * planes_.block() + i;
      const auto [sum, squares] = sums_.total(b, i);
      const double moved = sum / n, found = squares / n - moved * moved;
      const double of_batch = found < 0 ? 0 : found;  // NaN stays NaN
      mean[c] = static_cast<float>(center[c] + moved);
      variance[c] = static_cast<float>(of_batch);
    }
    const std::int64_t c = b * planes_.block();
    find_factors(scale + c, variance + c, planes_.block(), epsilon_, factor + c);
  }

  Planes planes_;
  Sums sums_{planes_};
  const detail::BlockedLoops<T>& loops_ = planes_.loops<T>();
  double epsilon_;
  double momentum_;
  bool relu_;
};

// The formulas of PlainBatchNormGrad.
template <typename T>
class BlockedBatchNormGrad final : public Kernel {
 public:
  explicit BlockedBatchNormGrad(KernelInit& init)
      : planes_(planes_of(init)),
        epsilon_(init.attr<double>("epsilon")),
        relu_(init.attr<bool>("relu")),
        relu_of_x_(init.attr<bool>("relu_of_x")),
        keeps_(init.attr<std::int64_t>("added") > 0) {
    sums_.request(init, 4);
  }

  void compute(KernelContext& context) override {
    sums_.use(context.scratch());
    const T* const x = context.input(0).data<T>();
    const float* const mean = context.input(2).data<float>();
    T* const dx = context.output(0).data<T>();
    T* const kept = keeps_ ? context.output(3).data<T>() : nullptr;
    float *const factor = sums_.numbers(0), *const of_mean = sums_.numbers(1), *const of_x = sums_.numbers(2);
    if (relu_of_x_)
      find_factors(context.input(1).data<float>(), context.input(3).data<float>(), planes_.channels(),
                   epsilon_, sums_.numbers(3));
    planes_.by_blocks(
        [&](std::int64_t plane) {
          const std::int64_t at = planes_.begin(plane), c = planes_.first_channel(plane);
          loops_.gradient_sums(gradient_of(context, at, c), x + at, mean + c,
                               kept == nullptr ? nullptr : kept + at, planes_.pixels(), planes_.block(),
                               sums_.first(plane), sums_.second(plane));
        },
        [&](std::int64_t b) { finish(context, b); },
        [&](std::int64_t plane) {
          const std::int64_t at = planes_.begin(plane), c = planes_.first_channel(plane);
          const detail::BlockedGradient<T> g =
              kept == nullptr ? gradient_of(context, at, c) : detail::BlockedGradient<T>{.first = kept + at};
          loops_.gradient(g, x + at, mean + c, factor + c, of_mean + c, of_x + c, dx + at, planes_.pixels(),
                          planes_.block());
        });
  }

 private:
  detail::BlockedGradient<T> gradient_of(const KernelContext& context, std::int64_t at,
                                         std::int64_t channel) const {
    const bool masked = relu_ || relu_of_x_;
    const int terms = context.num_inputs() - 4 - (masked ? 1 : 0);
    detail::BlockedGradient<T> g{.first = context.input(4).data<T>() + at};
    if (terms > 1) g.second = context.input(5).data<T>() + at;
    const Tensor& last = context.input(context.num_inputs() - 1);
    if (relu_) g.y = last.data<T>() + at;
    if (relu_of_x_) g.factor = sums_.numbers(3) + channel, g.shift = last.data<float>() + channel;
    return g;
  }

  void finish(KernelContext& context, std::int64_t b) const {
    const float *const scale = context.input(1).data<float>(), *const variance =
                                                                   context.input(3).data<float>();
    float *const dscale = context.output(1).data<float>(), *const doffset = context.output(2).data<float>();
    float *const factor = sums_.numbers(0), *const of_mean = sums_.numbers(1), *const of_x = sums_.numbers(2);
    const auto n = static_cast<double>(planes_.per_channel());
    for (std::int64_t i = 0; i < planes_.block(); ++i) {
      const std::int64_t c = b * planes_.block() + i;
      const auto [sum, products] = sums_.total(b, i);
      const double r = 1 / std::sqrt(variance[c] + epsilon_);
      doffset[c] = static_cast<float>(sum);
      dscale[c] = static_cast<float>(products * r);
      factor[c] = static_cast<float>(scale[c] * r);
      of_mean[c] = static_cast<float>(sum / n);
      of_x[c] = static_cast<float>(products * r * r / n);
    }
  }

  Planes planes_;
  Sums sums_{planes_};
  const detail::BlockedLoops<T>& loops_ = planes_.loops<T>();
  double epsilon_;
  bool relu_;
  bool relu_of_x_;
  bool keeps_;
};

template <typename T>
class BlockedBatchNormInference final : public Kernel {
 public:
  explicit BlockedBatchNormInference(KernelInit& init)
      : planes_(planes_of(init)),
        epsilon_(init.attr<double>("epsilon")),
        relu_(init.attr<bool>("relu")),
        factor_(static_cast<std::size_t>(planes_.channels())) {}

  void compute(KernelContext& context) override {
    const T* const x = context.input(0).data<T>();
    const float *const scale = context.input(1).data<float>(), *const offset = context.input(2).data<float>(),
                       *const mean = context.input(3).data<float>(),
                       *const variance = context.input(4).data<float>();
    const T* const added = context.num_inputs() > 5 ? context.input(5).data<T>() : nullptr;
    T* const y = context.output(0).data<T>();
    find_factors(scale, variance, planes_.channels(), epsilon_, factor_.data());
    planes_.for_each([&](std::int64_t plane) {
      const std::int64_t at = planes_.begin(plane), c = planes_.first_channel(plane);
      loops_.affine(x + at, mean + c, factor_.data() + c, offset + c, added == nullptr ? nullptr : added + at,
                    relu_, y + at, planes_.pixels(), planes_.block());
    });
  }

 private:
  Planes planes_;
  const detail::BlockedLoops<T>& loops_ = planes_.loops<T>();
  double epsilon_;
  bool relu_;
  std::vector<float> factor_;
};

class BlockedBiasAdd final : public Kernel {
 public:
  explicit BlockedBiasAdd(KernelInit& init)
      : planes_(planes_of(init)),
        zeros_(static_cast<std::size_t>(planes_.block()), 0.0f),
        ones_(static_cast<std::size_t>(planes_.block()), 1.0f) {}

  void compute(KernelContext& context) override {
    const float *const x = context.input(0).data<float>(), *const bias = context.input(1).data<float>();
    float* const y = context.output(0).data<float>();
    planes_.for_each([&](std::int64_t plane) {
      const std::int64_t at = planes_.begin(plane);
      loops_.affine(x + at, zeros_.data(), ones_.data(), bias + planes_.first_channel(plane), nullptr, false,
                    y + at, planes_.pixels(), planes_.block());
    });
  }

 private:
  Planes planes_;
  const detail::BlockedLoops<float>& loops_ = planes_.loops<float>();
  std::vector<float> zeros_, ones_;
};

class BlockedBiasAddGrad final : public Kernel {
 public:
  explicit BlockedBiasAddGrad(KernelInit& init)
      : planes_(planes_of(init)), zeros_(static_cast<std::size_t>(planes_.block()), 0.0f) {
    sums_.request(init, 0);
  }

  void compute(KernelContext& context) override {
    sums_.use(context.scratch());
    const float* const dy = context.input(0).data<float>();
    float* const dbias = context.output(0).data<float>();
    planes_.by_blocks(
        [&](std::int64_t plane) {
          loops_.moments(dy + planes_.begin(plane), zeros_.data(), planes_.pixels(), planes_.block(),
                         sums_.first(plane), sums_.second(plane));
        },
        [&](std::int64_t b) {
          for (std::int64_t i = 0; i < planes_.block(); ++i)
            dbias[b * planes_.block() + i] = static_cast<float>(sums_.total(b, i).first);
        },
        [](std::int64_t) {});
  }

 private:
  Planes planes_;
  Sums sums_{planes_};
  const detail::BlockedLoops<float>& loops_ = planes_.loops<float>();
  std::vector<float> zeros_;
};

const RegisterKernel batch_norm(kBlockedBatchNormOp, "CPU", {DType::f32},
                                make_kernel<BlockedBatchNorm<float>>);
const RegisterKernel batch_norm_bf16(kBlockedBatchNormOp, "CPU", {DType::bf16},
                                     make_kernel<BlockedBatchNorm<BFloat16>>);
const RegisterKernel batch_norm_grad(kBlockedBatchNormGradOp, "CPU", {DType::f32},
                                     make_kernel<BlockedBatchNormGrad<float>>);
const RegisterKernel batch_norm_grad_bf16(kBlockedBatchNormGradOp, "CPU", {DType::bf16},
                                          make_kernel<BlockedBatchNormGrad<BFloat16>>);
const RegisterKernel batch_norm_inference(kBlockedBatchNormInferenceOp, "CPU", {DType::f32},
                                          make_kernel<BlockedBatchNormInference<float>>);
const RegisterKernel batch_norm_inference_bf16(kBlockedBatchNormInferenceOp, "CPU", {DType::bf16},
                                               make_kernel<BlockedBatchNormInference<BFloat16>>);
const RegisterKernel bias_add(kBlockedBiasAddOp, "CPU", {DType::f32}, make_kernel<BlockedBiasAdd>);
const RegisterKernel bias_add_grad(kBlockedBiasAddGradOp, "CPU", {DType::f32},
                                   make_kernel<BlockedBiasAddGrad>);

}  // namespace

std::int64_t image_block() {
  const auto isa = dnnl::get_effective_cpu_isa();
  if (isa == dnnl::cpu_isa::all) return 0;
  const auto has = [&](dnnl::cpu_isa set) {
    return (static_cast<int>(isa) & static_cast<int>(set)) == static_cast<int>(set);
  };
  return has(dnnl::cpu_isa::avx512_core) ? 16 : has(dnnl::cpu_isa::avx2) ? 8 : 0;
}

}  // namespace kolo
