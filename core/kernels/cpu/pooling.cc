#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/kernels/cpu/onednn/onednn.h>
#include <kolo/core/kernels/cpu/pooling_windows.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/kernels/parallel.h>
#include <kolo/core/ops/blocked.h>
#include <kolo/core/ops/pooling.h>

namespace kolo {
namespace {

using detail::Pooling;

// oneDNN pools row-major images by transposing small tiles as it goes, so no reorders are needed. block: of
// the channels (core/ops/blocked.h); 0 where all lie row-major. type: of images and results.
class OneDnnPooling {
  using Forward = dnnl::pooling_forward;

 public:
  OneDnnPooling(const Pooling& p, dnnl::algorithm algorithm, std::int64_t block = 0, DType type = DType::f32)
      : algorithm_(algorithm),
        images_(detail::images_in_order(type, p.images, block)),
        results_(detail::images_in_order(type, p.results, block)),
        cells_(detail::images_in_order(max_pool_cell_type({p.rows.window, p.cols.window}), p.results, block)),
        strides_{p.rows.stride, p.cols.stride},
        window_{p.rows.window, p.cols.window},
        pad_before_{p.rows.pad_before, p.cols.pad_before},
        pad_after_{pad_after(p.rows), pad_after(p.cols)} {}

  std::optional<detail::OneDnnCall> forward() const {
    const auto chosen = detail::fast_description<Forward::primitive_desc>(forward_pass());
    if (!chosen || !cells_fit(chosen)) return std::nullopt;
    std::vector<detail::OneDnnArgument> outputs{{DNNL_ARG_DST, results_, results_}};
    if (has_cells()) outputs.push_back({DNNL_ARG_WORKSPACE, cells_, cells_});
    return detail::OneDnnCall(Forward(chosen), chosen.scratchpad_desc(), {{DNNL_ARG_SRC, images_, images_}},
                              outputs);
  }

  std::optional<detail::OneDnnCall> backward() const {
    const Forward::primitive_desc hint(forward_pass(), detail::own_scratch(), detail::onednn_engine(), true);
    if (!hint || !cells_fit(hint)) return std::nullopt;
    const dnnl::pooling_backward::desc pass(algorithm_, images_, results_, strides_, window_, pad_before_,
                                            pad_after_);
    const auto chosen = detail::fast_description<dnnl::pooling_backward::primitive_desc>(pass, hint);
    if (!chosen) return std::nullopt;
    std::vector<detail::OneDnnArgument> inputs;
    if (has_cells()) inputs.push_back({DNNL_ARG_WORKSPACE, cells_, cells_});
    inputs.push_back({DNNL_ARG_DIFF_DST, results_, results_});
    return detail::OneDnnCall(dnnl::pooling_backward(chosen), chosen.scratchpad_desc(), inputs,
                              {{DNNL_ARG_DIFF_SRC, images_, images_}});
  }

 private:
  static std::int64_t pad_after(const WindowAxis& axis) {
    return (axis.outputs - 1) * axis.stride + axis.window - axis.size - axis.pad_before;
  }
  bool has_cells() const { return algorithm_ == dnnl::algorithm::pooling_max; }

  // MaxPool's second output is oneDNN's workspace where that is what the op promises: one cell number for
  // each result.
  bool cells_fit(const Forward::primitive_desc& chosen) const {
    return !has_cells() || chosen.workspace_desc() == cells_;
  }

  Forward::desc forward_pass() const {
    return {dnnl::prop_kind::forward_training,
            algorithm_,
            images_,
            results_,
            strides_,
            window_,
            pad_before_,
            pad_after_};
  }

