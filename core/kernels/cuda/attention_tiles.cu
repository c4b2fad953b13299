// Attention in tiles of 32 queries × 32 keys, whose numbers lie in shared memory (FlashAttention: Dao et al.,
// 2022). A block keeps its own 32 places and goes through the others': forward and for the queries' gradients
// its own are queries, for those of keys and values they are keys. Nothing is added by two blocks, so that
// results repeat bit for bit; scores are made anew for each of the two gradients.
#include <atomic>
#include <cmath>
#include <cstdint>

#include <kolo/core/kernels/cuda/attention_head.cuh>
#include <kolo/core/kernels/cuda/warps.cuh>

namespace kolo::cuda {
namespace {

constexpr int kTile = 32;
// Threads are 16 × 16. The one at (y, x) has the scores of rows y, y + 16 and columns x, x + 16 of a tile; of
// the sums of a row's numbers, those of rows y, y + 16 in runs of 4 from 4 · x on, 64 apart.
constexpr int kSide = 16;
static_assert(kSide * kSide == kThreads && 2 * kSide == kTile);
__device__ int thread_x() { return static_cast<int>(threadIdx.x) % kSide; }
__device__ int thread_y() { return static_cast<int>(threadIdx.x) / kSide; }

// A tile's rows, of up to kWidth numbers; 4 more keep neighbouring rows in other banks.
template <int kWidth>
struct Rows {
  float at[kTile][kWidth + 4];
};
struct Scores {
  float at[kTile][kTile + 1];
};

template <int kWidth>
__device__ void load(Rows<kWidth>& rows, const float* from, std::int64_t stride, std::int64_t first,
                     const AttentionShape& of) {
  for (int i = static_cast<int>(threadIdx.x); i < kTile * kWidth; i += kThreads) {
    const int row = i / kWidth, column = i % kWidth;
    const bool is_there = first + row < of.places && column < of.size;
    rows.at[row][column] = is_there ? from[(first + row) * stride + column] : 0;
  }
}

__device__ float4 four(const float* numbers) { return *reinterpret_cast<const float4*>(numbers); }

// products[i][j] = row y + 16 i of a · row x + 16 j of b.
template <int kWidth>
__device__ void multiply(const Rows<kWidth>& a, const Rows<kWidth>& b, int size, float (&products)[2][2]) {
  for (auto& row : products) row[0] = row[1] = 0;
  const int y = thread_y(), x = thread_x();
#pragma unroll 2
  for (int c = 0; c < size; c += 4)
    for (int i = 0; i < 2; ++i) {
      const float4 left = four(&a.at[y + kSide * i][c]);
      for (int j = 0; j < 2; ++j) {
        const float4 right = four(&b.at[x + kSide * j][c]);
        products[i][j] += left.x * right.x + left.y * right.y + left.z * right.z + left.w * right.w;
      }
    }
}

// What a thread has of the sums of 32 rows' numbers.
template <int kWidth>
struct Sums {
  static constexpr int kRuns = kWidth / (4 * kSide);
  float4 of[2][kRuns] = {};

