#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <kolo/core/kernels/cpu/convolution.h>
#include <kolo/core/kernels/cpu/onednn/onednn.h>
#include <kolo/core/kernels/cpu/onednn/point_convolution.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/kernels/parallel.h>
#include <kolo/core/ops/blocked.h>

namespace kolo {
namespace {

using detail::Convolution;

// How images or results lie: in what order (core/ops/blocked.h; 0: row-major), and stored in which type.
struct Stored {
  std::int64_t block = 0;
  DType type = DType::f32;
};
struct Blocks {
  Stored images;
  Stored results;
};

// oneDNN's view of it. What lies in blocks is computed with as it is; of weights and row-major tensors the
// layout inside is oneDNN's own choice.
class OneDnnConvolution {
  using Forward = dnnl::convolution_forward;

 public:
  explicit OneDnnConvolution(const Convolution& c, Blocks blocks = {})
      : images_(detail::images_in_order(blocks.images.type, c.images, blocks.images.block)),
        weights_(detail::row_major(DType::f32, c.grouped_weights())),
        results_(detail::images_in_order(blocks.results.type, c.results, blocks.results.block)),
        any_images_(computed(c, c.images, blocks.images)),
        any_weights_(detail::any_layout(c.grouped_weights(), type(c))),
        any_results_(computed(c, c.results, blocks.results)),
        weight_gradient_(detail::any_layout(c.grouped_weights())),
        strides_{c.rows.stride, c.cols.stride},
        pad_before_{c.rows.pad_before, c.cols.pad_before},
        pad_after_{pad_after(c.rows), pad_after(c.cols)},
        winograd_(gains_by_winograd(c, blocks)),
        point_(as_point(c, blocks)) {}

  std::optional<detail::OneDnnCall> forward() const {
    auto chosen = choose([&](dnnl::algorithm algorithm) {
      return detail::fast_description<Forward::primitive_desc>(forward_pass(algorithm));
    });
    if (!chosen) return std::nullopt;
    return detail::OneDnnCall(
        Forward(chosen), chosen.scratchpad_desc(),
        {{DNNL_ARG_SRC, images_, chosen.src_desc()}, {DNNL_ARG_WEIGHTS, weights_, chosen.weights_desc()}},
        {{DNNL_ARG_DST, results_, chosen.dst_desc()}});
  }

  std::optional<detail::OneDnnCall> backward_images() const {
    using Pass = dnnl::convolution_backward_data;
    const Forward::primitive_desc hint = forward_hint();
    auto chosen = choose([&](dnnl::algorithm algorithm) {
      const Pass::desc pass(algorithm, any_images_, any_weights_, any_results_, strides_, pad_before_,
                            pad_after_);
      return detail::fast_description<Pass::primitive_desc>(pass, hint);
    });
    if (!chosen) return std::nullopt;
    return detail::OneDnnCall(Pass(chosen), chosen.scratchpad_desc(),
                              {{DNNL_ARG_WEIGHTS, weights_, chosen.weights_desc()},
                               {DNNL_ARG_DIFF_DST, results_, chosen.diff_dst_desc()}},
                              {{DNNL_ARG_DIFF_SRC, images_, chosen.diff_src_desc()}});
  }

  std::optional<detail::OneDnnCall> backward_weights() const {
    if (point_)
      if (auto product = detail::point_weight_gradient(*point_)) return product;
    using Pass = dnnl::convolution_backward_weights;
    const Forward::primitive_desc hint = forward_hint();
    auto chosen = choose([&](dnnl::algorithm algorithm) {
      const Pass::desc pass(algorithm, any_images_, weight_gradient_, any_results_, strides_, pad_before_,
                            pad_after_);
      return detail::fast_description<Pass::primitive_desc>(pass, hint);
    });
    if (!chosen) return std::nullopt;
    return detail::OneDnnCall(
        Pass(chosen), chosen.scratchpad_desc(),
        {{DNNL_ARG_SRC, images_, chosen.src_desc()}, {DNNL_ARG_DIFF_DST, results_, chosen.diff_dst_desc()}},
        {{DNNL_ARG_DIFF_WEIGHTS, weights_, chosen.diff_weights_desc()}});
  }

 private:
  static constexpr dnnl::algorithm kDirect = dnnl::algorithm::convolution_direct;

  static dnnl::memory::data_type type(const Convolution& c) {
    return c.in_bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
  }

  static dnnl::memory::desc computed(const Convolution& c, const Shape& shape, const Stored& stored) {
    return stored.block != 0 && !c.in_bf16 ? detail::images_in_order(DType::f32, shape, stored.block)
                                           : detail::any_layout(shape, type(c));
  }

