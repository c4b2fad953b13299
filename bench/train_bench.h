// kolo-bench train: the time of a training step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <kolo/core/passes/graph_options.h>
#include <kolo/models/models.h>

namespace kolo::bench {

struct TrainBenchOptions {
  enum class Device { any, cpu, gpu };  // any: GPUs where there are some

  std::vector<std::string> models;
  Device device = Device::any;
  bool feeds = true;        // a batch of the host's memory in each step; else it is the graph's own
  bool fetches = true;      // the loss in each step; else nothing
  bool allow_tf32 = false;  // GpuOptions::allow_tf32
  models::ModelSize size;   // of models that let it be chosen
  std::optional<std::int64_t> context,
      batch;                // tokens of a sample, samples of a batch; none: the model's own
  int threads = 0;          // as kolo-train's --threads
  double seconds = 8;       // for each model and round, after warming up
  std::int64_t steps = 0;   // instead of `seconds`, where it is not 0
  int optimizer_level = 1;  // of the graph: 0 or 1
  Precision precision = Precision::f32;
  std::string optimizer = "momentum";
  bool sharded = false;              // DistributedOptimizerOptions::sharded
  std::vector<std::string> against;  // peers' commands, as run_peer (peer.h) takes them
  bool apart = false;                // also measures the same ranks' steps with nothing reduced
  int rounds = 5;                    // with peers or `apart`: each is measured so often, in turns
  bool json = false;
};

/// Forward, loss, backward and update, by SGD with momentum unless another optimizer is named, on one batch
/// of made-up samples: mlp 128 of them a rank, resnet50 8, vgg16 4, gpt 16, others 64, as the PyTorch program
/// that it is compared with does. All ranks call it together; rank 0 prints a row for each model, and behind
/// it one for each peer: the peer's median over kolo's (above 1: kolo is faster), each the median of its
/// rounds' medians, and the least and largest of the rounds' own ratios; with `apart` what the ranks' speeds
/// add up to over what they add up to where each trains for itself. Throws FailedPreconditionError where a
/// peer fails or does other work, there is one rank to be measured apart, or no GPU where one is asked for.
/// On a GPU what is fed lies in pinned memory, in two batches by turns, and KOLO_CUDA_COUNT=1 adds counts.
void train_bench(const TrainBenchOptions& options);

}  // namespace kolo::bench
