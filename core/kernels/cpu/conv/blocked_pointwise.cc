#include <kolo/core/kernels/cpu/conv/blocked_pointwise.h>

#include <algorithm>

#include <kolo/core/kernels/cpu/conv/blocked_pointwise_internal.h>
#include <kolo/core/kernels/cpu/gemm/gemm_parts.h>

#include <kolo/core/kernels/cpu/loops/each_target-inl.h>

#include <kolo/core/kernels/cpu/conv/block_tiles-inl.h>

HWY_BEFORE_NAMESPACE();
namespace kolo::detail::HWY_NAMESPACE {
namespace {

using Points = BlockedPointwise;

// Planes [images, blocks, pixels, lanes].
struct Planes {
  float* at;
  std::int64_t blocks, pixels;
  std::int64_t block_stride() const { return pixels * kLanes; }
  std::int64_t image_stride() const { return blocks * block_stride(); }
  float* pixel(std::int64_t image, std::int64_t block, std::int64_t n) const {
    return at + image * image_stride() + block * block_stride() + n * kLanes;
  }
};

// The pixels of the image that make results, side by side.
void take_pixels(const Points& c, const float* x, float* taken) {
  const Floats d;
  for (std::int64_t plane = 0; plane < c.images * c.channels / kLanes;
       ++plane, x += c.rows.size * c.cols.size * kLanes)
    for (std::int64_t row = 0; row < c.rows.outputs; ++row) {
      const float* from = x + row * c.rows.stride * c.cols.size * kLanes;
      for (std::int64_t col = 0; col < c.cols.outputs; ++col, from += c.cols.stride * kLanes, taken += kLanes)
        hn::Store(hn::Load(d, from), d, taken);
    }
}

// And back; the others are 0.
void put_pixels(const Points& c, const float* taken, float* x) {
  const Floats d;
  for (std::int64_t plane = 0; plane < c.images * c.channels / kLanes;
       ++plane, x += c.rows.size * c.cols.size * kLanes) {
    std::fill_n(x, c.rows.size * c.cols.size * kLanes, 0.0f);
    for (std::int64_t row = 0; row < c.rows.outputs; ++row) {
      float* to = x + row * c.rows.stride * c.cols.size * kLanes;
      for (std::int64_t col = 0; col < c.cols.outputs; ++col, to += c.cols.stride * kLanes, taken += kLanes)
        hn::Store(hn::Load(d, taken), d, to);
    }
  }
}

// Weights as panels [inputs, vectors, lanes], one for each pair of blocks of outputs and one for the block
// that is left. The strides are those of `weights`.
void pack(const float* weights, std::int64_t inputs, std::int64_t input_stride, std::int64_t outputs,
          std::int64_t output_stride, float* panels) {
  const Floats d;
  const hn::RebindToSigned<Floats> integers;
  const auto lanes =
      hn::Mul(hn::Iota(integers, 0), hn::Set(integers, static_cast<std::int32_t>(output_stride)));
  for (std::int64_t first = 0; first < outputs; first += 2 * kLanes) {
    const std::int64_t end = std::min(first + 2 * kLanes, outputs);
    for (std::int64_t k = 0; k < inputs; ++k)
      for (std::int64_t o = first; o < end; o += kLanes, panels += kLanes) {
        const float* const from = weights + k * input_stride + o * output_stride;
        hn::Store(output_stride == 1 ? hn::LoadU(d, from) : hn::GatherIndex(d, from, lanes), d, panels);
      }
  }
}

// Some blocks of a group's pixels: runs of neighbours, one for each image and block.
struct Runs {
  Planes planes = {};
  PixelGroup group = {};
  std::int64_t first = 0, blocks = 0;
  std::int64_t count() const { return group.images * blocks; }
  std::int64_t lines() const { return parts_of(group.pixels * kLanes, kLine); }
  const float* run(std::int64_t n) const {
    return planes.pixel(group.image + n / blocks, first + n % blocks, group.pixel);
  }
};

// Asks for the pixels of a later group, a part of a run in each of `calls` calls of a tile that asks `times`
// times.
class Later {
 public:
  Later(const Runs& a, const Runs& b, std::int64_t calls, std::int64_t times)
      : a_(a), b_(b), parts_(std::max<std::int64_t>(1, calls / std::max<std::int64_t>(1, runs()))) {
    lines_ = parts_of(std::max(a.lines(), b.lines()), parts_);
    at_a_time_ = parts_of(lines_, times);
  }
  Ahead next() {
    const std::int64_t n = call_ / parts_, part = call_ % parts_;
    if (n >= runs()) return {};
    ++call_;
    return {(n < a_.count() ? a_.run(n) : b_.run(n - a_.count())) + part * lines_ * kLine, at_a_time_};
  }

