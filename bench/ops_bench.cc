#include <bench/ops_bench.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <kolo/core/base/json_text.h>
#include <kolo/core/base/median.h>
#include <kolo/core/graph/gradients.h>
#include <kolo/core/kernels/cpu/peak.h>
#include <kolo/core/ops/activations.h>
#include <kolo/core/ops/attention.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/convolution.h>
#include <kolo/core/ops/linalg.h>
#include <kolo/core/ops/losses.h>
#include <kolo/core/ops/normalization.h>
#include <kolo/core/ops/random.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>

namespace kolo::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;
constexpr int kOpWarmUp = 3, kFewestRuns = 8;

using Build = std::function<Output(Scope& s, const Outputs& x)>;

// One op: its inputs' shapes, all of which get a gradient, and the multiplications and additions of its
// definition.
struct OpCase {
  std::string op, where;
  std::vector<Shape> inputs;
  Build build;
  double flops = 0;            // forward; 0: not counted
  double backward_factor = 2;  // of that
};

OpCase product(const char* where, std::int64_t rows, std::int64_t inner, std::int64_t cols) {
  return {"matmul",
          where,
          {{rows, inner}, {inner, cols}},
          [](Scope& s, const Outputs& x) { return matmul(s, x[0], x[1]); },
          2.0 * static_cast<double>(rows * inner * cols)};
}

OpCase convolution(const char* where, std::int64_t images, std::int64_t in, std::int64_t size,
                   std::int64_t out, std::int64_t window, std::int64_t stride = 1) {
  const std::int64_t results = images * (size / stride) * (size / stride) * out;
  return {"conv2d",
          where,
          {{images, in, size, size}, {out, in, window, window}},
          [=](Scope& s, const Outputs& x) {
            return conv2d(s, x[0], x[1], {.strides = {stride, stride}});
          },
          2.0 * static_cast<double>(results * in * window * window)};
}

OpCase norm_of_channels(const char* where, const Shape& x) {
  return {"batch_norm", where, {x, {x.dim(1)}, {x.dim(1)}}, [](Scope& s, const Outputs& in) {
            return batch_norm(s, in[0], in[1], in[2], zeros_like(s, in[1]), ones_like(s, in[1])).y;
          }};
}

// Scores and mixed values of T · T pairs of places; half of them where it is causal.
OpCase attention(const char* where, std::int64_t batch, std::int64_t places, std::int64_t width,
                 std::int64_t heads) {
  return {
      "self_attention",
      where,
      {{batch, places, 3 * width}},
      [=](Scope& s, const Outputs& x) { return self_attention(s, x[0], {.heads = heads, .causal = true}); },
      2.0 * static_cast<double>(batch * places * (places + 1) * width),
      2.5};
}

std::vector<OpCase> cases() {
  return {
      product("mlp fc1", 128, 784, 1024),
      product("mlp fc2", 128, 1024, 1024),
      product("mlp fc3", 128, 1024, 10),
      product("lenet fc1", 64, 3136, 1024),
      product("gpt qkv", 2048, 256, 768),
      product("gpt out", 2048, 256, 256),
      product("gpt up", 2048, 256, 1024),
      product("gpt down", 2048, 1024, 256),
      product("gpt head", 2048, 256, 65),
      convolution("lenet conv2", 64, 32, 14, 64, 5),
      convolution("resnet20 stage1", 64, 16, 32, 16, 3),
      convolution("resnet20 stage2", 64, 32, 16, 32, 3),
      convolution("resnet20 stage3", 64, 64, 8, 64, 3),
      convolution("resnet50 3x3", 8, 64, 56, 64, 3),
      convolution("resnet50 1x1", 8, 256, 56, 64, 1),
      convolution("vgg16 conv3", 4, 256, 56, 256, 3),
      norm_of_channels("resnet20 stage1", {64, 16, 32, 32}),
      norm_of_channels("resnet50 stage1", {8, 256, 56, 56}),
      {"layer_norm",
       "gpt",
       {{2048, 256}, {256}, {256}},
       [](Scope& s, const Outputs& x) { return layer_norm(s, x[0], x[1], x[2]); }},
      {"gelu", "gpt", {{2048, 1024}}, [](Scope& s, const Outputs& x) { return gelu(s, x[0]); }},
      {"cross_entropy",
       "gpt",
       {{2048, 65}},
       [](Scope& s, const Outputs& x) {
         return sparse_softmax_cross_entropy_with_logits(s, x[0], fill(s, DType::i32, {2048}, 3));
       }},
      attention("gpt", 16, 128, 256, 4),
      attention("gpt124m", 1, 1024, 768, 12),
  };
}

