// What core/kernels/cuda/run.cuh has, for the host: a .cu file that is included behind this is its own twin.
#pragma once

#include <string_view>
#include <type_traits>

#include <kolo/core/kernels/cuda/launch.h>

#include "launches.h"

namespace kolo::cuda {

/// Where a work's operands lie for the host; reported as device_read does.
struct OnHost {
  template <typename T>
  void operator()(T*& memory, std::int64_t count) const {
    memory = const_cast<T*>(fake_cuda::device_read<std::remove_const_t<T>>(memory, count));
  }
};

/// A team of one.
struct OneThread {
  static int lane() { return 0; }
  static constexpr int lanes() { return 1; }
  template <typename Fold, typename A>
  static A fold(A value) {
    return value;
  }
};

// As if a step's numbers had not been written, or all kernels read one of them.
template <typename Work>
void spoil_numbers(Work& work, std::int64_t& elements) {
  if constexpr (requires { work.numbers[0].at; }) {
    if (fake_cuda::breaks("numbers")) elements = 0;
    if (fake_cuda::breaks("slot"))
      for (std::int64_t i = 0; i < elements; ++i) work.numbers[i].value = work.numbers[elements / 2].value;
  }
}

template <typename Work>
cudaError_t run_each(const char* name, cudaStream_t stream, std::int64_t elements, Work work) {
  static_assert(sizeof(Work) + sizeof elements <= kMostParameterBytes);
  if (elements == 0) return cudaSuccess;
  work.operands(OnHost());
  spoil_numbers(work, elements);
  return fake_cuda::launch(name, stream, [=] {
    for (std::int64_t i = 0; i < elements; ++i) work(i);
  });
}

template <typename Work>
cudaError_t run_rows(const char* name, cudaStream_t stream, std::int64_t rows, Work work) {
  static_assert(sizeof(Work) + 2 * sizeof rows <= kMostParameterBytes);
  if (rows == 0) return cudaSuccess;
  work.operands(OnHost());
  return fake_cuda::launch(name, stream, [=] {
    for (std::int64_t row = 0; row < rows; ++row) work(OneThread(), row);
  });
}

template <typename Work>
cudaError_t run_columns(const char* name, cudaStream_t stream, std::int64_t columns, std::int64_t parts,
                        Work work) {
  return run_rows(name, stream, columns * parts, work);
}

template <typename Work>
cudaError_t run_blocks(const char* name, cudaStream_t stream, std::int64_t units, Work work) {
  return run_rows(name, stream, units, work);
}

}  // namespace kolo::cuda
