#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include <kolo/core/kernels/cpu/element_bits.h>
#include <kolo/core/kernels/cpu/parallel_rows.h>
#include <kolo/core/kernels/cpu/reduce.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/kernels/parallel.h>
#include <kolo/core/ops/blocked.h>
#include <kolo/core/ops/dtypes.h>
#include <kolo/core/ops/slicing_internal.h>

namespace kolo {
namespace {

// Elements between a dense tensor and places that strides describe.
// to[i] = from[offset of i], i in row-major order of the index's dimensions; elements of `size` bytes.
void gather_strided(const detail::StridedIndex<1>& index, std::size_t size, const std::byte* from,
                    std::byte* to) {
  detail::with_bits(size, [&](auto tag) {
    using Bits = typename decltype(tag)::type;
    const auto* source = reinterpret_cast<const Bits*>(from);
    auto* target = reinterpret_cast<Bits*>(to);
    const std::int64_t step = index.row_strides()[0];
    detail::parallel_rows(index, [=](std::int64_t at, const auto& offsets, std::int64_t count) {
      const Bits* x = source + offsets[0];
      if (step == 1) std::copy_n(x, count, target + at);
      else if (step == 0) std::fill_n(target + at, count, *x);
      else
        for (std::int64_t i = 0; i < count; ++i) target[at + i] = x[i * step];
    });
  });
}

// to[offset of i] = from[i]; no two offsets are the same.
void scatter_strided(const detail::StridedIndex<1>& index, std::size_t size, const std::byte* from,
                     std::byte* to) {
  detail::with_bits(size, [&](auto tag) {
    using Bits = typename decltype(tag)::type;
    const auto* source = reinterpret_cast<const Bits*>(from);
    auto* target = reinterpret_cast<Bits*>(to);
    const std::int64_t step = index.row_strides()[0];
    detail::parallel_rows(index, [=](std::int64_t at, const auto& offsets, std::int64_t count) {
      Bits* y = target + offsets[0];
      if (step == 1) std::copy_n(source + at, count, y);
      else
        for (std::int64_t i = 0; i < count; ++i) y[i * step] = source[at + i];
    });
  });
}

// Where the elements of a slice lie in the whole tensor.
struct SlicePlaces {
  detail::StridedIndex<1> index;
  std::int64_t start_bytes = 0;

  SlicePlaces(const detail::SliceSpec& spec, const Tensor& whole) {
    const detail::ResolvedSlice slice = detail::resolve_slice(spec, whole.shape());
    const auto& dims = whole.shape().dims();
    std::int64_t stride = whole.elements(), start = 0;
    for (std::size_t axis = 0; axis < dims.size(); ++axis) {
      stride = dims[axis] == 0 ? 0 : stride / dims[axis];
      start += slice.begin[axis] * stride;
      index.push(slice.count[axis], {stride * slice.stride[axis]});
    }
    start_bytes = start * static_cast<std::int64_t>(size_of(whole.dtype()));
  }
};

class StridedSliceKernel final : public Kernel {
 public:
  explicit StridedSliceKernel(KernelInit& init) : spec_(detail::slice_spec(init)) {}
  void compute(KernelContext& context) override {
    const Tensor& x = context.input(0);
    const SlicePlaces places(spec_, x);
    gather_strided(places.index, size_of(x.dtype()), x.raw() + places.start_bytes, context.output(0).raw());
  }

 private:
  detail::SliceSpec spec_;
};

class StridedSliceGradKernel final : public Kernel {
 public:
  explicit StridedSliceGradKernel(KernelInit& init) : spec_(detail::slice_spec(init)) {}
  void compute(KernelContext& context) override {
    const Tensor& dx = context.output(0);
    std::fill_n(dx.raw(), dx.bytes(), std::byte{0});
    const SlicePlaces places(spec_, dx);
    scatter_strided(places.index, size_of(dx.dtype()), context.input(0).raw(), dx.raw() + places.start_bytes);
  }

