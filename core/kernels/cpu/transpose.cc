#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include <kolo/core/kernels/cpu/parallel.h>
#include <kolo/core/kernels/cpu/strided_index.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo {
namespace {

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
                               [](KernelInit& init) -> std::unique_ptr<Kernel> {
                                 return std::make_unique<TransposeKernel>(init);
                               });

}  // namespace
}  // namespace kolo
