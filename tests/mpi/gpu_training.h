// A small training of a model of the zoo on chosen devices: what it leaves in its variables, bit by bit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <kolo/collectives/job/init.h>
#include <kolo/core/base/process.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/losses.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>
#include <kolo/core/training/saver.h>
#include <kolo/models/models.h>
#include <kolo/optimizer/distributed_optimizer.h>
#include <kolo/optimizer/registry.h>

namespace kolo::testing {

struct GpuTraining {
  std::string model;                             // "lenet" or "resnet20"
  std::vector<std::string> towers = {"/gpu:0"};  // a model each; their losses are added up on the CPU
  std::string variables = "";                    // where they lie instead of beside their tower
  int steps = 2;
  std::uint64_t delay_seed = 0;           // of the virtual GPUs
  int threads = -1;                       // that run nodes
  std::string restored = "", saved = "";  // checkpoints before the first step and behind the last
};

namespace detail {

// Some numbers between −1 and 1, others for each rank.
inline Tensor images(const Shape& shape) {
  Tensor values(DType::f32, shape);
  std::uint32_t state = 12345u + static_cast<std::uint32_t>(process().rank);
  for (float& value : values.span<float>())
    value = static_cast<float>((state = state * 1664525u + 1013904223u) >> 8) / 8388608.0f - 1;
  return values;
}

}  // namespace detail

/// The bytes of all variables, slots as well, and the loss of the last step.
inline std::string trained(const GpuTraining& training) {
  Graph graph;
  graph.set_seed(7);
  Scope root(graph);
  const Shape sample = training.model == "lenet" ? Shape{2, 1, 28, 28} : Shape{2, 3, 8, 8};
  const Output x = placeholder(root, DType::f32, sample), labels = placeholder(root, DType::i32, {2});
  const Scope shared = root.device(training.variables.empty() ? training.towers[0] : training.variables);
  const Variable scale(shared.named("scale"), constant(shared, 0.5f));
  Outputs losses;
  for (const std::string& device : training.towers) {
    Scope s = root.device(device).name_scope("tower");
    const Output logits = models::find_model(training.model).build(s, x);
    losses.push_back(softmax_cross_entropy(s, mul(s, logits, scale), labels));
  }
  Scope host = root.device("/cpu:0");
  const Output loss = losses.size() == 1 ? losses[0] : add_n(host, losses);
  DistributedOptimizer optimizer(make_optimizer("momentum", {.learning_rate = 0.01}));
  const Operation step = optimizer.minimize(root, loss);  // gradients go where the placer wants them

  SessionConfig config;
  const bool on_gpus = training.towers[0].find("gpu") != std::string::npos;
  config.virtual_gpus.assign(on_gpus ? 2 : 0,
                             {.total_bytes = std::int64_t{512} << 20, .delay_seed = training.delay_seed});
  config.inter_op_parallelism_threads = training.threads;
  config.intra_op_parallelism_threads = 1;
  config.use_per_session_threads = true;
  config.graph_options.disabled_passes = {"layout"};  // CPUs alone have it, and the bits are to be compared
  Session session(graph, config);
  session.run(global_variables_initializer(host));
  Saver saver(graph);
  if (!training.restored.empty()) saver.restore(session, training.restored);
  const Feeds feeds = {{x, detail::images(sample)}, {labels, Tensor::of<std::int32_t>({2}, {3, 8})}};
  std::string bytes;
  for (int i = 0; i < training.steps; ++i) {
    const Tensor last = session.run(std::vector<Fetch>{loss, step}, feeds).at(0);
    if (i + 1 == training.steps) bytes = last.to_string();
  }
  if (!training.saved.empty()) saver.save(session, training.saved);
  for (const Variable& variable : global_variables(graph)) {
    const Tensor value = session.run(variable.read());
    bytes.append(reinterpret_cast<const char*>(value.raw()), value.bytes());
  }
  return bytes;
}

}  // namespace kolo::testing
