// Splitting one kernel's loop over the cores it may use. OpenMP, because oneDNN's kernels run on the same
// team of threads: a pool of our own beside it would fight with it for the cores.
#pragma once

#include <algorithm>
#include <cstdint>

namespace kolo {

/// Threads that a kernel on the calling thread may use: what set_intra_op_threads said on it, else
/// OMP_NUM_THREADS.
int intra_op_threads();
/// For kernels on the calling thread. `threads` ≥ 1.
void set_intra_op_threads(int threads);

/// A grain for loops that do little to each element: below it a thread of its own costs more than it saves.
inline constexpr std::int64_t kElementGrain = 16384;

/// Calls body(begin, end) over pieces that cover [0, count), each of at least `grain` iterations, and returns
/// when all are done. The cut depends on count, grain and the number of threads alone. `body` must not throw.
template <typename Body>
void parallel_for(std::int64_t count, std::int64_t grain, const Body& body) {
  const std::int64_t pieces =
      std::min<std::int64_t>(intra_op_threads(), count / std::max<std::int64_t>(1, grain));
  if (pieces <= 1) {
    if (count > 0) body(std::int64_t{0}, count);
    return;
  }
#pragma omp parallel for num_threads(static_cast <int>(pieces)) schedule(static, 1)
  for (std::int64_t piece = 0; piece < pieces; ++piece)
    body(count * piece / pieces, count * (piece + 1) / pieces);
}

}  // namespace kolo
