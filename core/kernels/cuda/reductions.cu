#include <kolo/core/kernels/cuda/launch_reductions.h>
#include <kolo/core/kernels/elements/binary.h>
#include <kolo/core/kernels/elements/folds.h>
#include <kolo/core/kernels/cuda/grid.cuh>
#include <kolo/core/kernels/cuda/warps.cuh>

namespace kolo::cuda {
namespace {

template <typename T, typename A>
__device__ T finished(const ReduceArguments& arguments, A value) {
  if constexpr (std::is_floating_point_v<T>) return static_cast<T>(value / static_cast<A>(arguments.divisor));
  else return static_cast<T>(value);
}

template <typename T, typename A>
__device__ void store(const ReduceArguments& arguments, std::int64_t result, std::int64_t part, A value) {
  if (arguments.parts == 1) static_cast<T*>(arguments.y)[result] = finished<T>(arguments, value);
  else static_cast<A*>(arguments.partial)[result * arguments.parts + part] = value;
}

struct Run {
  std::int64_t begin;
  std::int64_t end;
};
__device__ Run run_of(const ReduceArguments& arguments, std::int64_t part) {
  const std::int64_t length = (arguments.count + arguments.parts - 1) / arguments.parts;
  const std::int64_t begin = part * length, end = begin + length;
  return {begin, end < arguments.count ? end : arguments.count};
}

// A warp for each part of a result.
template <typename Fold, typename T>
__global__ __launch_bounds__(kThreads) void rows_kernel(const __grid_constant__ ReduceArguments arguments) {
  using A = typename Fold::template Accumulator<T>;
  const auto [result, part] = divide(warp_unit(), arguments.parts);
  if (result >= arguments.results) return;
  const auto* const x = static_cast<const T*>(arguments.x) + offsets_at(arguments.kept, result).at[0];
  const Run run = run_of(arguments, part);
  A folded = Fold::template start<T>();
  for (std::int64_t j = run.begin + lane(); j < run.end; j += kWarp)
    folded = Fold::join(folded, static_cast<A>(x[offsets_at(arguments.folded, j).at[0]]));
  folded = fold_warp<Fold>(folded);
  if (lane() == 0) store<T>(arguments, result, part, folded);
}

// Neighbouring results in neighbouring threads, so that memory is read in its own order: a block folds a part
// of 32 results, each of its warps every eighth element.
template <typename Fold, typename T>
__global__ __launch_bounds__(kThreads) void columns_kernel(
    const __grid_constant__ ReduceArguments arguments) {
  using A = typename Fold::template Accumulator<T>;
  __shared__ A by_warp[kWarpsPerBlock][kWarp];
  const auto [strip, part] = divide(blockIdx.x, arguments.parts);
  const std::int64_t result = strip * kWarp + lane();
  const auto warp = static_cast<int>(threadIdx.x / kWarp);
  A folded = Fold::template start<T>();
  if (result < arguments.results) {
    const auto* const x = static_cast<const T*>(arguments.x) + offsets_at(arguments.kept, result).at[0];
    const Run run = run_of(arguments, part);
    for (std::int64_t j = run.begin + warp; j < run.end; j += kWarpsPerBlock)
      folded = Fold::join(folded, static_cast<A>(x[offsets_at(arguments.folded, j).at[0]]));
  }
  by_warp[warp][lane()] = folded;
  __syncthreads();
  if (warp != 0 || result >= arguments.results) return;
  for (int other = 1; other < kWarpsPerBlock; ++other) folded = Fold::join(folded, by_warp[other][lane()]);
  store<T>(arguments, result, part, folded);
}

// A warp for each result.
template <typename Fold, typename T>
__global__ __launch_bounds__(kThreads) void parts_kernel(const __grid_constant__ ReduceArguments arguments) {
  using A = typename Fold::template Accumulator<T>;
  const std::int64_t result = warp_unit();
  if (result >= arguments.results) return;
  const auto* const parts = static_cast<const A*>(arguments.partial) + result * arguments.parts;
  A folded = Fold::template start<T>();
  for (int part = lane(); part < arguments.parts; part += kWarp) folded = Fold::join(folded, parts[part]);
  folded = fold_warp<Fold>(folded);
  if (lane() == 0) static_cast<T*>(arguments.y)[result] = finished<T>(arguments, folded);
}

template <typename Fold, typename T>
cudaError_t reduce(cudaStream_t stream, const ReduceArguments& arguments) {
  if (arguments.by_columns) {
    const std::int64_t strips = (arguments.results + kWarp - 1) / kWarp;
    columns_kernel<Fold, T>
        <<<static_cast<unsigned>(strips * arguments.parts), kThreads, 0, stream>>>(arguments);
  } else {
    rows_kernel<Fold, T>
        <<<blocks_for_warps(arguments.results * arguments.parts), kThreads, 0, stream>>>(arguments);
  }
  const cudaError_t code = launched();
  if (code != cudaSuccess || arguments.parts == 1) return code;
  parts_kernel<Fold, T><<<blocks_for_warps(arguments.results), kThreads, 0, stream>>>(arguments);
  return launched();
}

template <typename T>
cudaError_t reduce_numbers(cudaStream_t stream, const ReduceArguments& arguments) {
  switch (arguments.fold) {
    case Fold::sum: return reduce<elements::SumFold, T>(stream, arguments);
    case Fold::product: return reduce<elements::ProductFold, T>(stream, arguments);
    case Fold::maximum: return reduce<elements::MaxFold, T>(stream, arguments);
    case Fold::minimum: return reduce<elements::MinFold, T>(stream, arguments);
    default: return cudaErrorInvalidValue;
  }
}

cudaError_t reduce_booleans(cudaStream_t stream, const ReduceArguments& arguments) {
  switch (arguments.fold) {
    case Fold::any: return reduce<elements::AnyFold, bool>(stream, arguments);
    case Fold::all: return reduce<elements::AllFold, bool>(stream, arguments);
    default: return cudaErrorInvalidValue;
  }
}

// A thread for each result: lines are as short as a model has classes.
template <typename Better, typename T>
__global__ __launch_bounds__(kThreads) void position_kernel(const T* __restrict__ x,
                                                            std::int64_t* __restrict__ y,
                                                            std::int64_t results, std::int64_t count,
                                                            std::int64_t inner) {
  for_each_element(results, [=](std::int64_t i) {
    const auto [outer, column] = divide(i, inner);
    const T* const line = x + outer * count * inner + column;
    std::int64_t best = 0;
    T best_value = line[0];
    for (std::int64_t k = 1; k < count; ++k) {
      const T value = line[k * inner];
      if (Better()(value, best_value)) {
        best = k;
        best_value = value;
      }
    }
    y[i] = best;
  });
}

template <typename T>
cudaError_t position(cudaStream_t stream, const PositionArguments& arguments) {
  const std::int64_t results = arguments.outer * arguments.inner;
  const auto kernel =
      arguments.smallest ? position_kernel<elements::Less, T> : position_kernel<elements::Greater, T>;
  kernel<<<blocks_for(results), kThreads, 0, stream>>>(static_cast<const T*>(arguments.x), arguments.y,
                                                       results, arguments.count, arguments.inner);
  return launched();
}

}  // namespace

cudaError_t launch_reduce(cudaStream_t stream, const ReduceArguments& arguments) {
  if (arguments.results == 0) return cudaSuccess;  // a grid of no blocks is an error
  switch (arguments.type) {
    case ElementType::f32: return reduce_numbers<float>(stream, arguments);
    case ElementType::i64: return reduce_numbers<std::int64_t>(stream, arguments);
    case ElementType::boolean: return reduce_booleans(stream, arguments);
    default: return cudaErrorInvalidValue;
  }
}

cudaError_t launch_position(cudaStream_t stream, const PositionArguments& arguments) {
  if (arguments.outer * arguments.inner == 0) return cudaSuccess;
  switch (arguments.type) {
    case ElementType::f32: return position<float>(stream, arguments);
    case ElementType::i64: return position<std::int64_t>(stream, arguments);
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace kolo::cuda
