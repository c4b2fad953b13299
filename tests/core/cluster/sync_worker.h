// A worker that trains in step with others: each makes the same graph, and has a monitored session of its
// own.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <kolo/core/cluster/cluster_spec.h>
#include <kolo/core/cluster/device_setter.h>
#include <kolo/core/graph/graph.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/training/monitored_session.h>
#include <kolo/optimizer/rules.h>
#include <kolo/optimizer/sync_replicas_optimizer.h>

namespace kolo {

struct SyncTraining {
  const ClusterSpec& cluster;
  std::string target;  // of the worker's own server
  int worker = 0;      // 0 is the chief
  int workers = 2;
  std::int64_t steps = 1;
  std::int64_t elements = 4;  // of the one variable, `w`
  std::function<void(std::int64_t step)> before_step = {};
};

/// Minimises the sum of rate · w², another rate for each worker, by the mean of all gradients in the workers'
/// order. The variable after the last step, as this worker sees it.
inline std::vector<float> train_in_step(const SyncTraining& with) {
  const std::string own = "/job:worker/task:" + std::to_string(with.worker);
  Graph graph;
  Scope s = Scope(graph).device(replica_device_setter({.worker_device = own, .cluster = with.cluster}));
  Tensor first(DType::f32, {with.elements});
  for (std::int64_t i = 0; i < with.elements; ++i) first.data<float>()[i] = 1.0f / static_cast<float>(i + 1);
  const Variable w(s.named("w"), constant(s, first));
  const Variable step = get_or_create_global_step(s);
  const Output rate = constant(s, Tensor::scalar(0.3f + 0.7f * static_cast<float>(with.worker)));
  SyncReplicasOptimizer optimizer(std::make_unique<GradientDescentOptimizer>(0.01), with.workers,
                                  with.workers, {.ordered = true});
  const Operation train =
      optimizer.minimize(s, reduce_sum(s, mul(s, mul(s, w.read(), w.read()), rate)), {.global_step = step});

  MonitoredTrainingSessionOptions options;
  options.master = with.target;
  options.is_chief = with.worker == 0;
  options.recovery_wait_secs = 0.05;
  options.config.device_filters = {"/job:ps", own};
  options.hooks = {std::make_shared<StopAtStepHook>(with.steps),
                   optimizer.make_session_run_hook(options.is_chief, 0)};
  MonitoredTrainingSession sess(graph, options);
  while (!sess.should_stop()) {
    if (with.before_step) with.before_step(sess.global_step());
    sess.run(train);
  }
  const Tensor value = sess.session().run(w.read());
  sess.close();
  return {value.span<float>().begin(), value.span<float>().end()};
}

}  // namespace kolo