 private:
  detail::SliceSpec spec_;
};

class BatchPart {
 public:
  explicit BatchPart(KernelInit& init)
      : index_(init.attr<std::int64_t>("index")), parts_(init.attr<std::int64_t>("parts")) {}
  Tensor rows_of(const Tensor& batch) const {
    const auto [begin, end] = detail::rows_of_part(batch.shape().dim(0), index_, parts_);
    return batch.rows(begin, end);
  }

 private:
  std::int64_t index_, parts_;
};

class BatchSliceKernel final : public Kernel {
 public:
  explicit BatchSliceKernel(KernelInit& init) : part_(init) {}
  void compute(KernelContext& context) override {
    context.output(0).copy_from(part_.rows_of(context.input(0)));
  }

 private:
  BatchPart part_;
};

class BatchSliceGradKernel final : public Kernel {
 public:
  explicit BatchSliceGradKernel(KernelInit& init) : part_(init) {}
  void compute(KernelContext& context) override {
    const Tensor& dx = context.output(0);
    std::fill_n(dx.raw(), dx.bytes(), std::byte{0});
    part_.rows_of(dx).copy_from(context.input(0));
  }

 private:
  BatchPart part_;
};

class ReverseKernel final : public Kernel {
 public:
  explicit ReverseKernel(KernelInit& init) : axes_(init.attr<std::vector<std::int64_t>>("axes")) {}
  void compute(KernelContext& context) override {
    const Tensor& x = context.input(0);
    if (x.elements() == 0) return;
    const auto& dims = x.shape().dims();
    const auto rank = static_cast<std::int64_t>(dims.size());
    std::int64_t stride = x.elements(), start = 0;
    detail::StridedIndex<1> index;
    for (std::int64_t axis = 0; axis < rank; ++axis) {
      stride /= dims[axis];
      const bool reversed = std::any_of(axes_.begin(), axes_.end(),
                                        [&](std::int64_t own) { return own == axis || own == axis - rank; });
      if (reversed) start += (dims[axis] - 1) * stride;
      index.push(dims[axis], {reversed ? -stride : stride});
    }
    const std::size_t size = size_of(x.dtype());
    gather_strided(index, size, x.raw() + start * static_cast<std::int64_t>(size), context.output(0).raw());
  }

 private:
  std::vector<std::int64_t> axes_;
};

template <typename K>
RegisterKernel slicing_kernel(const char* op) {
  return RegisterKernel(op, "CPU", detail::kNumeric, make_kernel<K>);
}

const RegisterKernel slice_kernels[] = {
    slicing_kernel<StridedSliceKernel>("StridedSlice"),
    slicing_kernel<StridedSliceGradKernel>("StridedSliceGrad"),
    slicing_kernel<BatchSliceKernel>("BatchSlice"),
    slicing_kernel<BatchSliceGradKernel>("BatchSliceGrad"),
    slicing_kernel<ReverseKernel>("Reverse"),
};

void fill_bits(const Tensor& tensor, double value) {
  detail::with_bits(size_of(tensor.dtype()), [&](auto tag) {
    using Bits = typename decltype(tag)::type;
    const Bits bits = detail::bits_of<Bits>(value, tensor.dtype());
    Bits* to = reinterpret_cast<Bits*>(tensor.raw());
    parallel_for(tensor.elements(), kElementGrain,
                 [=](std::int64_t begin, std::int64_t end) { std::fill(to + begin, to + end, bits); });
  });
}

class PadKernel final : public Kernel {
 public:
  explicit PadKernel(KernelInit& init)
      : before_(init.attr<std::vector<std::int64_t>>("before")), value_(init.attr<double>("value")) {}

