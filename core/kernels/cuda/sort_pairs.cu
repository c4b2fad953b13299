// The one place where CUB computes: its radix sort, which keeps the order of equal numbers.
#include <cub/device/device_radix_sort.cuh>

#include <kolo/core/kernels/cuda/launch_rows.h>
#include <kolo/core/kernels/cuda/grid.cuh>

namespace kolo::cuda {

std::size_t sort_pairs_bytes(std::int64_t count, int bits) {
  cub::DoubleBuffer<std::uint32_t> numbers, places;
  std::size_t bytes = 0;
  if (cub::DeviceRadixSort::SortPairs(nullptr, bytes, numbers, places, count, 0, bits) != cudaSuccess)
    return 0;
  return bytes;
}

cudaError_t launch_sort_pairs(cudaStream_t stream, const SortPairsArguments& of, SortedRows& sorted) {
  cub::DoubleBuffer<std::uint32_t> numbers(of.numbers[0], of.numbers[1]), places(of.places[0], of.places[1]);
  std::size_t bytes = of.scratch_bytes;
  const cudaError_t code =
      cub::DeviceRadixSort::SortPairs(of.scratch, bytes, numbers, places, of.count, 0, of.bits, stream);
  sorted = {numbers.Current(), places.Current()};
  const cudaError_t last = launched();
  return code != cudaSuccess ? code : last;
}

}  // namespace kolo::cuda
