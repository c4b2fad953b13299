// In place of CUB's radix sort the library's own.
#include <kolo/core/kernels/cuda/launch_rows.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "../launches.h"

namespace kolo::cuda {

std::size_t sort_pairs_bytes(std::int64_t count, int) { return static_cast<std::size_t>(count); }

// The result is in the second lists, as CUB's is after an odd number of passes.
cudaError_t launch_sort_pairs(cudaStream_t stream, const SortPairsArguments& of, SortedRows& sorted) {
  if (of.scratch_bytes < sort_pairs_bytes(of.count, of.bits)) return cudaErrorInvalidValue;
  fake_cuda::device_write<char>(of.scratch, static_cast<std::int64_t>(of.scratch_bytes));
  const auto list = [&](std::uint32_t* memory) {
    return fake_cuda::device_write<std::uint32_t>(memory, of.count);
  };
  const std::uint32_t *const numbers = list(of.numbers[0]), *const places = list(of.places[0]);
  std::uint32_t *const sorted_numbers = list(of.numbers[1]), *const sorted_places = list(of.places[1]);
  sorted = {of.numbers[1], of.places[1]};
  return fake_cuda::launch("sort_pairs", stream, [=, count = static_cast<std::size_t>(of.count)] {
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [=](std::size_t a, std::size_t b) { return numbers[a] < numbers[b]; });
    for (std::size_t i = 0; i < count; ++i) {
      sorted_numbers[i] = numbers[order[i]];
      sorted_places[i] = places[order[i]];
    }
  });
}

}  // namespace kolo::cuda