  // oneDNN computes the number of results from the padding: strides that jump over the image's end need it
  // negative.
  static std::int64_t pad_after(const WindowAxis& axis) {
    return (axis.outputs - 1) * axis.stride + axis.window - axis.size - axis.pad_before;
  }

  // Winograd's algorithm (3 × 3 windows that move by one; Lavin, Gray, arXiv:1509.09308) needs 2.25 to 4
  // times fewer multiplications. One core of Zen 5, GFLOP/s of the direct algorithm → this one, forward /
  // images / weights: 16 channels at 32 × 32 142 → 88 / 174 → 95 / 162 → 114; 32 at 16 × 16 186 → 241 / 192 →
  // 258 / 188 → 214; 64 at 8 × 8 199 → 386 / 199 → 388 / 182 → 244; at 56 × 56 twice as fast; 512 at 7 × 7
  // equal.
  static bool gains_by_winograd(const Convolution& c, const Blocks& blocks) {
    constexpr std::int64_t kFewestChannels = 32;
    const auto moves_by_one = [](const WindowAxis& axis) { return axis.window == 3 && axis.stride == 1; };
    return !c.in_bf16 && blocks.images.block != 0 && blocks.results.block != 0 && c.groups == 1 &&
           moves_by_one(c.rows) && moves_by_one(c.cols) &&
           std::min(c.images.dim(1), c.results.dim(1)) >= kFewestChannels;
  }

  // oneDNN's weight gradients in bf16 transpose both images first. One core with AMX, GFLOP/s of that → of
  // the product of matrices: 64 → 256 channels at 56 × 56 279 → 520; 512 → 128 at 28 × 28 270 → 610; 256 →
  // 1024 at 14 × 14 295 → 775; 2048 → 512 at 7 × 7 103 → 640.
  static std::optional<detail::PointConvolution> as_point(const Convolution& c, const Blocks& blocks) {
    const bool is_point = c.rows.window == 1 && c.cols.window == 1 && c.groups == 1;
    if (!c.in_bf16 || !is_point || blocks.images.block != kChannelsLast ||
        blocks.results.block != kChannelsLast)
      return std::nullopt;
    return detail::PointConvolution{c.images,      c.results,    blocks.images.type, blocks.results.type,
                                    c.rows.stride, c.cols.stride};
  }

  // describe(algorithm) → a description, empty where oneDNN has nothing but its reference.
  template <typename Describe>
  std::invoke_result_t<Describe, dnnl::algorithm> choose(const Describe& describe) const {
    if (winograd_)
      if (auto chosen = describe(dnnl::algorithm::convolution_winograd)) return chosen;
    return describe(kDirect);
  }

  Forward::desc forward_pass(dnnl::algorithm algorithm) const {
    return {dnnl::prop_kind::forward_training,
            algorithm,
            any_images_,
            any_weights_,
            any_results_,
            strides_,
            pad_before_,
            pad_after_};
  }
  Forward::primitive_desc forward_hint() const {
    return {forward_pass(kDirect), detail::own_scratch(), detail::onednn_engine(), true};
  }

