#include <kolo/core/kernels/cuda/launch_reductions.h>

#include <kolo/core/kernels/elements/binary.h>
#include <kolo/core/kernels/elements/folds.h>

#include "../launches.h"
#include "walk.h"

namespace kolo::cuda {
namespace {

using fake_cuda::device_read;
using fake_cuda::device_write;
using fake_cuda::launch;

template <typename Fold, typename T>
cudaError_t reduce(cudaStream_t stream, const ReduceArguments& arguments) {
  using A = typename Fold::template Accumulator<T>;
  if (arguments.parts > 1)  // each of 8 bytes, whatever it is
    device_write<std::uint64_t>(arguments.partial, arguments.results * arguments.parts);
  const T* const x = arguments.count == 0
                         ? nullptr
                         : device_read<T>(arguments.x, fake_cuda::extent(arguments.kept, 0) +
                                                           fake_cuda::extent(arguments.folded, 0) - 1);
  T* const y = device_write<T>(arguments.y, arguments.results);
  return launch("reduce", stream, [=] {
    for (std::int64_t result = 0; result < arguments.results; ++result) {
      const std::int64_t at = fake_cuda::offsets(arguments.kept, result)[0];
      A folded = Fold::template start<T>();
      for (std::int64_t j = 0; j < arguments.count; ++j)
        folded = Fold::join(folded, static_cast<A>(x[at + fake_cuda::offsets(arguments.folded, j)[0]]));
      if constexpr (std::is_floating_point_v<T>) folded = folded / static_cast<A>(arguments.divisor);
      y[result] = static_cast<T>(folded);
    }
  });
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

template <typename Better, typename T>
cudaError_t position(cudaStream_t stream, const PositionArguments& arguments) {
  const std::int64_t results = arguments.outer * arguments.inner;
  const T* const x = device_read<T>(arguments.x, results * arguments.count);
  std::int64_t* const y = device_write<std::int64_t>(arguments.y, results);
  return launch("position", stream, [=, count = arguments.count, inner = arguments.inner] {
    for (std::int64_t i = 0; i < results; ++i) {
      const T* const line = x + i / inner * count * inner + i % inner;
      std::int64_t best = 0;
      for (std::int64_t k = 1; k < count; ++k)
        if (Better()(line[k * inner], line[best * inner])) best = k;
      y[i] = best;
    }
  });
}

template <typename T>
cudaError_t any_position(cudaStream_t stream, const PositionArguments& arguments) {
  return arguments.smallest ? position<elements::Less, T>(stream, arguments)
                            : position<elements::Greater, T>(stream, arguments);
}

}  // namespace

cudaError_t launch_reduce(cudaStream_t stream, const ReduceArguments& arguments) {
  if (arguments.results == 0) return cudaSuccess;
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
    case ElementType::f32: return any_position<float>(stream, arguments);
    case ElementType::i64: return any_position<std::int64_t>(stream, arguments);
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace kolo::cuda
