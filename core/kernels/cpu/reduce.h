// Folding a tensor along some of its dimensions. Each result is folded by one thread in an order that follows
// from the shape alone, so that it does not depend on the number of threads.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include <kolo/core/kernels/cpu/strided_index.h>
#include <kolo/core/kernels/elements/folds.h>
#include <kolo/core/kernels/parallel.h>
#include <kolo/core/tensor/shape.h>

namespace kolo::detail {

using elements::AllFold;
using elements::AnyFold;
using elements::MaxFold;
using elements::MinFold;
using elements::ProductFold;
using elements::SumFold;
using elements::Wide;

/// The dimensions of a dense tensor in two groups: those that stay and those that are folded away.
struct FoldIndex {
  StridedIndex<1> kept;
  StridedIndex<1> folded;

  /// is_folded(axis) tells the group.
  template <typename IsFolded>
  FoldIndex(const Shape& shape, const IsFolded& is_folded) {
    const auto& dims = shape.dims();
    std::int64_t stride = 1;
    for (const std::int64_t dim : dims) stride *= dim;
    for (int axis = 0; axis < static_cast<int>(dims.size()); ++axis) {
      stride = dims[axis] == 0 ? 0 : stride / dims[axis];
      (is_folded(axis) ? folded : kept).push(dims[axis], {stride});
    }
  }
  /// True if neighbouring elements belong to different results.
  bool rows_are_kept() const { return kept.rank() > 0 && kept.row_strides()[0] == 1; }
};

/// Calls finish(position of the result, accumulator) for each result.
template <typename Fold, typename T, typename Finish>
class Folder {
  using Accumulator = typename Fold::template Accumulator<T>;

 public:
  Folder(const FoldIndex& index, const T* x, const Finish& finish) : index_(index), x_(x), finish_(finish) {}

  void run() const {
    if (index_.kept.elements() == 0) return;
    const std::int64_t work = std::max<std::int64_t>(1, index_.folded.elements());
    if (index_.rows_are_kept()) {
      const std::int64_t blocks = (index_.kept.row_elements() + kBlock - 1) / kBlock;
      parallel_for(index_.kept.rows() * blocks, std::max<std::int64_t>(1, kElementGrain / (work * kBlock)),
                   [&](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t i = begin; i < end; ++i) fold_columns(i / blocks, i % blocks * kBlock);
                   });
    } else {
      const std::int64_t row = index_.kept.row_elements(), step = index_.kept.row_strides()[0];
      parallel_for(index_.kept.elements(), std::max<std::int64_t>(1, kElementGrain / work),
                   [&](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t i = begin; i < end; ++i)
                       index_.kept.for_rows(i / row, i / row + 1, [&](std::int64_t, const auto& at) {
                         finish_(i, fold_all(at[0] + i % row * step));
                       });
                   });
    }
  }

 private:
  static constexpr std::int64_t kBlock = 64;
  static constexpr int kLanes = 16;

  // Neighbouring results together, so that memory is read in its own order.
  void fold_columns(std::int64_t kept_row, std::int64_t first) const {
    const std::int64_t columns = std::min(kBlock, index_.kept.row_elements() - first);
    std::array<Accumulator, kBlock> sums;
    sums.fill(Fold::template start<T>());
    std::int64_t base = 0;
    index_.kept.for_rows(kept_row, kept_row + 1, [&](std::int64_t, const auto& at) { base = at[0] + first; });
    const std::int64_t count = index_.folded.row_elements(), step = index_.folded.row_strides()[0];
    index_.folded.for_rows(0, index_.folded.rows(), [&](std::int64_t, const auto& at) {
      for (std::int64_t j = 0; j < count; ++j) {
        const T* x = x_ + base + at[0] + j * step;
        for (std::int64_t column = 0; column < columns; ++column)
          sums[column] = Fold::join(sums[column], static_cast<Accumulator>(x[column]));
      }
    });
    for (std::int64_t column = 0; column < columns; ++column)
      finish_(kept_row * index_.kept.row_elements() + first + column, sums[column]);
  }

  // Several accumulators, so that an addition need not wait for the one before it.
  Accumulator fold_all(std::int64_t base) const {
    std::array<Accumulator, kLanes> lanes;
    lanes.fill(Fold::template start<T>());
    const std::int64_t count = index_.folded.row_elements();
    index_.folded.for_rows(0, index_.folded.rows(), [&](std::int64_t, const auto& at) {
      const T* x = x_ + base + at[0];
      std::int64_t i = 0;
      for (; i + kLanes <= count; i += kLanes)
        for (int lane = 0; lane < kLanes; ++lane)
          lanes[lane] = Fold::join(lanes[lane], static_cast<Accumulator>(x[i + lane]));
      for (int lane = 0; i < count; ++i, ++lane)
        lanes[lane] = Fold::join(lanes[lane], static_cast<Accumulator>(x[i]));
    });
    for (int width = kLanes / 2; width > 0; width /= 2)
      for (int lane = 0; lane < width; ++lane) lanes[lane] = Fold::join(lanes[lane], lanes[lane + width]);
    return lanes[0];
  }

  const FoldIndex& index_;
  const T* x_;
  const Finish& finish_;
};

template <typename Fold, typename T, typename Finish>
void fold(const FoldIndex& index, const T* x, const Finish& finish) {
  Folder<Fold, T, Finish>(index, x, finish).run();
}

}  // namespace kolo::detail
