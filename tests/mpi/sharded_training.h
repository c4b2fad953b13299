// A training whose variables are of many shapes, by an optimizer that may be sharded.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <kolo/collectives/job/init.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>
#include <kolo/core/training/hooks.h>
#include <kolo/optimizer/distributed_optimizer.h>
#include <kolo/optimizer/registry.h>
#include <tests/support/tensor_bytes.h>

namespace kolo {

using Options = DistributedOptimizerOptions;

// Variables of many shapes, some of which lie on several ranks, and a loss whose gradients differ from rank
// to rank, from element to element and from step to step.
inline const std::vector<Shape> kShapes = {{37, 11}, {5}, {}, {1001}, {0, 3}, {64, 33}, {2, 3, 4}, {300}};

// A number of many digits for each element: unlike on all ranks where it depends on `seed`.
inline Tensor numbers(const Shape& shape, int seed) {
  Tensor all(DType::f32, shape);
  for (std::int64_t i = 0; i < all.elements(); ++i)
    all.data<float>()[i] =
        std::sin(static_cast<float>(i + 1) * 0.37f + static_cast<float>(seed) * 1.7f) * 1.3f + 0.01f;
  return all;
}

class Training {
 public:
  using Change = std::function<std::vector<GradientPair>(const Scope&, std::vector<GradientPair>)>;

  Training(std::unique_ptr<Optimizer> inner, Options options, const std::vector<Shape>& shapes = kShapes,
           const Change& change = nullptr)
      : optimizer(std::move(inner), std::move(options)) {
    Output sum = constant(s, 0.0f);
    for (const Shape& shape : shapes) {
      const int i = static_cast<int>(variables.size());
      variables.emplace_back(s.named(fmt::format("v{}", i)), constant(s, numbers(shape, i)));
      const Output goal = constant(s, numbers(shape, 100 * rank() + i));
      sum = add(s, sum, reduce_sum(s, mul(s, square(s, sub(s, variables.back(), goal)), factor)));
    }
    loss = sum;
    auto pairs = optimizer.compute_gradients(s, loss);
    if (change) pairs = change(s, pairs);
    step = get_or_create_global_step(s);
    train = optimizer.apply_gradients(s, pairs, {.global_step = step});
    initializer = global_variables_initializer(s);
  }

  void run(Session& session, float value = 0.25f) { session.run(train, {{factor, Tensor::scalar(value)}}); }
  /// The bytes of each variable, and the global step.
  std::vector<std::string> state(Session& session) const {
    std::vector<std::string> all;
    for (const Variable& variable : variables) all.push_back(bytes_of(session.run(variable.read())));
    all.push_back(bytes_of(session.run(step.read())));
    return all;
  }
  std::vector<std::string> after(int steps) {
    Session session(graph);
    session.run(initializer);
    for (int i = 0; i < steps; ++i) run(session, 0.25f + 0.1f * static_cast<float>(i));
    return state(session);
  }

  Graph graph;
  Scope s{graph};
  Output factor = placeholder(s, DType::f32, {});
  Output loss;
  std::vector<Variable> variables;
  DistributedOptimizer optimizer;
  Variable step;
  Operation train, initializer;
};

// Several buckets.
inline Options small_buckets(Options options = {}) {
  options.first_bucket_bytes = 2048;
  options.bucket_bytes = 6000;
  return options;
}
inline Options sharded(Options options = {}) {
  options.sharded = true;
  return options;
}

}  // namespace kolo
