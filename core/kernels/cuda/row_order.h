// Sorts the row numbers of a node in each step, so that who adds rows looks at those of one row alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include <kolo/core/kernels/cuda/cuda_kernel.h>
#include <kolo/core/kernels/cuda/launch_rows.h>

namespace kolo::cuda {

/// Where there are few, each row looks at all of them: that is one launch instead of three and more.
/// A kernel's member: one thread at a time.
class RowOrder {
 public:
  /// count: of the row numbers; −1 where only a step tells, and each row then looks at all. Asks for all of
  /// the kernel's scratch memory. Throws InvalidArgumentError for more rows than can be sorted.
  RowOrder(KernelInit& init, std::int64_t count, std::int64_t rows);

  /// Enqueues the sorting, after which `rows` has the sorted ones too. Throws as check_cuda.
  void sort(const KernelContext& context, Rows& rows) const;

 private:
  bool sorts_ = false;
  int bits_ = 0;
  std::size_t list_bytes_ = 0;  // of each of the four lists
  std::size_t scratch_bytes_ = 0;
};

}  // namespace kolo::cuda
