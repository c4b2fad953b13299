#include <kolo/core/kernels/cuda/launch_matmul.h>
#include <kolo/core/kernels/cuda/grid.cuh>

namespace kolo::cuda {
namespace {

// A block makes a tile of kTile × kTile results, each of its 16 × 16 threads 4 × 4 of them, 16 apart, so that
// neighbouring threads read neighbouring elements.
constexpr int kTile = 64;
constexpr int kDepth = 16;  // of the inner dimension at a time
constexpr int kSide = 16;
constexpr int kOwn = kTile / kSide;
static_assert(kSide * kSide == kThreads);

// An operand as it is stored: the number of elements from one row, or one inner element, to the next.
struct Strides {
  std::int64_t outer;  // row of a, column of b
  std::int64_t inner;
};

// tile[k][i] = the operand at (first + i, k_first + k), 0 beyond its edge.
__device__ void load(float (&tile)[kDepth][kTile + 1], const float* operand, Strides strides,
                     std::int64_t first, std::int64_t outer, std::int64_t k_first, std::int64_t inner) {
  // Neighbouring threads along the dimension of stride 1.
  const bool along_inner = strides.inner == 1;
#pragma unroll 1  // else addresses of all of them fill the registers that the sums need
  for (int n = threadIdx.x; n < kDepth * kTile; n += kThreads) {
    const int k = along_inner ? n % kDepth : n / kTile, i = along_inner ? n / kDepth : n % kTile;
    const std::int64_t at = first + i, from = k_first + k;
    tile[k][i] = at < outer && from < inner ? operand[at * strides.outer + from * strides.inner] : 0.0f;
  }
}

__global__ __launch_bounds__(kThreads) void matmul_kernel(const __grid_constant__ MatmulArguments arguments) {
  __shared__ float a_tile[kDepth][kTile + 1], b_tile[kDepth][kTile + 1];
  const std::int64_t rows = arguments.rows, cols = arguments.cols, inner = arguments.inner;
  const std::int64_t col_tiles = (cols + kTile - 1) / kTile;
  const auto [row_tile, col_tile] = divide(blockIdx.x, col_tiles);
  const std::int64_t first_row = row_tile * kTile, first_col = col_tile * kTile;
  const Strides a_strides = arguments.transpose_a ? Strides{1, rows} : Strides{inner, 1};
  const Strides b_strides = arguments.transpose_b ? Strides{inner, 1} : Strides{1, cols};
  const int y = threadIdx.x / kSide, x = threadIdx.x % kSide;
  // A grid's other dimensions are short: a block takes several products of a long batch.
  for (std::int64_t n = blockIdx.y; n < arguments.batch; n += gridDim.y) {
    float sums[kOwn][kOwn] = {};
    for (std::int64_t k_first = 0; k_first < inner; k_first += kDepth) {
      load(a_tile, arguments.a + n * rows * inner, a_strides, first_row, rows, k_first, inner);
      load(b_tile, arguments.b + n * inner * cols, b_strides, first_col, cols, k_first, inner);
      __syncthreads();
#pragma unroll 4  // all 16 would not fit into registers
      for (int k = 0; k < kDepth; ++k)
        for (int i = 0; i < kOwn; ++i)
          for (int j = 0; j < kOwn; ++j) sums[i][j] += a_tile[k][y + i * kSide] * b_tile[k][x + j * kSide];
      __syncthreads();
    }
    for (int i = 0; i < kOwn; ++i)
      for (int j = 0; j < kOwn; ++j) {
        const std::int64_t row = first_row + y + i * kSide, col = first_col + x + j * kSide;
        if (row < rows && col < cols) arguments.c[(n * rows + row) * cols + col] = sums[i][j];
      }
  }
}

}  // namespace

cudaError_t launch_matmul(cudaStream_t stream, const MatmulArguments& arguments) {
  if (arguments.batch * arguments.rows * arguments.cols == 0) return cudaSuccess;
  constexpr std::int64_t kMostInY = 65535;
  const std::int64_t tiles = ((arguments.rows + kTile - 1) / kTile) * ((arguments.cols + kTile - 1) / kTile);
  const std::int64_t batch = arguments.batch < kMostInY ? arguments.batch : kMostInY;
  const dim3 grid(static_cast<unsigned>(tiles), static_cast<unsigned>(batch));
  matmul_kernel<<<grid, kThreads, 0, stream>>>(arguments);
  return launched();
}

}  // namespace kolo::cuda
