#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <kolo/core/kernels/cpu/parallel.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo {
namespace {

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

template <template <typename> class K, typename T>
std::unique_ptr<Kernel> make(KernelInit& init) {
  return std::make_unique<K<T>>(init);
}

const RegisterKernel resize_f32("Resize", "CPU", {DType::f32}, make<Resize, float>);
const RegisterKernel resize_f64("Resize", "CPU", {DType::f64}, make<Resize, double>);
const RegisterKernel resize_grad_f32("ResizeGrad", "CPU", {DType::f32}, make<ResizeGrad, float>);
const RegisterKernel resize_grad_f64("ResizeGrad", "CPU", {DType::f64}, make<ResizeGrad, double>);

}  // namespace
}  // namespace kolo
