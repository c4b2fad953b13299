// A warp for each query of each head, and in the gradient another for each key: its lanes share out the
// numbers of a head. Scores are made anew wherever they are needed, so that nothing of the size of all pairs
// of places is stored.
#include <cmath>

#include <kolo/core/kernels/cuda/launch_attention.h>
#include <kolo/core/kernels/elements/folds.h>
#include <kolo/core/kernels/cuda/attention_head.cuh>
#include <kolo/core/kernels/cuda/run.cuh>

namespace kolo::cuda {
namespace {

using elements::MaxFold;
using elements::SumFold;

template <typename Team>
KOLO_HOST_DEVICE float dot(const Team& team, const float* a, const float* b, std::int64_t count) {
  float sum = 0;
  for (std::int64_t c = team.lane(); c < count; c += team.lanes()) sum += a[c] * b[c];
  return team.template fold<SumFold>(sum);
}

struct AttentionWork : AttentionArguments {
  template <typename Team>
  KOLO_HOST_DEVICE void operator()(const Team& team, std::int64_t row) const {
    const Head head(of, row / of.places);
    const std::int64_t query = row % of.places, seen = of.causal ? query + 1 : of.places;
    const float *q = qkv + head.in_qkv + query * head.stride, *k = qkv + head.in_qkv + head.width,
                *v = k + head.width;
    const auto score = [&](std::int64_t key) {
      return of.scale * dot(team, q, k + key * head.stride, of.size);
    };
    float largest = MaxFold::start<float>();
    for (std::int64_t key = 0; key < seen; ++key) largest = MaxFold::join(largest, score(key));
    float* const to = y + head.in_y + query * head.width;
    float sum = 0;
    for (std::int64_t key = 0; key < seen; ++key) {
      const float p = std::exp(score(key) - largest);
      sum += p;
      for (std::int64_t c = team.lane(); c < of.size; c += team.lanes())
        to[c] = (key == 0 ? 0 : to[c]) + p * v[key * head.stride + c];
    }
    for (std::int64_t c = team.lane(); c < of.size; c += team.lanes()) to[c] /= sum;
    if (team.lane() == 0) log_sum[head.in_log_sum + query] = largest + std::log(sum);
  }
  template <typename Visit>
  void operands(const Visit& visit) {
    visit(qkv, 3 * of.batch * of.places * of.heads * of.size);
    visit(y, of.batch * of.places * of.heads * of.size);
    visit(log_sum, of.batch * of.places * of.heads);
  }
};

struct GradOperands : AttentionGradArguments {
  template <typename Visit>
  void operands(const Visit& visit) {
    visit(qkv, 3 * of.batch * of.places * of.heads * of.size);
    visit(y, of.batch * of.places * of.heads * of.size);
    visit(log_sum, of.batch * of.places * of.heads);
    visit(dy, of.batch * of.places * of.heads * of.size);
    visit(dqkv, 3 * of.batch * of.places * of.heads * of.size);
  }

  // The softmax of one pair of places, and the gradient of its score.
  struct Pair {
    float p, ds;
  };
  template <typename Team>
  KOLO_HOST_DEVICE Pair pair(const Team& team, const Head& head, std::int64_t query, std::int64_t key) const {
    const float *q = qkv + head.in_qkv + query * head.stride,
                *k = qkv + head.in_qkv + head.width + key * head.stride;
    const float *v = k + head.width, *of_y = y + head.in_y + query * head.width,
                *of_dy = dy + head.in_y + query * head.width;
    const float score = of.scale * dot(team, q, k, of.size), dp = dot(team, of_dy, v, of.size);
    const float p = std::exp(score - log_sum[head.in_log_sum + query]);
    return {p, p * (dp - dot(team, of_dy, of_y, of.size)) * of.scale};
  }
};

struct QueryGradWork : GradOperands {
  template <typename Team>
  KOLO_HOST_DEVICE void operator()(const Team& team, std::int64_t row) const {
    const Head head(of, row / of.places);
    const std::int64_t query = row % of.places, seen = of.causal ? query + 1 : of.places;
    const float* const k = qkv + head.in_qkv + head.width;
    float* const dq = dqkv + head.in_qkv + query * head.stride;
    for (std::int64_t key = 0; key < seen; ++key) {
      const float ds = pair(team, head, query, key).ds;
      for (std::int64_t c = team.lane(); c < of.size; c += team.lanes())
        dq[c] = (key == 0 ? 0 : dq[c]) + ds * k[key * head.stride + c];
    }
  }
};

// dK, or dV with kValues: both in one pass have more to keep than there are registers.
template <bool kValues>
struct KeyGradWork : GradOperands {
  template <typename Team>
  KOLO_HOST_DEVICE void operator()(const Team& team, std::int64_t row) const {
    const Head head(of, row / of.places);
    const std::int64_t key = row % of.places, first = of.causal ? key : 0;
    float* const result = dqkv + head.in_qkv + (kValues ? 2 : 1) * head.width + key * head.stride;
    for (std::int64_t query = first; query < of.places; ++query) {
      const Pair of_query = pair(team, head, query, key);
      const float factor = kValues ? of_query.p : of_query.ds;
      const float* const with =
          kValues ? dy + head.in_y + query * head.width : qkv + head.in_qkv + query * head.stride;
      for (std::int64_t c = team.lane(); c < of.size; c += team.lanes())
        result[c] = (query == first ? 0 : result[c]) + factor * with[c];
    }
  }
};

}  // namespace

cudaError_t launch_attention(cudaStream_t stream, const AttentionArguments& arguments) {
  const AttentionShape& of = arguments.of;
  return run_rows("attention", stream, of.batch * of.heads * of.places, AttentionWork{arguments});
}

cudaError_t launch_attention_grad(cudaStream_t stream, const AttentionGradArguments& arguments) {
  const AttentionShape& of = arguments.of;
  const std::int64_t rows = of.batch * of.heads * of.places;
  const cudaError_t code = run_rows("attention_query_grad", stream, rows, QueryGradWork{{arguments}});
  if (code != cudaSuccess) return code;
  const cudaError_t of_keys = run_rows("attention_key_grad", stream, rows, KeyGradWork<false>{{arguments}});
  if (of_keys != cudaSuccess) return of_keys;
  return run_rows("attention_value_grad", stream, rows, KeyGradWork<true>{{arguments}});
}

}  // namespace kolo::cuda