  dnnl::memory::desc images_, weights_, results_;
  dnnl::memory::desc any_images_, any_weights_, any_results_, weight_gradient_;
  dnnl::memory::dims strides_, pad_before_, pad_after_;
  bool winograd_;
  std::optional<detail::PointConvolution> point_;
};

// oneDNN's kernels compute with numbers of 32 bits.
constexpr std::int64_t kMaxOneDnnKernel = 1 << 12;
bool is_small(const Convolution& c) {
  return std::max({c.rows.window, c.rows.stride, c.cols.window, c.cols.stride}) <= kMaxOneDnnKernel;
}

// One of the three passes. Where oneDNN has no code for it in bf16 it is computed in f32.
template <std::optional<detail::OneDnnCall> (OneDnnConvolution::*kPass)() const>
std::optional<detail::OneDnnCall> plan(Convolution conv, const Blocks& blocks = {}) {
  if (!is_small(conv)) return std::nullopt;
  const OneDnnConvolution asked(conv, blocks);
  auto call = (asked.*kPass)();
  if (call || !conv.in_bf16) return call;
  conv.in_bf16 = false;
  const OneDnnConvolution in_f32(conv, blocks);
  return (in_f32.*kPass)();
}

std::unique_ptr<Kernel> make_onednn_convolution(KernelInit& init) {
  return detail::make_onednn_kernel(init, {0, 1}, [](const KernelInit& in) {
    return plan<&OneDnnConvolution::forward>(Convolution::of(in, in.input_shape(0), in.output_shape(0)));
  });
}

std::unique_ptr<Kernel> make_onednn_backward_images(KernelInit& init) {
  return detail::make_onednn_kernel(init, {1, 2}, [](const KernelInit& in) {
    return plan<&OneDnnConvolution::backward_images>(
        Convolution::of(in, in.input_shape(0), in.input_shape(2)));
  });
}

std::unique_ptr<Kernel> make_onednn_transpose(KernelInit& init) {
  return detail::make_onednn_kernel(init, {1, 0}, [](const KernelInit& in) {
    return plan<&OneDnnConvolution::backward_images>(
        Convolution::of(in, in.output_shape(0), in.input_shape(0)));
  });
}

std::unique_ptr<Kernel> make_onednn_backward_weights(KernelInit& init) {
  return detail::make_onednn_kernel(init, {0, 2}, [](const KernelInit& in) {
    return plan<&OneDnnConvolution::backward_weights>(
        Convolution::of(in, in.input_shape(0), in.input_shape(2)));
  });
}

// The ops of blocked.h: the same calls on tensors of another order. None but oneDNN takes them.
// images_type, results_type: in what the two are stored.
template <std::optional<detail::OneDnnCall> (OneDnnConvolution::*kPass)() const>
std::unique_ptr<Kernel> make_blocked(KernelInit& init, const Shape& images, DType images_type,
                                     const Shape& weights, const Shape& results, DType results_type) {
  return detail::make_onednn_kernel(
      init, {0, 1}, [&](const KernelInit& in) -> std::optional<detail::OneDnnCall> {
        return plan<kPass>(Convolution::of(in, images, weights, results),
                           {{in.attr<std::int64_t>("images_block"), images_type},
                            {in.attr<std::int64_t>("results_block"), results_type}});
      });
}

std::unique_ptr<Kernel> make_blocked_convolution(KernelInit& init) {
  return make_blocked<&OneDnnConvolution::forward>(init, init.input_shape(0), init.input_dtype(0),
                                                   init.input_shape(1), init.output_shape(0),
                                                   init.output_dtype(0));
}
std::unique_ptr<Kernel> make_blocked_backward_images(KernelInit& init) {
  if (init.num_inputs() > 2) return init.decline("oneDNN adds nothing to gradients of images");
  return make_blocked<&OneDnnConvolution::backward_images>(init, init.output_shape(0), init.output_dtype(0),
                                                           init.input_shape(0), init.input_shape(1),
                                                           init.input_dtype(1));
}
std::unique_ptr<Kernel> make_blocked_backward_weights(KernelInit& init) {
  return make_blocked<&OneDnnConvolution::backward_weights>(init, init.input_shape(0), init.input_dtype(0),
                                                            init.output_shape(0), init.input_shape(1),
                                                            init.input_dtype(1));
}

// Calls visit(weight, image, result, count): `count` neighbouring results of one row, which start at element
// `result` of their plane, meet this weight of the window at image elements `image`, image + column stride, …
template <typename Visit>
void for_each_tap(const Convolution& c, const Visit& visit) {
  for (std::int64_t r = 0; r < c.rows.window; ++r)
    for (std::int64_t q = 0; q < c.cols.window; ++q) {
      const OutputRange rows = outputs_inside(c.rows, r), cols = outputs_inside(c.cols, q);
      for (std::int64_t y = rows.begin; y < rows.end && cols.begin < cols.end; ++y) {
        const std::int64_t image_row = y * c.rows.stride + r - c.rows.pad_before;
        const std::int64_t image_col = cols.begin * c.cols.stride + q - c.cols.pad_before;
        visit(r * c.cols.window + q, image_row * c.cols.size + image_col, y * c.cols.outputs + cols.begin,
              cols.end - cols.begin);
      }
    }
}

enum class PlainPass { forward, images, weights };

// The plain loops, of any type and size: for gradient checks in f64 and for what oneDNN declines.
template <typename T, PlainPass kPass>
class PlainConvolution final : public Kernel {
 public:
  PlainConvolution(const Convolution& conv, int dy)
      : conv_(conv),
        dy_(dy),
        image_plane_(conv_.rows.size * conv_.cols.size),
        weight_plane_(conv_.rows.window * conv_.cols.window),
        result_plane_(conv_.rows.outputs * conv_.cols.outputs) {}

  void compute(KernelContext& context) override {
    // Filter o sees as many channels, from first_channel(o) on.
    const std::int64_t batch = conv_.images.dim(0), channels = conv_.weights.dim(1),
                       outs = conv_.weights.dim(0), all_channels = channels * conv_.groups;
    const auto first_channel = [&](std::int64_t o) { return o / (outs / conv_.groups) * channels; };
    T* result = context.output(0).data<T>();
    std::fill_n(result, context.output(0).elements(), T(0));
    // Each piece owns whole planes of the result, so that no two threads add to one element.
    const std::int64_t outer = kPass == PlainPass::weights ? outs : batch;
    parallel_for(outer, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t piece = begin; piece < end; ++piece)
        for (std::int64_t n = kPass == PlainPass::weights ? 0 : piece;
             n < (kPass == PlainPass::weights ? batch : piece + 1); ++n)
          for (std::int64_t o = kPass == PlainPass::weights ? piece : 0;
               o < (kPass == PlainPass::weights ? piece + 1 : outs); ++o)
            for (std::int64_t c = 0; c < channels; ++c)
              planes(context, (n * all_channels + first_channel(o) + c) * image_plane_,
                     (o * channels + c) * weight_plane_, (n * outs + o) * result_plane_);
    });
  }

