#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include <dnnl.hpp>

#include <kolo/core/kernels/cpu/loops/ask_for.h>
#include <kolo/core/kernels/cpu/loops/softmax_loops.h>
#include <kolo/core/kernels/cpu/onednn/onednn.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/kernels/parallel.h>

namespace kolo {
namespace {

// How an attention lies in memory: heads side by side in a place, places `stride` apart in qkv and `width`
// apart in y.
struct Heads {
  Heads(const Shape& qkv, std::int64_t heads_of_place, bool is_causal)
      : batch(qkv.dim(0)),
        places(qkv.dim(1)),
        heads(heads_of_place),
        size(qkv.dim(2) / (3 * heads_of_place)),
        causal(is_causal) {}

  std::int64_t width() const { return heads * size; }
  std::int64_t stride() const { return 3 * width(); }
  std::int64_t count() const { return batch * heads; }
  // Where head number i of all sequences begins: its queries in qkv (keys and values are `width` and 2 ·
  // `width` behind them), its part of y, its numbers in log_sum.
  std::int64_t in_qkv(std::int64_t i) const { return i / heads * places * stride() + i % heads * size; }
  std::int64_t in_y(std::int64_t i) const { return i / heads * places * width() + i % heads * size; }
  std::int64_t in_log_sum(std::int64_t i) const { return i * places; }
  // How many places `place` looks at.
  std::int64_t seen_by(std::int64_t place) const { return causal ? place + 1 : places; }
  double scale() const { return 1 / std::sqrt(static_cast<double>(size)); }

  std::int64_t batch, places, heads, size;
  bool causal;
};

Heads heads_of(const Shape& qkv, const KernelInit& init) {
  return {qkv, init.attr<std::int64_t>("heads"), init.attr<bool>("causal")};
}

// The scores of so many queries at a time: as many numbers as stay in a core's own cache, and enough rows for
// a matrix product. Few rows save work where attention is causal: of T keys the first query sees 1. Measured
// on 128 places of 64 numbers (Zen 5): 32, 64 and 128 rows give 150 to 170, 165 to 180 and 170 to 180
// GFLOP/s, and 5/8, 3/4 and all of the work.
constexpr std::int64_t kScores = 32768, kMostRows = 64, kFewestRows = 16;

// Rows [first, first + count) of queries, which see no key from `keys` on.
struct Block {
  std::int64_t first, count, keys;
};

std::vector<Block> blocks_of(const Heads& h) {
  const std::int64_t rows = std::clamp(kScores / h.places, kFewestRows, kMostRows);
  std::vector<Block> blocks;
  for (std::int64_t first = 0; first < h.places; first += rows) {
    const std::int64_t count = std::min(rows, h.places - first);
    blocks.push_back({first, count, h.seen_by(first + count - 1)});
  }
  return blocks;
}

std::int64_t scores_of(const std::vector<Block>& blocks) {
  std::int64_t most = 0;
  for (const Block& block : blocks) most = std::max(most, block.count * block.keys);
  return (most + 15) / 16 * 16;
}

// A row-major matrix within rows that are `stride` apart; `transposed`: taken so.
struct Matrix {
  const float* at;
  std::int64_t stride;
  bool transposed = false;
};
struct SliceProduct {
  float* at;
  std::int64_t stride;
  std::int64_t rows, cols, inner;
};

// While one head is computed on, the kernels ask for the next one's rows: one layer of gpt takes 2.8 ms
// forward and 5.3 back instead of 3.1 and 6.2 (processor time, Xeon, family 6 model 167). One block of
// queries at a time, the products by oneDNN's sgemm on queries, keys and values where they lie.
class BlockedKernel : public Kernel {
 public:
  BlockedKernel(KernelInit& init, int tiles)
      : heads_(heads_of(init.input_shape(0), init)),
        blocks_(blocks_of(heads_)),
        tile_(scores_of(blocks_)),
        threads_(init.threads()),
        of_thread_(tiles * tile_) {
    init.request_scratch(static_cast<std::size_t>(threads_ * of_thread_) * sizeof(float));
  }

