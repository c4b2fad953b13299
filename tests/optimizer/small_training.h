// Training of one variable by gradients that a test chooses.
#pragma once

#include <gtest/gtest.h>

#include <span>
#include <vector>

#include <kolo/core/ops/basic.h>
#include <kolo/core/runtime/session.h>
#include <kolo/optimizer/optimizer.h>

#include "tests/core/op_checks.h"

namespace kolo {

template <typename T>
std::vector<T> elements(const Tensor& tensor) {
  const std::span<T> span = tensor.span<T>();
  return {span.begin(), span.end()};
}

template <typename T>
Tensor tensor_of(const std::vector<T>& values) {
  return Tensor::of(Shape({static_cast<std::int64_t>(values.size())}), std::span<const T>(values));
}

// The ops that update `v` once it is initialised: their value is the variable's, their shape must be.
inline void record_update_checks(const Variable& v) {
  const Graph& graph = v.ref().node->graph();
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    if (node.num_inputs() == 0 || node.input(0) != v.ref()) continue;
    const auto& spec = node.schema().input_spec(0);
    if (!spec.updated || spec.initialized_by_op) continue;
    EXPECT_EQ(node.output_shape(0), v.ref().shape()) << node.name();
    record_op_check(node.op(), OpCheck::value);
    record_op_check(node.op(), OpCheck::shape);
  }
}

/// The variable's value after each of `steps` updates with the same gradient.
template <typename T>
std::vector<std::vector<T>> train(Optimizer& optimizer, const std::vector<T>& start,
                                  const std::vector<T>& gradient, int steps) {
  Graph graph;
  Scope s(graph);
  const Variable v(s.named("v"), constant(s, tensor_of(start)));
  const GradientPair pair = {constant(s, tensor_of(gradient)), v};
  const Operation step = optimizer.apply_gradients(s, {&pair, 1});
  Session session(graph);
  session.run(global_variables_initializer(s));
  std::vector<std::vector<T>> values;
  for (int i = 0; i < steps; ++i) {
    session.run(step);
    values.push_back(elements<T>(session.run(v.read())));
  }
  record_update_checks(v);
  return values;
}

}  // namespace kolo