  // += Σ over the other rows o: factor(row, o) · rows[o].
  template <typename Factor>
  __device__ void add(const Rows<kWidth>& rows, const Factor& factor) {
    const int y = thread_y(), x = thread_x();
#pragma unroll 4
    for (int other = 0; other < kTile; ++other) {
      const float factors[] = {factor(y, other), factor(y + kSide, other)};
      for (int run = 0; run < kRuns; ++run) {
        const float4 numbers = four(&rows.at[other][4 * (x + kSide * run)]);
        for (int i = 0; i < 2; ++i) {
          of[i][run].x += factors[i] * numbers.x;
          of[i][run].y += factors[i] * numbers.y;
          of[i][run].z += factors[i] * numbers.z;
          of[i][run].w += factors[i] * numbers.w;
        }
      }
    }
  }
  __device__ void scale(int i, float factor) {
    for (float4& numbers : of[i])
      numbers = {numbers.x * factor, numbers.y * factor, numbers.z * factor, numbers.w * factor};
  }
  __device__ void store(float* to, std::int64_t stride, std::int64_t first,
                        const AttentionShape& shape) const {
    for (int i = 0; i < 2; ++i) {
      const std::int64_t row = first + thread_y() + kSide * i;
      if (row >= shape.places) continue;
      for (int run = 0; run < kRuns; ++run) {
        const float numbers[] = {of[i][run].x, of[i][run].y, of[i][run].z, of[i][run].w};
        for (int k = 0; k < 4; ++k) {
          const int column = 4 * (thread_x() + kSide * run) + k;
          if (column < shape.size) to[row * stride + column] = numbers[k];
        }
      }
    }
  }
};

// Over the 16 threads of a row.
template <typename Fold>
__device__ float fold_row(float value) {
  for (int distance = kSide / 2; distance > 0; distance /= 2)
    value = Fold::join(value, __shfl_xor_sync(~0u, value, distance));
  return value;
}
struct Larger {
  __device__ static float join(float a, float b) { return fmaxf(a, b); }
};
struct Sum {
  __device__ static float join(float a, float b) { return a + b; }
};

// The head and the first place of this block's tile. The last tiles come first: a causal query sees all
// before it.
struct Own {
  __device__ explicit Own(const AttentionShape& of, bool last_first)
      : tiles((of.places + kTile - 1) / kTile),
        number(blockIdx.x % (of.batch * of.heads)),
        tile(blockIdx.x / (of.batch * of.heads)) {
    if (last_first) tile = tiles - 1 - tile;
  }
  std::int64_t tiles, number, tile;
};
unsigned blocks_of(const AttentionShape& of) {
  return static_cast<unsigned>((of.places + kTile - 1) / kTile * of.batch * of.heads);
}

__device__ bool sees(const AttentionShape& of, std::int64_t query, std::int64_t key) {
  return query < of.places && key < of.places && (!of.causal || key <= query);
}

template <int kWidth>
struct ForwardMemory {
  Rows<kWidth> q, other;  // keys, then values
  Scores p;
};

template <int kWidth>
__global__ __launch_bounds__(kThreads) void forward_kernel(
    const __grid_constant__ AttentionArguments arguments) {
  extern __shared__ float4 shared[];
  auto& memory = *reinterpret_cast<ForwardMemory<kWidth>*>(shared);
  const AttentionShape& of = arguments.of;
  const Own own(of, true);
  const Head head(of, own.number);
  const float* const q = arguments.qkv + head.in_qkv;
  const std::int64_t first = own.tile * kTile, end = of.causal ? own.tile + 1 : own.tiles;
  load(memory.q, q, head.stride, first, of);
  Sums<kWidth> y;
  float largest[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
  for (std::int64_t tile = 0; tile < end; ++tile) {
    load(memory.other, q + head.width, head.stride, tile * kTile, of);
    __syncthreads();
    float scores[2][2];
    multiply(memory.q, memory.other, static_cast<int>(of.size), scores);
    for (int i = 0; i < 2; ++i) {
      const int row = thread_y() + kSide * i;
      bool seen[2];
      float most = largest[i];
      for (int j = 0; j < 2; ++j) {
        seen[j] = sees(of, first + row, tile * kTile + thread_x() + kSide * j);
        scores[i][j] *= of.scale;
        if (seen[j]) most = fmaxf(most, scores[i][j]);
      }
      most = fold_row<Larger>(most);
      const float shift = most == -INFINITY ? 0 : most;  // where there is nothing but −∞ so far
      float of_tile = 0;
      for (int j = 0; j < 2; ++j) {
        const float p = seen[j] ? std::exp(scores[i][j] - shift) : 0;
        memory.p.at[row][thread_x() + kSide * j] = p;
        of_tile += p;
      }
      const float before = largest[i] == -INFINITY ? 0 : std::exp(largest[i] - shift);
      sum[i] = sum[i] * before + fold_row<Sum>(of_tile);
      y.scale(i, before);
      largest[i] = most;
    }
    __syncthreads();
    load(memory.other, q + 2 * head.width, head.stride, tile * kTile, of);
    __syncthreads();
    y.add(memory.other, [&](int row, int key) { return memory.p.at[row][key]; });
    __syncthreads();
  }
  for (int i = 0; i < 2; ++i) {
    const std::int64_t query = first + thread_y() + kSide * i;
    y.scale(i, 1 / sum[i]);
    if (thread_x() == 0 && query < of.places)
      arguments.log_sum[head.in_log_sum + query] = largest[i] + std::log(sum[i]);
  }
  y.store(arguments.y + head.in_y, head.width, first, of);
}

template <int kWidth>
struct GradMemory {
  Rows<kWidth> q, k, v, dy;
  Scores p, ds;
  float log_sum[kTile];
  float of_query[kTile];  // Σ dy · y
};

static_assert(sizeof(GradMemory<128>) <= 99 << 10);  // of all GPUs from 8.0 on

// Of the queries from `first` on: log_sum and of_query, which 8 threads make together.
template <int kWidth>
__device__ void load_queries(GradMemory<kWidth>& memory, const AttentionGradArguments& arguments,
                             const Head& head, std::int64_t first) {
  const AttentionShape& of = arguments.of;
  load(memory.q, arguments.qkv + head.in_qkv, head.stride, first, of);
  load(memory.dy, arguments.dy + head.in_y, head.width, first, of);
  constexpr int kTeam = kThreads / kTile;
  const int row = static_cast<int>(threadIdx.x) / kTeam, lane_of_team = static_cast<int>(threadIdx.x) % kTeam;
  const bool is_there = first + row < of.places;
  float sum = 0;
  if (is_there)
    for (std::int64_t c = lane_of_team; c < of.size; c += kTeam) {
      const std::int64_t at = head.in_y + (first + row) * head.width + c;
      sum += arguments.dy[at] * arguments.y[at];
    }
  for (int distance = kTeam / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0u, sum, distance);
  if (lane_of_team != 0) return;
  memory.of_query[row] = sum;
  memory.log_sum[row] = is_there ? arguments.log_sum[head.in_log_sum + first + row] : 0;
}

// The tile's softmax and its scores' gradients, for rows of queries and columns of keys.
template <int kWidth>
__device__ void make_scores(GradMemory<kWidth>& memory, const AttentionShape& of, std::int64_t first_query,
                            std::int64_t first_key) {
  float scores[2][2], dp[2][2];
  multiply(memory.q, memory.k, static_cast<int>(of.size), scores);
  multiply(memory.dy, memory.v, static_cast<int>(of.size), dp);
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j) {
      const int row = thread_y() + kSide * i, column = thread_x() + kSide * j;
      const bool seen = sees(of, first_query + row, first_key + column);
      const float p = seen ? std::exp(of.scale * scores[i][j] - memory.log_sum[row]) : 0;
      memory.p.at[row][column] = p;
      memory.ds.at[row][column] = seen ? p * (dp[i][j] - memory.of_query[row]) * of.scale : 0;
    }
}

template <int kWidth>
__device__ void load_keys(GradMemory<kWidth>& memory, const AttentionGradArguments& arguments,
                          const Head& head, std::int64_t first) {
  const float* const k = arguments.qkv + head.in_qkv + head.width;
  load(memory.k, k, head.stride, first, arguments.of);
  load(memory.v, k + head.width, head.stride, first, arguments.of);
}

template <int kWidth>
__global__ __launch_bounds__(kThreads) void queries_kernel(
    const __grid_constant__ AttentionGradArguments arguments) {
  extern __shared__ float4 shared[];
  auto& memory = *reinterpret_cast<GradMemory<kWidth>*>(shared);
  const AttentionShape& of = arguments.of;
  const Own own(of, true);
  const Head head(of, own.number);
  const std::int64_t first = own.tile * kTile, end = of.causal ? own.tile + 1 : own.tiles;
  load_queries(memory, arguments, head, first);
  Sums<kWidth> dq;
  for (std::int64_t tile = 0; tile < end; ++tile) {
    load_keys(memory, arguments, head, tile * kTile);
    __syncthreads();
    make_scores(memory, of, first, tile * kTile);
    __syncthreads();
    dq.add(memory.k, [&](int query, int key) { return memory.ds.at[query][key]; });
    __syncthreads();
  }
  dq.store(arguments.dqkv + head.in_qkv, head.stride, first, of);
}

template <int kWidth>
__global__ __launch_bounds__(kThreads) void keys_kernel(
    const __grid_constant__ AttentionGradArguments arguments) {
  extern __shared__ float4 shared[];
  auto& memory = *reinterpret_cast<GradMemory<kWidth>*>(shared);
  const AttentionShape& of = arguments.of;
  const Own own(of, false);
  const Head head(of, own.number);
  const std::int64_t first = own.tile * kTile;
  load_keys(memory, arguments, head, first);
  Sums<kWidth> dk, dv;
  for (std::int64_t tile = of.causal ? own.tile : 0; tile < own.tiles; ++tile) {
    load_queries(memory, arguments, head, tile * kTile);
    __syncthreads();
    make_scores(memory, of, tile * kTile, first);
    __syncthreads();
    dk.add(memory.q, [&](int key, int query) { return memory.ds.at[query][key]; });
    dv.add(memory.dy, [&](int key, int query) { return memory.p.at[query][key]; });
    __syncthreads();
  }
  float* const to = arguments.dqkv + head.in_qkv + head.width;
  dk.store(to, head.stride, first, of);
  dv.store(to + head.width, head.stride, first, of);
}

// More shared memory than 48 KiB is to be asked for: once on each GPU.
template <auto kKernel>
cudaError_t ask_for_shared(int bytes) {
  static std::atomic<std::uint64_t> asked{0};  // by GPU; those from 64 on are asked each time
  int gpu = 0;
  cudaError_t code = cudaGetDevice(&gpu);
  const std::uint64_t own = gpu < 64 ? std::uint64_t{1} << gpu : 0;
  if (code != cudaSuccess || (asked & own) != 0) return code;
  code = cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (code == cudaSuccess) asked |= own;
  return code;
}

template <auto kKernel, typename Memory, typename Arguments>
cudaError_t start(cudaStream_t stream, const Arguments& arguments) {
  constexpr int kBytes = sizeof(Memory);
  const unsigned blocks = blocks_of(arguments.of);
  if (blocks == 0) return cudaSuccess;
  if constexpr (kBytes > 48 << 10)
    if (const cudaError_t code = ask_for_shared<kKernel>(kBytes); code != cudaSuccess) return code;
  kKernel<<<blocks, kThreads, kBytes, stream>>>(arguments);
  return launched();
}

template <int kWidth>
cudaError_t gradients(cudaStream_t stream, const AttentionGradArguments& arguments) {
  using Memory = GradMemory<kWidth>;
  const cudaError_t code = start<queries_kernel<kWidth>, Memory>(stream, arguments);
  return code != cudaSuccess ? code : start<keys_kernel<kWidth>, Memory>(stream, arguments);
}

}  // namespace

cudaError_t launch_tiled_attention(cudaStream_t stream, const AttentionArguments& arguments) {
  return arguments.of.size <= 64 ? start<forward_kernel<64>, ForwardMemory<64>>(stream, arguments)
                                 : start<forward_kernel<128>, ForwardMemory<128>>(stream, arguments);
}

cudaError_t launch_tiled_attention_grad(cudaStream_t stream, const AttentionGradArguments& arguments) {
  return arguments.of.size <= 64 ? gradients<64>(stream, arguments) : gradients<128>(stream, arguments);
}

}  // namespace kolo::cuda