  void compute(KernelContext& context) override {
    const Tensor& x = context.input(0);
    const Tensor& y = context.output(0);
    fill_bits(y, value_);
    const auto &from = x.shape().dims(), &to = y.shape().dims();
    std::int64_t stride = y.elements(), start = 0;
    detail::StridedIndex<1> inside;
    for (std::size_t axis = 0; axis < from.size(); ++axis) {
      stride = to[axis] == 0 ? 0 : stride / to[axis];
      start += before_[axis] * stride;
      inside.push(from[axis], {stride});
    }
    const std::size_t size = size_of(x.dtype());
    scatter_strided(inside, size, x.raw(), y.raw() + start * static_cast<std::int64_t>(size));
  }

 private:
  std::vector<std::int64_t> before_;
  double value_;
};

const RegisterKernel pad("Pad", "CPU",
                         {DType::f32, DType::f64, DType::i32, DType::i64, DType::boolean, DType::u8,
                          DType::i8, DType::f16, DType::bf16},
                         make_kernel<PadKernel>);

// The same of images [N,C,H,W] in blocked order: rows and columns are padded or sliced, the channels of a
// block move together. As they lie in memory: planes, rows, columns, channels of a block.
Shape as_planes(const Shape& images, std::int64_t block) {
  const std::int64_t channels = block == kChannelsLast ? images.dim(1) : block;
  return {images.dim(0) * images.dim(1) / channels, images.dim(2), images.dim(3), channels};
}

class BlockedPad final : public Kernel {
 public:
  explicit BlockedPad(const KernelInit& init) : value_(init.attr<double>("value")) {
    const auto block = init.attr<std::int64_t>("block");
    const Shape from = as_planes(init.input_shape(0), block), to = as_planes(init.output_shape(0), block);
    const auto before = init.attr<std::vector<std::int64_t>>("before");
    planes_ = to.dim(0), rows_ = to.dim(1), inner_rows_ = from.dim(1), above_ = before[2];
    row_ = to.dim(2) * to.dim(3), inner_row_ = from.dim(2) * from.dim(3), left_ = before[3] * to.dim(3);
  }

  void compute(KernelContext& context) override {
    const Tensor &x = context.input(0), &y = context.output(0);
    if (x.dtype() == DType::f32) pad(x.data<float>(), static_cast<float>(value_), y.data<float>());
    else pad(x.data<BFloat16>(), BFloat16(static_cast<float>(value_)), y.data<BFloat16>());
  }

 private:
  template <typename T>
  void pad(const T* x, T value, T* y) const {
    parallel_for(planes_, std::max<std::int64_t>(1, kElementGrain / (rows_ * row_)),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t plane = begin; plane < end; ++plane)
                     pad_plane(x + plane * inner_rows_ * inner_row_, value, y + plane * rows_ * row_);
                 });
  }
  // What lies between two rows of the image is filled at once.
  template <typename T>
  void pad_plane(const T* x, T value, T* y) const {
    T* to = std::fill_n(y, above_ * row_ + left_, value);
    for (std::int64_t r = 0; r < inner_rows_; ++r, x += inner_row_) {
      to = std::copy_n(x, inner_row_, to);
      if (r + 1 < inner_rows_) to = std::fill_n(to, row_ - inner_row_, value);
    }
    std::fill(to, y + rows_ * row_, value);
  }

  double value_;
  std::int64_t planes_, rows_, inner_rows_, above_;
  std::int64_t row_, inner_row_, left_;  // elements
};

class BlockedSlice final : public Kernel {
 public:
  BlockedSlice(const Shape& planes, const detail::ResolvedSlice& slice) {
    const std::int64_t channels = planes.dim(3), row = planes.dim(2) * channels;
    start_ = slice.begin[2] * row + slice.begin[3] * channels;
    places_.push(planes.dim(0), {planes.dim(1) * row});
    places_.push(slice.count[2], {slice.stride[2] * row});
    places_.push(slice.count[3], {slice.stride[3] * channels});
    places_.push(channels, {1});
  }

  void compute(KernelContext& context) override {
    const Tensor& x = context.input(0);
    const std::size_t size = size_of(x.dtype());
    gather_strided(places_, size, x.raw() + start_ * static_cast<std::int64_t>(size),
                   context.output(0).raw());
  }

 private:
  std::int64_t start_;
  detail::StridedIndex<1> places_;
};