 protected:
  // Calls body(number of the head, tiles for scores, each of tile_ numbers).
  template <typename Body>
  void for_heads(KernelContext& context, const Body& body) {
    const detail::OmpThreads threads(threads_);
    float* const scratch = reinterpret_cast<float*>(context.scratch());
    parallel_for(heads_.count(), 1, [&](std::int64_t begin, std::int64_t end) {
      float* const tiles = scratch + omp_get_thread_num() * of_thread_;
      for (std::int64_t head = begin; head < end; ++head) body(head, tiles);
    });
    const dnnl_status_t status = status_.exchange(dnnl_success);
    if (status != dnnl_success) detail::throw_onednn_error(dnnl::error(status, "a matrix product failed"));
  }

  // c = alpha · a · b + beta · c. In a loop of several threads, which no exception may leave.
  void multiply(const SliceProduct& c, const Matrix& a, const Matrix& b, float alpha, float beta) {
    const dnnl_status_t status =
        dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', c.rows, c.cols, c.inner, alpha, a.at,
                   a.stride, b.at, b.stride, beta, c.at, c.stride);
    if (status != dnnl_success) status_ = status;
  }

  const Heads heads_;
  const std::vector<Block> blocks_;
  const std::int64_t tile_;
  const detail::SoftmaxLoops& loops_ = detail::softmax_loops();

 private:
  int threads_;
  std::int64_t of_thread_;  // numbers of scratch memory
  std::atomic<dnnl_status_t> status_ = dnnl_success;
};

class Attention final : public BlockedKernel {
 public:
  explicit Attention(KernelInit& init) : BlockedKernel(init, 1) {}

  void compute(KernelContext& context) override {
    const float* const qkv = context.input(0).data<float>();
    float *const y = context.output(0).data<float>(), *const log_sum = context.output(1).data<float>();
    for_heads(context, [&](std::int64_t head, float* scores) {
      const float* const next = qkv + heads_.in_qkv(std::min(head + 1, heads_.count() - 1));
      for (const Block& block : blocks_)
        attend(block, qkv + heads_.in_qkv(head), next, y + heads_.in_y(head),
               log_sum + heads_.in_log_sum(head), scores);
    });
  }

 private:
  // next: the next head's queries.
  void attend(const Block& block, const float* q, const float* next, float* y, float* log_sum,
              float* scores) {
    const std::int64_t stride = heads_.stride(), width = heads_.width(), keys = block.keys;
    const float *k = q + width, *v = k + width;
    multiply({scores, keys, block.count, keys, heads_.size}, {q + block.first * stride, stride},
             {k, stride, true}, static_cast<float>(heads_.scale()), 0);
    float sums[kMostRows];
    for (std::int64_t i = 0; i < block.count; ++i) {
      for (int part = 0; part < 3; ++part)
        detail::ask_for(next + (block.first + i) * stride + part * width, heads_.size);
      float* const row = scores + i * keys;
      const std::int64_t seen = heads_.seen_by(block.first + i);
      const float largest = loops_.largest(row, seen);
      sums[i] = loops_.exponentials(row, largest, row, seen);
      std::fill(row + seen, row + keys, 0.0f);
      log_sum[block.first + i] = largest + std::log(sums[i]);
    }
    float* const to = y + block.first * width;
    multiply({to, width, block.count, heads_.size, keys}, {scores, keys}, {v, stride}, 1, 0);
    for (std::int64_t i = 0; i < block.count; ++i) loops_.scale(to + i * width, 1 / sums[i], heads_.size);
  }
};

// With P the softmax and S the scaled scores: dV = Pᵀ · dY, dP = dY · Vᵀ, dS = P ∘ (dP − d) where d is the
// sum of dY ∘ Y of the query, dQ = scale · dS · K, dK = scale · dSᵀ · Q (Dao et al., arXiv:2205.14135,
// appendix B).
class AttentionGrad final : public BlockedKernel {
 public:
  explicit AttentionGrad(KernelInit& init) : BlockedKernel(init, 2) {}