  dnnl::algorithm algorithm_;
  dnnl::memory::desc images_, results_, cells_;
  dnnl::memory::dims strides_, window_, pad_before_, pad_after_;
};

constexpr dnnl::algorithm kMax = dnnl::algorithm::pooling_max;
constexpr dnnl::algorithm kMean = dnnl::algorithm::pooling_avg_exclude_padding;

// Its kernels compute with numbers of 32 bits.
constexpr std::int64_t kMaxOneDnnWindow = 1 << 12;
bool is_small(const Pooling& p) {
  return std::max({p.rows.window, p.rows.stride, p.cols.window, p.cols.stride}) <= kMaxOneDnnWindow;
}

template <dnnl::algorithm kAlgorithm>
std::unique_ptr<Kernel> make_onednn_forward(KernelInit& init) {
  return detail::make_onednn_kernel(init, {0}, [](const KernelInit& in) {
    const Pooling pooling = Pooling::of(in, in.output_shape(0));
    return is_small(pooling) ? OneDnnPooling(pooling, kAlgorithm).forward() : std::nullopt;
  });
}

template <dnnl::algorithm kAlgorithm>
std::unique_ptr<Kernel> make_onednn_backward(KernelInit& init) {
  // Input 0, the images, is there for its shape alone.
  const auto inputs = kAlgorithm == kMax ? std::vector<int>{1, 2} : std::vector<int>{1};
  return detail::make_onednn_kernel(init, inputs, [](const KernelInit& in) {
    const Pooling pooling = Pooling::of(in, in.input_shape(in.num_inputs() - 1));
    return is_small(pooling) ? OneDnnPooling(pooling, kAlgorithm).backward() : std::nullopt;
  });
}

// The ops of blocked.h; blocked_pooling.cc takes max pooling of f32 in blocks.
template <dnnl::algorithm kAlgorithm>
std::unique_ptr<Kernel> make_blocked_forward(KernelInit& init) {
  return detail::make_onednn_kernel(init, {0}, [](const KernelInit& in) {
    const Pooling pooling = Pooling::of(in, in.output_shape(0));
    return is_small(pooling)
               ? OneDnnPooling(pooling, kAlgorithm, in.attr<std::int64_t>("block"), in.input_dtype(0))
                     .forward()
               : std::nullopt;
  });
}

template <dnnl::algorithm kAlgorithm>
std::unique_ptr<Kernel> make_blocked_backward(KernelInit& init) {
  const auto inputs = kAlgorithm == kMax ? std::vector<int>{0, 1} : std::vector<int>{0};
  return detail::make_onednn_kernel(init, inputs, [](const KernelInit& in) {
    const Pooling pooling = Pooling::of(in, in.output_shape(0), in.input_shape(in.num_inputs() - 1));
    return is_small(pooling) ? OneDnnPooling(pooling, kAlgorithm, in.attr<std::int64_t>("block")).backward()
                             : std::nullopt;
  });
}

// What the plain kernels share: each thread takes whole planes. Of any type; for gradient checks in f64 and
// for what oneDNN declines.
class PlanePooling : public Kernel {
 public:
  explicit PlanePooling(Pooling pooling)
      : pool_(std::move(pooling)),
        image_plane_(pool_.rows.size * pool_.cols.size),
        result_plane_(pool_.rows.outputs * pool_.cols.outputs) {}

 protected:
  template <typename Plane>
  void for_each_plane(const Plane& plane) const {
    parallel_for(pool_.images.dim(0) * pool_.images.dim(1), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t p = begin; p < end; ++p) plane(p * image_plane_, p * result_plane_);
    });
  }

  // Calls visit(result) for each position of the window, and returns that position's cells inside the image.
  struct Cells {
    std::int64_t row, row_begin, row_end;  // of the image; row: where cell row 0 lies
    std::int64_t col, col_begin, col_end;
  };
  template <typename Visit>
  void for_each_window(const Visit& visit) const {
    for (std::int64_t y = 0; y < pool_.rows.outputs; ++y)
      for (std::int64_t x = 0; x < pool_.cols.outputs; ++x) {
        const std::int64_t row = y * pool_.rows.stride - pool_.rows.pad_before,
                           col = x * pool_.cols.stride - pool_.cols.pad_before;
        visit(y * pool_.cols.outputs + x,
              Cells{row, std::max<std::int64_t>(0, row), std::min(row + pool_.rows.window, pool_.rows.size),
                    col, std::max<std::int64_t>(0, col), std::min(col + pool_.cols.window, pool_.cols.size)});
      }
  }
  template <typename Visit>
  void for_each_cell(const Cells& cells, const Visit& visit) const {
    for (std::int64_t r = cells.row_begin; r < cells.row_end; ++r)
      for (std::int64_t c = cells.col_begin; c < cells.col_end; ++c)
        visit(r * pool_.cols.size + c, (r - cells.row) * pool_.cols.window + c - cells.col);
  }

  Pooling pool_;
  std::int64_t image_plane_;
  std::int64_t result_plane_;
};

