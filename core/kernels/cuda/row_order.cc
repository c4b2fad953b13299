#include <kolo/core/kernels/cuda/row_order.h>

#include <bit>

#include <kolo/core/base/error.h>
#include <kolo/core/device/cuda/handles.h>

namespace kolo::cuda {
namespace {

// A row's team takes some ten cycles for a look, sorting some ten microseconds.
constexpr std::int64_t kMostLooks = std::int64_t{1} << 20, kMostLookedAt = 512;
constexpr std::size_t kAlignment = 256;  // of scratch memory

}  // namespace

RowOrder::RowOrder(KernelInit& init, std::int64_t count, std::int64_t rows) {
  sorts_ = count > 0 && rows > 0 && (count > kMostLookedAt || rows > kMostLooks / count);
  if (!sorts_) return;
  if (count > kMostSortedRows || rows > kMostSortedRows)
    throw InvalidArgumentError("{} row numbers of {} rows; a GPU adds up rows of at most {} of either", count,
                               rows, kMostSortedRows);
  bits_ = std::bit_width(static_cast<std::uint64_t>(rows));  // `rows` itself is the number of what is no row
  const PhysicalGpu& gpu = gpu_of(init);
  make_current(gpu.api, gpu.gpu);
  scratch_bytes_ = sort_pairs_bytes(count, bits_);
  if (scratch_bytes_ == 0) throw InternalError("CUB does not say what sorting {} numbers needs", count);
  list_bytes_ =
      (static_cast<std::size_t>(count) * sizeof(std::uint32_t) + kAlignment - 1) / kAlignment * kAlignment;
  init.request_scratch(4 * list_bytes_ + scratch_bytes_);
}

void RowOrder::sort(const KernelContext& context, Rows& rows) const {
  if (!sorts_) return;
  std::byte* const scratch = context.scratch();
  const auto list = [&](std::size_t i) {
    return reinterpret_cast<std::uint32_t*>(scratch + i * list_bytes_);
  };
  const SortPairsArguments pairs{.numbers = {list(0), list(1)},
                                 .places = {list(2), list(3)},
                                 .count = rows.count,
                                 .bits = bits_,
                                 .scratch = scratch + 4 * list_bytes_,
                                 .scratch_bytes = scratch_bytes_};
  check_cuda(launch_row_numbers(stream_of(context),
                                {.rows = rows, .numbers = pairs.numbers[0], .places = pairs.places[0]}),
             "row numbers");
  check_cuda(launch_sort_pairs(stream_of(context), pairs, rows.sorted), "sorting row numbers");
}

}  // namespace kolo::cuda