 private:
  void planes(KernelContext& context, std::int64_t image_at, std::int64_t weight_at,
              std::int64_t result_at) const {
    const T* images = context.input(0).data<T>() + image_at;
    const T* weights = context.input(1).data<T>() + weight_at;
    T* out = context.output(0).data<T>();
    const std::int64_t stride = conv_.cols.stride;
    if constexpr (kPass == PlainPass::forward) {
      for_each_tap(conv_, [&](std::int64_t w, std::int64_t i, std::int64_t r, std::int64_t count) {
        for (std::int64_t x = 0; x < count; ++x)
          out[result_at + r + x] += weights[w] * images[i + x * stride];
      });
    } else {
      const T* dy = context.input(dy_).data<T>() + result_at;
      for_each_tap(conv_, [&](std::int64_t w, std::int64_t i, std::int64_t r, std::int64_t count) {
        for (std::int64_t x = 0; x < count; ++x) {
          if constexpr (kPass == PlainPass::images) out[image_at + i + x * stride] += weights[w] * dy[r + x];
          else out[weight_at + w] += images[i + x * stride] * dy[r + x];
        }
      });
    }
  }

  Convolution conv_;
  int dy_;  // the input that is like the results
  std::int64_t image_plane_;
  std::int64_t weight_plane_;
  std::int64_t result_plane_;
};

template <typename T, PlainPass kPass>
std::unique_ptr<Kernel> make_plain(KernelInit& init) {
  const Shape& results = kPass == PlainPass::forward ? init.output_shape(0) : init.input_shape(2);
  return std::make_unique<PlainConvolution<T, kPass>>(Convolution::of(init, init.input_shape(0), results), 2);
}
template <typename T>
std::unique_ptr<Kernel> make_plain_transpose(KernelInit& init) {
  const auto conv = Convolution::of(init, init.output_shape(0), init.input_shape(0));
  return std::make_unique<PlainConvolution<T, PlainPass::images>>(conv, 0);
}

const RegisterKernel onednn_forward("Conv2D", "CPU", {DType::f32}, make_onednn_convolution, 1);
const RegisterKernel plain_forward_f32("Conv2D", "CPU", {DType::f32}, make_plain<float, PlainPass::forward>);
const RegisterKernel plain_forward_f64("Conv2D", "CPU", {DType::f64}, make_plain<double, PlainPass::forward>);
const RegisterKernel onednn_images("Conv2DBackpropInput", "CPU", {DType::f32}, make_onednn_backward_images,
                                   1);
const RegisterKernel plain_images_f32("Conv2DBackpropInput", "CPU", {DType::f32},
                                      make_plain<float, PlainPass::images>);
const RegisterKernel plain_images_f64("Conv2DBackpropInput", "CPU", {DType::f64},
                                      make_plain<double, PlainPass::images>);
const RegisterKernel onednn_transpose("Conv2DTranspose", "CPU", {DType::f32}, make_onednn_transpose, 1);
const RegisterKernel plain_transpose_f32("Conv2DTranspose", "CPU", {DType::f32}, make_plain_transpose<float>);
const RegisterKernel plain_transpose_f64("Conv2DTranspose", "CPU", {DType::f64},
                                         make_plain_transpose<double>);
const RegisterKernel onednn_weights("Conv2DBackpropFilter", "CPU", {DType::f32}, make_onednn_backward_weights,
                                    1);
const RegisterKernel plain_weights_f32("Conv2DBackpropFilter", "CPU", {DType::f32},
                                       make_plain<float, PlainPass::weights>);
const RegisterKernel plain_weights_f64("Conv2DBackpropFilter", "CPU", {DType::f64},
                                       make_plain<double, PlainPass::weights>);
const RegisterKernel blocked_forward(kBlockedConv2dOp, "CPU", {DType::f32, DType::bf16},
                                     make_blocked_convolution);
const RegisterKernel blocked_images(kBlockedConv2dImagesOp, "CPU", {DType::f32},
                                    make_blocked_backward_images);
const RegisterKernel blocked_weights(kBlockedConv2dWeightsOp, "CPU", {DType::f32, DType::bf16},
                                     make_blocked_backward_weights);

}  // namespace

}  // namespace kolo