template <typename T, typename Cell>
class PlainMaxPool final : public PlanePooling {
 public:
  explicit PlainMaxPool(const KernelInit& init) : PlanePooling(Pooling::of(init, init.output_shape(0))) {}

  void compute(KernelContext& context) override {
    for_each_plane([&](std::int64_t image_at, std::int64_t result_at) {
      const T* x = context.input(0).data<T>() + image_at;
      T* y = context.output(0).data<T>() + result_at;
      Cell* chosen = context.output(1).data<Cell>() + result_at;
      for_each_window([&](std::int64_t result, const Cells& cells) {
        bool first = true;
        for_each_cell(cells, [&](std::int64_t at, std::int64_t cell) {
          if (!first && !(x[at] > y[result])) return;
          first = false;
          y[result] = x[at];
          chosen[result] = static_cast<Cell>(cell);
        });
      });
    });
  }
};

template <typename T, typename Cell>
class PlainMaxPoolGrad final : public PlanePooling {
 public:
  explicit PlainMaxPoolGrad(const KernelInit& init) : PlanePooling(Pooling::of(init, init.input_shape(2))) {}

  void compute(KernelContext& context) override {
    // Threads do not throw. Padding was never chosen; what lies beyond the image would be written elsewhere.
    std::atomic<bool> all_inside = true;
    for_each_plane([&](std::int64_t image_at, std::int64_t result_at) {
      const Cell* chosen = context.input(1).data<Cell>() + result_at;
      const T* dy = context.input(2).data<T>() + result_at;
      T* dx = context.output(0).data<T>() + image_at;
      std::fill_n(dx, image_plane_, T(0));
      for_each_window([&](std::int64_t result, const Cells& cells) {
        const std::int64_t cell = chosen[result];
        const std::int64_t row = cells.row + cell / pool_.cols.window,
                           col = cells.col + cell % pool_.cols.window;
        if (row >= cells.row_begin && row < cells.row_end && col >= cells.col_begin && col < cells.col_end)
          dx[row * pool_.cols.size + col] += dy[result];
        else all_inside = false;
      });
    });
    if (!all_inside)
      throw InvalidArgumentError("max_pool: a cell lies outside of its window, or of the image");
  }
};

template <typename T>
class PlainAvgPool final : public PlanePooling {
 public:
  explicit PlainAvgPool(const KernelInit& init) : PlanePooling(Pooling::of(init, init.output_shape(0))) {}

  void compute(KernelContext& context) override {
    for_each_plane([&](std::int64_t image_at, std::int64_t result_at) {
      const T* x = context.input(0).data<T>() + image_at;
      T* y = context.output(0).data<T>() + result_at;
      for_each_window([&](std::int64_t result, const Cells& cells) {
        T sum(0);
        for_each_cell(cells, [&](std::int64_t at, std::int64_t) { sum += x[at]; });
        y[result] =
            sum / static_cast<T>((cells.row_end - cells.row_begin) * (cells.col_end - cells.col_begin));
      });
    });
  }
};

template <typename T>
class PlainAvgPoolGrad final : public PlanePooling {
 public:
  explicit PlainAvgPoolGrad(const KernelInit& init) : PlanePooling(Pooling::of(init, init.input_shape(1))) {}

  void compute(KernelContext& context) override {
    for_each_plane([&](std::int64_t image_at, std::int64_t result_at) {
      const T* dy = context.input(1).data<T>() + result_at;
      T* dx = context.output(0).data<T>() + image_at;
      std::fill_n(dx, image_plane_, T(0));
      for_each_window([&](std::int64_t result, const Cells& cells) {
        const T share = dy[result] /
                        static_cast<T>((cells.row_end - cells.row_begin) * (cells.col_end - cells.col_begin));
        for_each_cell(cells, [&](std::int64_t at, std::int64_t) { dx[at] += share; });
      });
    });
  }
};

template <typename T>
std::unique_ptr<Kernel> make_max_pool(KernelInit& init) {
  if (init.output_dtype(1) == DType::u8) return std::make_unique<PlainMaxPool<T, std::uint8_t>>(init);
  return std::make_unique<PlainMaxPool<T, std::int32_t>>(init);
}

template <typename T>
std::unique_ptr<Kernel> make_max_pool_grad(KernelInit& init) {
  if (init.input_dtype(1) == DType::u8) return std::make_unique<PlainMaxPoolGrad<T, std::uint8_t>>(init);
  return std::make_unique<PlainMaxPoolGrad<T, std::int32_t>>(init);
}

