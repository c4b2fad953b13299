// Walks tensors of which dimensions are repeated, summed away or exchanged: broadcasting, reductions,
// transposition.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <kolo/core/base/error.h>
#include <kolo/core/tensor/shape.h>

namespace kolo::detail {

inline constexpr int kMaxRank = 16;

/// One position in `Operands` tensors at once: dimensions, outermost first, and for each the number of
/// elements by which each operand moves (0: it is repeated). Neighbouring dimensions that all operands cross
/// in one stride are one dimension here, dimensions of 1 are none, so that the innermost is as long as can
/// be. Lives on the stack; allocates nothing.
template <int Operands>
class StridedIndex {
 public:
  using Offsets = std::array<std::int64_t, Operands>;

  /// Adds a dimension inside those that are there.
  void push(std::int64_t dim, const Offsets& strides) {
    elements_ *= dim;
    if (dim == 1) return;
    if (rank_ > 0) {
      bool one_stride = true;
      for (int k = 0; k < Operands; ++k) one_stride &= strides_[rank_ - 1][k] == dim * strides[k];
      if (one_stride) {
        dims_[rank_ - 1] *= dim;
        strides_[rank_ - 1] = strides;
        return;
      }
    }
    if (rank_ == kMaxRank)
      throw InvalidArgumentError("a tensor has more than the {} dimensions that CPU kernels take", kMaxRank);
    dims_[rank_] = dim;
    strides_[rank_++] = strides;
  }

  int rank() const { return rank_; }
  std::int64_t dim(int axis) const { return dims_[axis]; }
  const Offsets& strides(int axis) const { return strides_[axis]; }
  std::int64_t elements() const { return elements_; }

  /// The innermost dimension, 1 element without dimensions; and how many rows of it there are.
  std::int64_t row_elements() const { return rank_ == 0 ? 1 : dims_[rank_ - 1]; }
  Offsets row_strides() const { return rank_ == 0 ? Offsets{} : strides_[rank_ - 1]; }
  std::int64_t rows() const { return elements_ == 0 ? 0 : elements_ / row_elements(); }

  /// Calls body(row, offsets of the row's first element) for the rows [begin, end).
  template <typename Body>
  void for_rows(std::int64_t begin, std::int64_t end, const Body& body) const {
    std::array<std::int64_t, kMaxRank> at{};
    Offsets offsets{};
    std::int64_t rest = begin;
    for (int axis = rank_ - 2; axis >= 0; --axis) {
      at[axis] = rest % dims_[axis];
      rest /= dims_[axis];
      for (int k = 0; k < Operands; ++k) offsets[k] += at[axis] * strides_[axis][k];
    }
    for (std::int64_t row = begin; row < end; ++row) {
      body(row, offsets);
      for (int axis = rank_ - 2; axis >= 0; --axis) {
        for (int k = 0; k < Operands; ++k) offsets[k] += strides_[axis][k];
        if (++at[axis] < dims_[axis]) break;
        for (int k = 0; k < Operands; ++k) offsets[k] -= dims_[axis] * strides_[axis][k];
        at[axis] = 0;
      }
    }
  }

 private:
  int rank_ = 0;
  std::int64_t elements_ = 1;
  std::array<std::int64_t, kMaxRank> dims_{};
  std::array<Offsets, kMaxRank> strides_{};
};

/// The strides by which `shape` is walked along `axis` of `out`, to which it is broadcast by NumPy's rule;
/// `stride` is the number of elements inside that axis so far and grows with each call, from the last axis to
/// the first.
inline std::int64_t broadcast_stride(const Shape& shape, int axis, int out_rank, std::int64_t& stride) {
  const int own = axis - (out_rank - static_cast<int>(shape.dims().size()));
  if (own < 0) return 0;
  const std::int64_t dim = shape.dims()[own];
  const std::int64_t step = dim == 1 ? 0 : stride;
  stride *= dim;
  return step;
}

/// Operands of these shapes broadcast to `out`.
template <typename... Shapes>
StridedIndex<1 + sizeof...(Shapes)> broadcast_index_to(const Shape& out, const Shape& first,
                                                       const Shapes&... more) {
  using Index = StridedIndex<1 + sizeof...(Shapes)>;
  const std::array<const Shape*, 1 + sizeof...(Shapes)> operands = {&first, &more...};
  const int rank = static_cast<int>(out.dims().size());
  if (rank > kMaxRank)
    throw InvalidArgumentError("a tensor has {} dimensions; CPU kernels take at most {}", rank, kMaxRank);
  std::array<typename Index::Offsets, kMaxRank> strides{};
  typename Index::Offsets inside;
  inside.fill(1);
  for (int axis = rank - 1; axis >= 0; --axis)
    for (std::size_t k = 0; k < operands.size(); ++k)
      strides[axis][k] = broadcast_stride(*operands[k], axis, rank, inside[k]);
  Index index;
  for (int axis = 0; axis < rank; ++axis) index.push(out.dims()[axis], strides[axis]);
  return index;
}

/// Two operands broadcast to `out`.
inline StridedIndex<2> broadcast_index(const Shape& a, const Shape& b, const Shape& out) {
  return broadcast_index_to(out, a, b);
}

}  // namespace kolo::detail
