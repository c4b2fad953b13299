#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/kernels/cpu/strided_index.h>
#include <kolo/core/kernels/host_kernels.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/kernels/nothing.h>
#include <kolo/core/kernels/parallel.h>
#include <kolo/core/ops/dtypes.h>

namespace kolo {
namespace {

const RegisterKernel views[] = {
    {"Reshape", "CPU", {}, nothing},
    {"ReshapeLike", "CPU", {}, nothing},
    {"ExpandDims", "CPU", {}, nothing},
    {"Squeeze", "CPU", {}, nothing},
};

// A tensor as `outer` runs of the bytes that lie inside dimension `axis`.
struct Runs {
  std::int64_t outer = 1;
  std::int64_t bytes = 0;
  Runs(const Tensor& tensor, int axis) {
    for (int i = 0; i < axis; ++i) outer *= tensor.shape().dims()[i];
    bytes = outer == 0 ? 0 : static_cast<std::int64_t>(tensor.bytes()) / outer;
  }
};

// Whole tensors stand in the joined one with a gap between their runs; `copy_run(joined, part, bytes)` copies
// one way or the other.
template <typename CopyRun>
void for_runs(const Tensor& joined, const Tensor& part, int axis, std::int64_t offset,
              const CopyRun& copy_run) {
  const Runs whole(joined, axis), own(part, axis);
  if (own.bytes == 0) return;
  parallel_for(own.outer, std::max<std::int64_t>(1, 4 * kElementGrain / own.bytes),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i)
                   copy_run(joined.raw() + i * whole.bytes + offset, part.raw() + i * own.bytes, own.bytes);
               });
}

class ConcatKernel final : public Kernel {
 public:
  explicit ConcatKernel(KernelInit& init) : axis_(init.attr<int>("axis")) {}
  void compute(KernelContext& context) override {
    const Tensor& y = context.output(0);
    const int axis = axis_ < 0 ? axis_ + y.shape().rank() : axis_;
    std::int64_t offset = 0;
    for (int i = 0; i < context.num_inputs(); ++i) {
      const Tensor& x = context.input(i);
      for_runs(y, x, axis, offset, [](std::byte* to, const std::byte* from, std::int64_t bytes) {
        std::memcpy(to, from, bytes);
      });
      offset += Runs(x, axis).bytes;
    }
  }

 private:
  int axis_;
};

// Input 0 cut into the outputs, one behind the other.
class SplitKernel final : public Kernel {
 public:
  explicit SplitKernel(KernelInit& init) : axis_(init.attr<int>("axis")) {}
  void compute(KernelContext& context) override {
    const Tensor& x = context.input(0);
    const int axis = axis_ < 0 ? axis_ + x.shape().rank() : axis_;
    std::int64_t offset = 0;
    for (int i = 0; i < context.num_outputs(); ++i) {
      const Tensor& part = context.output(i);
      for_runs(x, part, axis, offset, [](const std::byte* from, std::byte* to, std::int64_t bytes) {
        std::memcpy(to, from, bytes);
      });
      offset += Runs(part, axis).bytes;
    }
  }

 private:
  int axis_;
};

// A block within a larger tensor: offsets in the block and in the whole.
class BlockKernel : public Kernel {
 protected:
  explicit BlockKernel(KernelInit& init) : begin_(init.attr<std::vector<std::int64_t>>("begin")) {}

  // copy_row(in the block, in the whole, bytes), with addresses as offsets.
  template <typename CopyRow>
  void for_rows(const Tensor& block, const Tensor& whole, const CopyRow& copy_row) const {
    if (block.elements() == 0) return;
    const auto& dims = block.shape().dims();
    const int rank = static_cast<int>(dims.size());
    if (rank > detail::kMaxRank)
      throw InvalidArgumentError("slice: {} has more than {} dimensions", whole.shape(), detail::kMaxRank);
    std::array<detail::StridedIndex<2>::Offsets, detail::kMaxRank> strides{};
    std::int64_t in_block = 1, in_whole = 1, start = 0;
    for (int axis = rank - 1; axis >= 0; --axis) {
      strides[axis] = {in_block, in_whole};
      start += begin_[axis] * in_whole;
      in_block *= dims[axis];
      in_whole *= whole.shape().dims()[axis];
    }
    detail::StridedIndex<2> index;
    for (int axis = 0; axis < rank; ++axis) index.push(dims[axis], strides[axis]);
    const auto size = static_cast<std::int64_t>(size_of(block.dtype()));
    index.for_rows(0, index.rows(), [&](std::int64_t, const auto& at) {
      if (index.rank() == 0 || index.row_strides() == detail::StridedIndex<2>::Offsets{1, 1}) {
        copy_row(at[0] * size, (start + at[1]) * size, index.row_elements() * size);
        return;
      }
      // The inner dimensions of the block are 1: single elements with gaps.
      for (std::int64_t i = 0; i < index.row_elements(); ++i)
        copy_row((at[0] + i * index.row_strides()[0]) * size,
                 (start + at[1] + i * index.row_strides()[1]) * size, size);
    });
  }

 private:
  std::vector<std::int64_t> begin_;
};

class SliceKernel final : public BlockKernel {
 public:
  explicit SliceKernel(KernelInit& init) : BlockKernel(init) {}
  void compute(KernelContext& context) override {
    const std::byte* x = context.input(0).raw();
    std::byte* y = context.output(0).raw();
    for_rows(context.output(0), context.input(0),
             [&](std::int64_t to, std::int64_t from, std::int64_t bytes) {
               std::memcpy(y + to, x + from, static_cast<std::size_t>(bytes));
             });
  }
};