  void compute(KernelContext& context) override {
    const float *const qkv = context.input(0).data<float>(), *const y = context.input(1).data<float>(),
                       *const log_sum = context.input(2).data<float>(),
                       *const dy = context.input(3).data<float>();
    float* const dqkv = context.output(0).data<float>();
    for_heads(context, [&](std::int64_t head, float* tiles) {
      const auto of_head = [&](std::int64_t i) {
        return Of{qkv + heads_.in_qkv(i), y + heads_.in_y(i), log_sum + heads_.in_log_sum(i),
                  dy + heads_.in_y(i), dqkv + heads_.in_qkv(i)};
      };
      const Of of = of_head(head), next = of_head(std::min(head + 1, heads_.count() - 1));
      // From the last block back: it sees all keys, so it writes what the others add to.
      for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block)
        go_back(*block, of, next, tiles, block == blocks_.rbegin() ? 0.0f : 1.0f);
    });
  }

 private:
  struct Of {
    const float *q, *y, *log_sum, *dy;
    float* dq;
  };

  void go_back(const Block& block, const Of& of, const Of& next, float* tiles, float beta) {
    const std::int64_t stride = heads_.stride(), width = heads_.width(), size = heads_.size,
                       keys = block.keys, first = block.first;
    const auto scale = static_cast<float>(heads_.scale());
    const float *q = of.q + first * stride, *k = of.q + width, *v = k + width, *dy = of.dy + first * width;
    float *const p = tiles, *const ds = tiles + tile_, *const dk = of.dq + width, *const dv = dk + width;
    multiply({p, keys, block.count, keys, size}, {q, stride}, {k, stride, true}, scale, 0);
    multiply({ds, keys, block.count, keys, size}, {dy, width}, {v, stride, true}, 1, 0);
    for (std::int64_t i = 0; i < block.count; ++i) {
      for (int part = 0; part < 3; ++part) {
        detail::ask_for(next.q + (first + i) * stride + part * width, size);
        detail::ask_for(next.dq + (first + i) * stride + part * width, size);
      }
      detail::ask_for(next.y + (first + i) * width, size);
      detail::ask_for(next.dy + (first + i) * width, size);
      const std::int64_t seen = heads_.seen_by(first + i);
      const float mean = loops_.dot(dy + i * width, of.y + (first + i) * width, size);
      loops_.score_gradient(p + i * keys, ds + i * keys, of.log_sum[first + i], mean, scale, seen);
      std::fill(p + i * keys + seen, p + (i + 1) * keys, 0.0f);
      std::fill(ds + i * keys + seen, ds + (i + 1) * keys, 0.0f);
    }
    multiply({dv, stride, keys, size, block.count}, {p, keys, true}, {dy, width}, 1, beta);
    multiply({of.dq + first * stride, stride, block.count, size, keys}, {ds, keys}, {k, stride}, 1, 0);
    multiply({dk, stride, keys, size, block.count}, {ds, keys, true}, {q, stride}, 1, beta);
  }
};

template <typename K>
std::unique_ptr<Kernel> make_blocked(KernelInit& init) {
  if (!detail::has_elements(init))
    return init.decline("a tensor has no elements, or a shape that is not known before the step");
  return std::make_unique<K>(init);
}

// The plain loops, one query after the other, all sums in T: for gradient checks in f64 and for what has no
// elements.
template <typename T>
class PlainAttention final : public Kernel {
 public:
  explicit PlainAttention(const KernelInit& init)
      : heads_(init.attr<std::int64_t>("heads")), causal_(init.attr<bool>("causal")) {}

  void compute(KernelContext& context) override {
    const Heads h(context.input(0).shape(), heads_, causal_);
    parallel_for(h.count(), 1, [&](std::int64_t begin, std::int64_t end) {
      std::vector<T> p(static_cast<std::size_t>(h.places));
      for (std::int64_t head = begin; head < end; ++head) attend(context, h, head, p);
    });
  }