struct Times {
  std::vector<double> ms;  // one a step
  double bytes = 0;
};

// The kernels of one op in one graph, timed by the step's own trace: what is not of the op (its inputs are
// variables) takes no part. Forward is what is in its scope, everything else that runs belongs to the
// gradients.
class OpRun {
 public:
  explicit OpRun(const OpCase& of, int threads) : session_(graph_, config(threads)) {
    Scope s(graph_);
    graph_.set_seed(1);
    Outputs inputs;
    for (const Shape& shape : of.inputs) inputs.push_back(made_up(s, shape));
    Scope forward = s.name_scope("forward");
    const Output y = of.build(forward, inputs);
    Outputs results = gradients(s, {y}, inputs, {made_up(s, y.shape())});
    forward_.bytes = bytes_of(inputs) + bytes_of({y});
    backward_.bytes = 2 * bytes_of(inputs) + bytes_of({y});
    results.push_back(y);
    const Operation initialize = global_variables_initializer(s);
    // Operations, not values: nothing is copied out of the step.
    std::vector<Operation> needed;
    for (const Output& result : results)
      if (result) needed.emplace_back(result);
    step_ = group(s, needed);
    session_.run(initialize);
  }

  void run(double seconds) {
    RunOptions options{.trace_level = TraceLevel::full_trace};
    for (int i = 0; i < kOpWarmUp; ++i) session_.run(step_);
    const auto begin = Clock::now();
    for (int i = 0; i < kFewestRuns || Milliseconds(Clock::now() - begin).count() < seconds * 1e3; ++i) {
      RunMetadata metadata;
      session_.run(std::vector<Fetch>{step_}, {}, options, &metadata);
      double forward = 0, backward = 0;
      for (const TraceEvent& event : metadata.step_stats.events)
        (event.name.rfind("forward/", 0) == 0 ? forward : backward) +=
            Milliseconds(event.end - event.start).count();
      forward_.ms.push_back(forward);
      backward_.ms.push_back(backward);
    }
  }

  const Times& forward() const { return forward_; }
  const Times& backward() const { return backward_; }

 private:
  static SessionConfig config(int threads) {
    SessionConfig config;
    config.intra_op_parallelism_threads = threads;
    config.inter_op_parallelism_threads = 1;
    return config;
  }
  static Variable made_up(Scope& s, const Shape& shape) {
    return Variable(s, random_normal(s, DType::f32, shape));
  }
  static double bytes_of(const Outputs& tensors) {
    double bytes = 0;
    for (const Output& tensor : tensors)
      bytes += static_cast<double>(tensor.shape().elements()) * sizeof(float);
    return bytes;
  }

  Graph graph_;
  Session session_;
  Operation step_;
  Times forward_, backward_;
};

void print(const OpCase& of, const char* pass, Times times, double flops, const CorePeak& peak, bool json) {
  std::sort(times.ms.begin(), times.ms.end());
  const double ms = median(times.ms), rate = flops / ms / 1e6, bytes = times.bytes / ms / 1e6;
  if (json) {
    nlohmann::ordered_json line{{"op", of.op},
                                {"where", of.where},
                                {"pass", pass},
                                {"ms", rounded(ms)},
                                {"min_ms", rounded(times.ms.front())},
                                {"steps", times.ms.size()},
                                {"GBps", rounded(bytes)},
                                {"share_of_triad", rounded(bytes / peak.GBps)}};
    if (flops > 0) line["GFLOPs"] = rounded(rate), line["share_of_peak"] = rounded(rate / peak.gflops);
    fmt::print("{}\n", json_text(line));
  } else {
    fmt::print("{:<15} {:<16} {:<8} {:8.3f} ms (min {:.3f})  {:6.1f} GB/s ({:3.0f} %)", of.op, of.where, pass,
               ms, times.ms.front(), bytes, 100 * bytes / peak.GBps);
    if (flops > 0) fmt::print("  {:6.1f} GFLOP/s ({:3.0f} %)", rate, 100 * rate / peak.gflops);
    fmt::print("\n");
  }
  std::fflush(stdout);
}

}  // namespace

void ops_bench(const OpsBenchOptions& options) {
  const CorePeak peak = measure_peak(1);
  for (const OpCase& of : cases()) {
    OpRun op(of, options.threads);
    op.run(options.seconds);
    print(of, "forward", op.forward(), of.flops, peak, options.json);
    print(of, "backward", op.backward(), of.backward_factor * of.flops, peak, options.json);
  }
}

}  // namespace kolo::bench