class SliceGradKernel final : public BlockKernel {
 public:
  explicit SliceGradKernel(KernelInit& init) : BlockKernel(init) {}
  void compute(KernelContext& context) override {
    const std::byte* dy = context.input(0).raw();
    std::byte* dx = context.output(0).raw();
    std::fill_n(dx, context.output(0).bytes(), std::byte{0});
    for_rows(context.input(0), context.output(0),
             [&](std::int64_t from, std::int64_t to, std::int64_t bytes) {
               std::memcpy(dx + to, dy + from, static_cast<std::size_t>(bytes));
             });
  }
};

template <typename K>
RegisterKernel kernel(const char* op) {
  return RegisterKernel(op, "CPU", detail::kNumeric, make_kernel<K>);
}

const RegisterKernel concat_kernels[] = {
    kernel<ConcatKernel>("Concat"), kernel<SplitKernel>("ConcatGrad"),    kernel<SplitKernel>("Split"),
    kernel<SliceKernel>("Slice"),   kernel<SliceGradKernel>("SliceGrad"),
};

using Index = detail::StridedIndex<2>;  // offsets in y and in x

// y[c][r] = x[r][c]: neighbours in y lie x_step apart in x, neighbours in x lie y_step apart in y. In square
// tiles, so that neither side leaves the cache.
template <typename Bits>
void exchange(const Bits* x, std::int64_t x_step, Bits* y, std::int64_t rows, std::int64_t columns,
              std::int64_t y_step) {
  constexpr std::int64_t kTile = 16;
  for (std::int64_t r0 = 0; r0 < rows; r0 += kTile)
    for (std::int64_t c0 = 0; c0 < columns; c0 += kTile)
      for (std::int64_t c = c0; c < std::min(columns, c0 + kTile); ++c)
        for (std::int64_t r = r0; r < std::min(rows, r0 + kTile); ++r) y[c * y_step + r] = x[r * x_step + c];
}

class TransposeKernel final : public Kernel {
 public:
  explicit TransposeKernel(KernelInit& init) : perm_(init.attr<std::vector<std::int64_t>>("perm")) {}

  void compute(KernelContext& context) override {
    const Tensor& x = context.input(0);
    switch (size_of(x.dtype())) {
      case 1: return move<std::uint8_t>(x, context.output(0));
      case 2: return move<std::uint16_t>(x, context.output(0));
      case 4: return move<std::uint32_t>(x, context.output(0));
      default: return move<std::uint64_t>(x, context.output(0));
    }
  }

 private:
  // The dimensions of y from the outermost, neighbours that x has in the same order merged.
  Index index_of(const Shape& x) const {
    const int rank = static_cast<int>(perm_.size());
    if (rank > detail::kMaxRank)
      throw InvalidArgumentError("transpose: {} has more than {} dimensions", x, detail::kMaxRank);
    std::array<std::int64_t, detail::kMaxRank> x_strides{}, y_strides{};
    std::int64_t x_stride = 1, y_stride = 1;
    for (int axis = rank - 1; axis >= 0; --axis) {
      x_strides[axis] = x_stride;
      y_strides[axis] = y_stride;
      x_stride *= x.dims()[axis];
      y_stride *= x.dims()[perm_[axis]];
    }
    Index index;
    for (int axis = 0; axis < rank; ++axis)
      index.push(x.dims()[perm_[axis]], {y_strides[axis], x_strides[perm_[axis]]});
    return index;
  }

  template <typename Bits>
  void move(const Tensor& from, const Tensor& to) const {
    if (from.elements() == 0) return;
    const Index index = index_of(from.shape());
    const Bits* x = reinterpret_cast<const Bits*>(from.raw());
    Bits* y = reinterpret_cast<Bits*>(to.raw());
    const std::int64_t row = index.row_elements(), step = index.row_strides()[1];
    if (step <= 1) {
      parallel_for(index.rows(), std::max<std::int64_t>(1, kElementGrain / row),
                   [&](std::int64_t begin, std::int64_t end) {
                     index.for_rows(begin, end, [&](std::int64_t at, const auto& offsets) {
                       std::copy_n(x + offsets[1], row, y + at * row);
                     });
                   });
      return;
    }
    // Some other dimension of y is x's innermost; the walk goes over all but these two.
    int columns = 0;
    while (index.strides(columns)[1] != 1) ++columns;
    const int last = index.rank() - 1;
    Index outer;
    for (int axis = 0; axis < last; ++axis)
      if (axis != columns) outer.push(index.dim(axis), index.strides(axis));
    const std::int64_t count = outer.row_elements();
    const auto steps = outer.row_strides();
    parallel_for(outer.rows() * count, std::max<std::int64_t>(1, kElementGrain / (row * index.dim(columns))),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t i = begin; i < end; ++i)
                     outer.for_rows(i / count, i / count + 1, [&](std::int64_t, const auto& at) {
                       exchange(x + at[1] + i % count * steps[1], step, y + at[0] + i % count * steps[0], row,
                                index.dim(columns), index.strides(columns)[0]);
                     });
                 });
  }

  std::vector<std::int64_t> perm_;
};

const RegisterKernel transpose("Transpose", "CPU",
                               {DType::f32, DType::f64, DType::i32, DType::i64, DType::boolean, DType::u8,
                                DType::i8, DType::f16, DType::bf16},
                               make_kernel<TransposeKernel>);

const RegisterKernel shape_kernels[] = {
    {"Shape", "CPU", {}, shape_kernel},
    {"Size", "CPU", {}, size_kernel},
    {"Rank", "CPU", {}, rank_kernel},
};

}  // namespace

}  // namespace kolo