const RegisterKernel onednn_max_pool("MaxPool", "CPU", {DType::f32}, make_onednn_forward<kMax>, 1);
const RegisterKernel max_pool_f32("MaxPool", "CPU", {DType::f32}, make_max_pool<float>);
const RegisterKernel max_pool_f64("MaxPool", "CPU", {DType::f64}, make_max_pool<double>);
const RegisterKernel onednn_max_pool_grad("MaxPoolGrad", "CPU", {DType::f32}, make_onednn_backward<kMax>, 1);
const RegisterKernel max_pool_grad_f32("MaxPoolGrad", "CPU", {DType::f32}, make_max_pool_grad<float>);
const RegisterKernel max_pool_grad_f64("MaxPoolGrad", "CPU", {DType::f64}, make_max_pool_grad<double>);
const RegisterKernel onednn_avg_pool("AvgPool", "CPU", {DType::f32}, make_onednn_forward<kMean>, 1);
const RegisterKernel avg_pool_f32("AvgPool", "CPU", {DType::f32}, make_kernel<PlainAvgPool<float>>);
const RegisterKernel avg_pool_f64("AvgPool", "CPU", {DType::f64}, make_kernel<PlainAvgPool<double>>);
const RegisterKernel onednn_avg_pool_grad("AvgPoolGrad", "CPU", {DType::f32}, make_onednn_backward<kMean>, 1);
const RegisterKernel avg_pool_grad_f32("AvgPoolGrad", "CPU", {DType::f32},
                                       make_kernel<PlainAvgPoolGrad<float>>);
const RegisterKernel avg_pool_grad_f64("AvgPoolGrad", "CPU", {DType::f64},
                                       make_kernel<PlainAvgPoolGrad<double>>);
const RegisterKernel blocked_max_pool(kBlockedMaxPoolOp, "CPU", {DType::f32, DType::bf16},
                                      make_blocked_forward<kMax>);
const RegisterKernel blocked_max_pool_grad(kBlockedMaxPoolGradOp, "CPU", {DType::u8},
                                           make_blocked_backward<kMax>);
const RegisterKernel blocked_avg_pool(kBlockedAvgPoolOp, "CPU", {DType::f32}, make_blocked_forward<kMean>);
const RegisterKernel blocked_avg_pool_grad(kBlockedAvgPoolGradOp, "CPU", {DType::f32},
                                           make_blocked_backward<kMean>);

// A result lies between two elements of the image: (1 − share) of `before`, share of `behind`.
struct Place {
  std::int64_t before;
  std::int64_t behind;
  double share;
};

struct Rule {
  explicit Rule(const KernelInit& init)
      : nearest(init.attr<std::string>("method") == "nearest"),
        align_corners(init.attr<bool>("align_corners")),
        half_pixel_centers(init.attr<bool>("half_pixel_centers")) {}

  // One dimension: the places of `out` results among `in` elements.
  void fill(std::int64_t in, std::int64_t out, std::vector<Place>& places) const {
    const double scale = align_corners && out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1)
                                                  : static_cast<double>(in) / static_cast<double>(out);
    places.resize(static_cast<std::size_t>(out));
    for (std::int64_t i = 0; i < out; ++i)
      places[static_cast<std::size_t>(i)] = nearest ? nearest_to(i, scale, in) : between(i, scale, in);
  }

  bool nearest;
  bool align_corners;
  bool half_pixel_centers;

 private:
  Place nearest_to(std::int64_t i, double scale, std::int64_t in) const {
    const double at = (static_cast<double>(i) + (half_pixel_centers ? 0.5 : 0)) * scale;
    const auto index = static_cast<std::int64_t>(align_corners ? std::round(at) : std::floor(at));
    return {std::min(index, in - 1), std::min(index, in - 1), 0};
  }
  Place between(std::int64_t i, double scale, std::int64_t in) const {
    const double at =
        half_pixel_centers ? (static_cast<double>(i) + 0.5) * scale - 0.5 : static_cast<double>(i) * scale;
    const auto below = static_cast<std::int64_t>(std::floor(at));
    return {std::max<std::int64_t>(below, 0), std::min(below + 1, in - 1), at - std::floor(at)};
  }
};