 private:
  std::int64_t runs() const { return a_.count() + b_.count(); }
  Runs a_, b_;
  std::int64_t parts_, lines_ = 0, at_a_time_ = 0, call_ = 0;
};

// Blocks of inputs that pass through the innermost loop at once: their part of a panel stays in the nearest
// cache.
constexpr std::int64_t kDepth = 256 / kLanes;

// to's vectors from block `first` on = or += the runs times the panel, with the tail.
template <int kVectors>
void multiply_runs(const Runs& in, const float* panel, const Planes& to, std::int64_t first,
                   const Points::Tail& tail, Later& later) {
  const PixelGroup& group = in.group;
  const std::int64_t bands = parts_of(group.pixels, tile_rows(kVectors));
  for (std::int64_t n = group.image; n < group.image + group.images; ++n)
    for (std::int64_t band = 0; band < bands; ++band) {
      const Part rows(group.pixels, band, bands);
      const std::int64_t row = group.pixel + rows.first;
      float* const c = to.pixel(n, first, row);
      const auto beside = [&](const float* x) { return x == nullptr ? nullptr : x + (c - to.at); };
      const auto tile = tail.added != nullptr ? product_tile_of<kVectors, true>(rows.count)
                                              : product_tile_of<kVectors>(rows.count);
      tile({in.planes.pixel(n, in.first, row), in.planes.block_stride(), in.blocks, panel, c,
            to.block_stride(), in.first > 0, later.next(), beside(tail.added), beside(tail.y)});
    }
}

void multiply(const Points& c, const Planes& from, const float* panels, const Planes& to,
              const Points::Tail& tail = {}) {
  constexpr std::int64_t kPixels = 448;  // with kDepth blocks of them in the second nearest cache
  // What is added may stand where parts of sums would be kept.
  const std::int64_t depth = tail.added == nullptr ? kDepth : from.blocks;
  const PixelGroups groups(c, kPixels);
  const std::int64_t parts = parts_of(from.blocks, depth), all = groups.count() * parts;
  const auto runs = [&](std::int64_t n) {
    if (n >= all) return Runs{};
    const Part part(from.blocks, n % parts, parts);
    return Runs{from, groups.at(n / parts), part.first, part.count};
  };
  for (std::int64_t n = 0; n < all; ++n) {
    const Runs in = runs(n);
    const std::int64_t bands = parts_of(in.group.pixels, kTileRows);
    Later later(runs(n + 1), {}, (to.blocks + 1) / 2 * in.group.images * bands, in.blocks);
    for (std::int64_t b = 0; b < to.blocks; b += 2) {
      const std::int64_t vectors = std::min<std::int64_t>(2, to.blocks - b);
      const float* const panel = panels + (b * from.blocks + vectors * in.first) * kLanes * kLanes;
      if (vectors == 2) multiply_runs<2>(in, panel, to, b, tail, later);
      else multiply_runs<1>(in, panel, to, b, tail, later);
    }
  }
}

float* mutable_floats(const float* x) { return const_cast<float*>(x); }  // Planes are read and written

void results(const Points& c, const float* x, const float* weights, float* y, float* scratch) {
  float* const taken = scratch + c.channels * c.outs;
  pack(weights, c.channels, 1, c.outs, c.channels, scratch);
  if (!c.takes_all_pixels()) take_pixels(c, x, taken), x = taken;
  multiply(c, {mutable_floats(x), c.channels / kLanes, pixels_of(c)}, scratch,
           {y, c.outs / kLanes, pixels_of(c)});
}

void image_gradient(const Points& c, const float* weights, const float* dy, const Points::Tail& tail,
                    float* dx, float* scratch) {
  float* const taken = c.takes_all_pixels() ? dx : scratch + c.channels * c.outs;
  pack(weights, c.outs, c.channels, c.channels, 1, scratch);
  multiply(c, {mutable_floats(dy), c.outs / kLanes, pixels_of(c)}, scratch,
           {taken, c.channels / kLanes, pixels_of(c)}, tail);
  if (!c.takes_all_pixels()) put_pixels(c, taken, dx);
}

// dweights [outs, channels] = or += dy's rows of this group times x's, for two blocks of channels or one.
template <int kVectors>
void sum_group(const PixelGroup& group, const Planes& dy, const Planes& x, std::int64_t first, bool add,
               float* dweights, Later& later) {
  const std::int64_t channels = x.blocks * kLanes;
  for (std::int64_t row = 0; row < dy.blocks * kLanes; row += kSumRows)
    sum_tile<kVectors>({dy.pixel(group.image, row / kLanes, group.pixel) + row % kLanes,
                        x.pixel(group.image, first, group.pixel), x.block_stride(), group.pixels,
                        dweights + row * channels + first * kLanes, channels, add, group.images,
                        dy.image_stride(), x.image_stride(), later.next()});
}

void weight_gradient(const Points& c, const float* x, const float* dy, float* dweights, float* scratch) {
  if (!c.takes_all_pixels()) take_pixels(c, x, scratch), x = scratch;
  const Planes results{mutable_floats(dy), c.outs / kLanes, pixels_of(c)},
      images{mutable_floats(x), c.channels / kLanes, pixels_of(c)};
  // Two blocks of few pixels stay in the nearest cache. Of weights that do not stay in the next one each
  // group costs a pass over memory: 512 → 2048 channels at 7 × 7, 128 pixels → 400: 125 → 149 GFLOP/s; 64 →
  // 256 at 56 × 56: 154 → 141.
  const std::int64_t together = c.channels * c.outs >= 512 * 1024 ? 400 : 160;
  const PixelGroups groups(c, together);
  const auto runs = [&](const Planes& planes, std::int64_t n) {
    return n < groups.count() ? Runs{planes, groups.at(n), 0, planes.blocks} : Runs{};
  };
  for (std::int64_t n = 0; n < groups.count(); ++n) {
    const PixelGroup group = groups.at(n);
    Later later(runs(results, n + 1), runs(images, n + 1), (images.blocks + 1) / 2 * (c.outs / kSumRows),
                std::max<std::int64_t>(1, group.images * (group.pixels / 4)));
    for (std::int64_t b = 0; b < images.blocks; b += 2) {
      if (images.blocks - b >= 2) sum_group<2>(group, results, images, b, n > 0, dweights, later);
      else sum_group<1>(group, results, images, b, n > 0, dweights, later);
    }
  }
}

std::int64_t block() { return kLanes; }

}  // namespace
}  // namespace kolo::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kolo::detail {

