#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/kernels/cpu/onednn.h>
#include <kolo/core/kernels/cpu/parallel.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo {
namespace {

// x seen as [outer, channels, inner].
struct Channels {
  std::int64_t outer;
  std::int64_t channels;
  std::int64_t inner;
};

Channels channels_of(const Shape& x, const std::string& data_format) {
  const int axis = x.rank() == 4 && data_format == "NCHW" ? 1 : x.rank() - 1;
  Channels view{1, x.dim(axis), 1};
  for (int i = 0; i < axis; ++i) view.outer *= x.dim(i);
  for (int i = axis + 1; i < x.rank(); ++i) view.inner *= x.dim(i);
  return view;
}

std::optional<detail::OneDnnCall> plan_bias_add(const KernelInit& init) {
  const Channels view = channels_of(init.input_shape(0), init.attr<std::string>("data_format"));
  const auto x = detail::row_major(DType::f32, {view.outer, view.channels, view.inner});
  const auto bias = detail::row_major(DType::f32, {1, view.channels, 1});
  dnnl::binary::primitive_desc chosen({dnnl::algorithm::binary_add, x, bias, x}, detail::own_scratch(),
                                      detail::onednn_engine(), true);
  if (!chosen || !detail::skip_reference(chosen)) return std::nullopt;
  return detail::OneDnnCall(dnnl::binary(chosen), chosen.scratchpad_desc(),
                            {{DNNL_ARG_SRC_0, x, x}, {DNNL_ARG_SRC_1, bias, bias}}, {{DNNL_ARG_DST, x, x}});
}

std::unique_ptr<Kernel> make_onednn_bias_add(KernelInit& init) {
  return detail::make_onednn_kernel(init, {0, 1}, plan_bias_add);
}

template <typename T>
class PlainBiasAdd final : public Kernel {
 public:
  explicit PlainBiasAdd(const KernelInit& init) : data_format_(init.attr<std::string>("data_format")) {}

  void compute(KernelContext& context) override {
    const Channels view = channels_of(context.input(0).shape(), data_format_);
    const T *x = context.input(0).data<T>(), *bias = context.input(1).data<T>();
    T* y = context.output(0).data<T>();
    parallel_for(view.outer * view.channels, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t plane = begin; plane < end; ++plane)
        for (std::int64_t i = plane * view.inner; i < (plane + 1) * view.inner; ++i)
          y[i] = x[i] + bias[plane % view.channels];
    });
  }

 private:
  std::string data_format_;
};

// Sums over all but the channels, in double: a channel of an image batch has 10^5 elements and more.
template <typename T>
class BiasAddGrad final : public Kernel {
 public:
  explicit BiasAddGrad(const KernelInit& init)
      : view_(channels_of(init.input_shape(0), init.attr<std::string>("data_format"))) {}

  void compute(KernelContext& context) override {
    const T* dy = context.input(0).data<T>();
    T* dbias = context.output(0).data<T>();
    parallel_for(view_.channels, kChannelGrain, [&](std::int64_t begin, std::int64_t end) {
      if (view_.inner == 1) sum_columns(dy, dbias, begin, end);
      else sum_planes(dy, dbias, begin, end);
    });
  }

 private:
  static constexpr std::int64_t kChannelGrain = 16;
  static constexpr std::int64_t kLanes = 16;

  // A strip of columns at a time: its sums stay in registers while the rows pass.
  void sum_columns(const T* dy, T* dbias, std::int64_t begin, std::int64_t end) const {
    for (std::int64_t strip = begin; strip < end; strip += kLanes) {
      const std::int64_t width = std::min(kLanes, end - strip);
      double sums[kLanes] = {};
      for (std::int64_t row = 0; row < view_.outer; ++row)
        for (std::int64_t i = 0; i < width; ++i) sums[i] += dy[row * view_.channels + strip + i];
      for (std::int64_t i = 0; i < width; ++i) dbias[strip + i] = static_cast<T>(sums[i]);
    }
  }

  // One sum for each of kLanes neighbouring elements, so that the compiler may use vectors without reordering
  // a sum.
  void sum_planes(const T* dy, T* dbias, std::int64_t begin, std::int64_t end) const {
    for (std::int64_t channel = begin; channel < end; ++channel) {
      double sums[kLanes] = {};
      for (std::int64_t n = 0; n < view_.outer; ++n) {
        const T* plane = dy + (n * view_.channels + channel) * view_.inner;
        std::int64_t i = 0;
        for (; i + kLanes <= view_.inner; i += kLanes)
          for (std::int64_t lane = 0; lane < kLanes; ++lane) sums[lane] += plane[i + lane];
        for (std::int64_t lane = 0; i + lane < view_.inner; ++lane) sums[lane] += plane[i + lane];
      }
      double total = 0;
      for (const double sum : sums) total += sum;
      dbias[channel] = static_cast<T>(total);
    }
  }

  Channels view_;
};

template <template <typename> class K, typename T>
std::unique_ptr<Kernel> make(KernelInit& init) {
  return std::make_unique<K<T>>(init);
}

const RegisterKernel onednn_bias_add("BiasAdd", "CPU", {DType::f32}, make_onednn_bias_add, 1);
const RegisterKernel plain_bias_add_f32("BiasAdd", "CPU", {DType::f32}, make<PlainBiasAdd, float>);
const RegisterKernel plain_bias_add_f64("BiasAdd", "CPU", {DType::f64}, make<PlainBiasAdd, double>);
const RegisterKernel bias_add_grad_f32("BiasAddGrad", "CPU", {DType::f32}, make<BiasAddGrad, float>);
const RegisterKernel bias_add_grad_f64("BiasAddGrad", "CPU", {DType::f64}, make<BiasAddGrad, double>);

}  // namespace
}  // namespace kolo