// Where rows and columns lie; filled when the kernel is made, if the shapes are known then.
class Places {
 public:
  Places(const KernelInit& init, const Shape& images, const Shape& results) : rule_(init) {
    if (images.is_fully_known() && results.is_fully_known()) find(images, results);
  }
  void find(const Shape& images, const Shape& results) {
    // Of nothing: the list of places might be far longer than both.
    if (images.elements() == 0 || results.elements() == 0) return;
    if (images == images_ && results == results_) return;
    images_ = images, results_ = results;
    rule_.fill(images.dim(2), results.dim(2), rows);
    rule_.fill(images.dim(3), results.dim(3), cols);
  }
  std::vector<Place> rows, cols;

 private:
  Rule rule_;
  Shape images_, results_;
};

// a where the share is 0: what lies behind may be infinite.
template <typename T>
T mix(T a, T b, double share) {
  return share == 0 ? a : static_cast<T>(a + (b - a) * static_cast<T>(share));
}

template <typename T>
class Resize final : public Kernel {
 public:
  explicit Resize(const KernelInit& init) : places_(init, init.input_shape(0), init.output_shape(0)) {}

  void compute(KernelContext& context) override {
    const Shape &images = context.input(0).shape(), &results = context.output(0).shape();
    places_.find(images, results);
    const std::int64_t width = images.dim(3), rows = results.dim(2), cols = results.dim(3);
    const T* x = context.input(0).data<T>();
    T* y = context.output(0).data<T>();
    const std::int64_t grain = std::max<std::int64_t>(1, kElementGrain / std::max<std::int64_t>(1, cols));
    parallel_for(results.dim(0) * results.dim(1) * rows, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t line = begin; line < end; ++line) {
        const T* plane = x + line / rows * images.dim(2) * width;
        const Place& row = places_.rows[static_cast<std::size_t>(line % rows)];
        const T *above = plane + row.before * width, *below = plane + row.behind * width;
        for (std::int64_t j = 0; j < cols; ++j) {
          const Place& col = places_.cols[static_cast<std::size_t>(j)];
          y[line * cols + j] = mix(mix(above[col.before], above[col.behind], col.share),
                                   mix(below[col.before], below[col.behind], col.share), row.share);
        }
      }
    });
  }

 private:
  Places places_;
};

// Each result gives its gradient back to the elements it was made of. A plane belongs to one thread.
template <typename T>
class ResizeGrad final : public Kernel {
 public:
  explicit ResizeGrad(const KernelInit& init) : places_(init, init.input_shape(0), init.input_shape(1)) {}

  void compute(KernelContext& context) override {
    const Shape &images = context.input(0).shape(), &results = context.input(1).shape();
    places_.find(images, results);
    const std::int64_t width = images.dim(3), area = images.dim(2) * width, rows = results.dim(2),
                       cols = results.dim(3);
    const T* dy = context.input(1).data<T>();
    T* dx = context.output(0).data<T>();
    parallel_for(images.dim(0) * images.dim(1), 1, [&](std::int64_t begin, std::int64_t end) {
      std::fill(dx + begin * area, dx + end * area, T(0));
      for (std::int64_t line = begin * rows; line < end * rows; ++line) {
        T* plane = dx + line / rows * area;
        const Place& row = places_.rows[static_cast<std::size_t>(line % rows)];
        for (std::int64_t j = 0; j < cols; ++j) {
          const Place& col = places_.cols[static_cast<std::size_t>(j)];
          const T of_below = dy[line * cols + j] * static_cast<T>(row.share);
          const T of_above = dy[line * cols + j] - of_below;
          give(plane + row.before * width, col, of_above);
          give(plane + row.behind * width, col, of_below);
        }
      }
    });
  }

 private:
  static void give(T* row, const Place& col, T gradient) {
    const T behind = gradient * static_cast<T>(col.share);
    row[col.before] += gradient - behind;
    row[col.behind] += behind;
  }
  Places places_;
};

const RegisterKernel resize_f32("Resize", "CPU", {DType::f32}, make_kernel<Resize<float>>);
const RegisterKernel resize_f64("Resize", "CPU", {DType::f64}, make_kernel<Resize<double>>);
const RegisterKernel resize_grad_f32("ResizeGrad", "CPU", {DType::f32}, make_kernel<ResizeGrad<float>>);
const RegisterKernel resize_grad_f64("ResizeGrad", "CPU", {DType::f64}, make_kernel<ResizeGrad<double>>);

}  // namespace

}  // namespace kolo