HWY_EXPORT(block);
HWY_EXPORT(results);
HWY_EXPORT(image_gradient);
HWY_EXPORT(weight_gradient);

std::int64_t BlockedPointwise::block() { return HWY_DYNAMIC_DISPATCH(block)(); }

bool BlockedPointwise::fits() const {
  const auto inside = [](const Axis& a) {
    return a.outputs > 0 && a.stride > 0 && (a.outputs - 1) * a.stride < a.size &&
           (a.stride > 1 || a.outputs == a.size);
  };
  return images > 0 && channels > 0 && outs > 0 && channels % block() == 0 && outs % block() == 0 &&
         inside(rows) && inside(cols);
}

namespace {
std::size_t taken_bytes(const BlockedPointwise& c) {
  return c.takes_all_pixels()
             ? 0
             : static_cast<std::size_t>(c.images * c.channels * pixels_of(c)) * sizeof(float);
}
std::size_t panels_bytes(const BlockedPointwise& c) {
  return static_cast<std::size_t>(c.channels * c.outs) * sizeof(float);
}
}  // namespace

std::size_t BlockedPointwise::results_scratch_bytes() const {
  return panels_bytes(*this) + taken_bytes(*this);
}
std::size_t BlockedPointwise::image_gradient_scratch_bytes() const {
  return panels_bytes(*this) + taken_bytes(*this);
}
std::size_t BlockedPointwise::weight_gradient_scratch_bytes() const { return taken_bytes(*this); }

void BlockedPointwise::results(const float* x, const float* weights, float* y, float* scratch) const {
  HWY_DYNAMIC_DISPATCH(results)(*this, x, weights, y, scratch);
}

void BlockedPointwise::image_gradient(const float* weights, const float* dy, const Tail& tail, float* dx,
                                      float* scratch) const {
  HWY_DYNAMIC_DISPATCH(image_gradient)(*this, weights, dy, tail, dx, scratch);
}

void BlockedPointwise::weight_gradient(const float* x, const float* dy, float* dweights,
                                       float* scratch) const {
  HWY_DYNAMIC_DISPATCH(weight_gradient)(*this, x, dy, dweights, scratch);
}

}  // namespace kolo::detail
#endif  // HWY_ONCE