std::unique_ptr<Kernel> make_blocked_pad(KernelInit& init) {
  const Shape &x = init.input_shape(0), &y = init.output_shape(0);
  if (x.dim(0) != y.dim(0) || x.dim(1) != y.dim(1)) return init.decline("images or channels are padded");
  return std::make_unique<BlockedPad>(init);
}
std::unique_ptr<Kernel> make_blocked_slice(KernelInit& init) {
  const Shape& x = init.input_shape(0);
  const detail::ResolvedSlice slice = detail::resolve_slice(detail::slice_spec(init), x);
  const bool takes_all = slice.result.rank() == 4 && slice.result.dim(0) == x.dim(0) &&
                         slice.result.dim(1) == x.dim(1) && slice.stride[0] == 1 && slice.stride[1] == 1;
  if (!takes_all) return init.decline("it takes some images or channels only");
  return std::make_unique<BlockedSlice>(as_planes(x, init.attr<std::int64_t>("block")), slice);
}

const RegisterKernel blocked_pad(kBlockedPadOp, "CPU", {DType::f32, DType::bf16}, make_blocked_pad);
const RegisterKernel blocked_slice(kBlockedSliceOp, "CPU", {DType::f32, DType::bf16}, make_blocked_slice);

class TileKernel final : public Kernel {
 public:
  explicit TileKernel(KernelInit& init) : multiples_(init.attr<std::vector<std::int64_t>>("multiples")) {}
  void compute(KernelContext& context) override {
    const Tensor& x = context.input(0);
    const auto& dims = x.shape().dims();
    std::int64_t stride = x.elements();
    detail::StridedIndex<1> index;
    for (std::size_t axis = 0; axis < dims.size(); ++axis) {
      stride = dims[axis] == 0 ? 0 : stride / dims[axis];
      index.push(multiples_[axis], {0});
      index.push(dims[axis], {stride});
    }
    gather_strided(index, size_of(x.dtype()), x.raw(), context.output(0).raw());
  }

 private:
  std::vector<std::int64_t> multiples_;
};

template <typename T>
class TileGradKernel final : public Kernel {
 public:
  explicit TileGradKernel(KernelInit& init) : multiples_(init.attr<std::vector<std::int64_t>>("multiples")) {}
  void compute(KernelContext& context) override {
    const auto& dims = context.output(0).shape().dims();
    // dy with each dimension as (repetition, own): the repetitions are summed away.
    std::vector<std::int64_t> pairs;
    for (std::size_t axis = 0; axis < dims.size(); ++axis) {
      pairs.push_back(multiples_[axis]);
      pairs.push_back(dims[axis]);
    }
    const detail::FoldIndex index(Shape(std::move(pairs)), [](int axis) { return axis % 2 == 0; });
    T* dx = context.output(0).data<T>();
    detail::fold<detail::SumFold>(index, context.input(0).data<T>(),
                                  [dx](std::int64_t i, auto sum) { dx[i] = static_cast<T>(sum); });
  }

 private:
  std::vector<std::int64_t> multiples_;
};

void broadcast_to(KernelContext& context) {
  const Tensor& x = context.input(0);
  const Tensor& y = context.output(0);
  gather_strided(detail::broadcast_index_to(y.shape(), x.shape()), size_of(x.dtype()), x.raw(), y.raw());
}

template <typename K>
RegisterKernel slicing_kernel(const char* op, const std::vector<DType>& types) {
  return RegisterKernel(op, "CPU", types, make_kernel<K>);
}

const RegisterKernel tile_kernels[] = {
    slicing_kernel<TileKernel>("Tile", detail::kNumeric),
    slicing_kernel<TileGradKernel<float>>("TileGrad", {DType::f32}),
    slicing_kernel<TileGradKernel<double>>("TileGrad", {DType::f64}),
    RegisterKernel("BroadcastTo", "CPU", detail::kNumeric, broadcast_to),
};

}  // namespace

}  // namespace kolo