 private:
  static void attend(KernelContext& context, const Heads& h, std::int64_t head, std::vector<T>& p) {
    const T *q = context.input(0).data<T>() + h.in_qkv(head), *k = q + h.width(), *v = k + h.width();
    T *y = context.output(0).data<T>() + h.in_y(head),
      *log_sum = context.output(1).data<T>() + h.in_log_sum(head);
    for (std::int64_t i = 0; i < h.places; ++i) {
      const std::int64_t seen = h.seen_by(i);
      for (std::int64_t j = 0; j < seen; ++j) {
        T score(0);
        for (std::int64_t c = 0; c < h.size; ++c) score += q[i * h.stride() + c] * k[j * h.stride() + c];
        p[static_cast<std::size_t>(j)] = score * static_cast<T>(h.scale());
      }
      const T largest = *std::max_element(p.begin(), p.begin() + seen);
      T sum(0);
      for (std::int64_t j = 0; j < seen; ++j) {
        T& of_key = p[static_cast<std::size_t>(j)];
        sum += of_key = std::exp(of_key - largest);
      }
      log_sum[i] = largest + std::log(sum);
      for (std::int64_t c = 0; c < h.size; ++c) {
        T mixed(0);
        for (std::int64_t j = 0; j < seen; ++j)
          mixed += p[static_cast<std::size_t>(j)] * v[j * h.stride() + c];
        y[i * h.width() + c] = mixed / sum;
      }
    }
  }

  std::int64_t heads_;
  bool causal_;
};

template <typename T>
class PlainAttentionGrad final : public Kernel {
 public:
  explicit PlainAttentionGrad(const KernelInit& init)
      : heads_(init.attr<std::int64_t>("heads")), causal_(init.attr<bool>("causal")) {}

  void compute(KernelContext& context) override {
    const Heads h(context.input(0).shape(), heads_, causal_);
    const Tensor& dqkv = context.output(0);
    std::fill_n(dqkv.data<T>(), dqkv.elements(), T(0));
    parallel_for(h.count(), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t head = begin; head < end; ++head) go_back(context, h, head);
    });
  }

 private:
  static void go_back(KernelContext& context, const Heads& h, std::int64_t head) {
    const T *q = context.input(0).data<T>() + h.in_qkv(head), *k = q + h.width(), *v = k + h.width();
    const T *y = context.input(1).data<T>() + h.in_y(head), *dy = context.input(3).data<T>() + h.in_y(head);
    const T* log_sum = context.input(2).data<T>() + h.in_log_sum(head);
    T *dq = context.output(0).data<T>() + h.in_qkv(head), *dk = dq + h.width(), *dv = dk + h.width();
    const T scale = static_cast<T>(h.scale());
    for (std::int64_t i = 0; i < h.places; ++i) {
      const T *of_y = y + i * h.width(), *of_dy = dy + i * h.width(), *query = q + i * h.stride();
      T mean(0);
      for (std::int64_t c = 0; c < h.size; ++c) mean += of_dy[c] * of_y[c];
      for (std::int64_t j = 0; j < h.seen_by(i); ++j) {
        const std::int64_t at = j * h.stride();
        T score(0), dp(0);
        for (std::int64_t c = 0; c < h.size; ++c) {
          score += query[c] * k[at + c];
          dp += of_dy[c] * v[at + c];
        }
        const T p = std::exp(score * scale - log_sum[i]), ds = p * (dp - mean) * scale;
        for (std::int64_t c = 0; c < h.size; ++c) {
          dv[at + c] += p * of_dy[c];
          dq[i * h.stride() + c] += ds * k[at + c];
          dk[at + c] += ds * query[c];
        }
      }
    }
  }

  std::int64_t heads_;
  bool causal_;
};

const RegisterKernel blocked("SelfAttention", "CPU", {DType::f32}, make_blocked<Attention>, 1);
const RegisterKernel plain_f32("SelfAttention", "CPU", {DType::f32}, make_kernel<PlainAttention<float>>);
const RegisterKernel plain_f64("SelfAttention", "CPU", {DType::f64}, make_kernel<PlainAttention<double>>);
const RegisterKernel blocked_grad("SelfAttentionGrad", "CPU", {DType::f32}, make_blocked<AttentionGrad>, 1);
const RegisterKernel plain_grad_f32("SelfAttentionGrad", "CPU", {DType::f32},
                                    make_kernel<PlainAttentionGrad<float>>);
const RegisterKernel plain_grad_f64("SelfAttentionGrad", "CPU", {DType::f64},
                                    make_kernel<PlainAttentionGrad<double>>);

}  // namespace

}  // namespace kolo
