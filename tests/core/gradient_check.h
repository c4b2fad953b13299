// Checks the gradients of an op against central differences of its own values.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <vector>

#include <kolo/core/graph/gradients.h>
#include <kolo/core/graph/graph.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/runtime/session.h>

#include "tests/core/op_checks.h"

namespace kolo {

/// Numbers in [−1, 1] that look random and are the same everywhere; none is within 0.01 of 0.
inline Tensor test_numbers(const Shape& shape, int salt = 0) {
  Tensor tensor(DType::f64, shape);
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    const double x = std::sin(1.7 * static_cast<double>(i) + 0.9 * salt + 0.5);
    tensor.data<double>()[i] = std::abs(x) < 0.01 ? 0.5 : x;
  }
  return tensor;
}

struct GradientCheck {
  DType dtype = DType::f64;        // of the graph; f32 for ops that know no f64
  double step = 1e-5;              // of the difference quotient
  double tolerance = 1e-7;         // of the difference, relative to the larger of 1 and the gradient
  bool known_shapes = true;        // false: the placeholders' shapes are unknown when the graph is built
  std::vector<int> constant = {};  // inputs that get no gradient
};

namespace detail {

template <typename T>
Tensor converted(const Tensor& from, DType to) {
  Tensor result(to, from.shape());
  for (std::int64_t i = 0; i < from.elements(); ++i) {
    if (to == DType::f64) result.data<double>()[i] = static_cast<double>(from.data<T>()[i]);
    else result.data<float>()[i] = static_cast<float>(from.data<T>()[i]);
  }
  return result;
}

inline Tensor as_double(const Tensor& from) {
  return from.dtype() == DType::f32 ? converted<float>(from, DType::f64) : from;
}

// `ends` and what they are computed from, as far as `enters` allows.
template <typename Enters>
std::set<const Node*> nodes_behind(const Outputs& ends, const Enters& enters) {
  std::set<const Node*> found;
  std::vector<const Node*> stack;
  for (const Output& end : ends)
    if (end) stack.push_back(end.node);
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    if (!enters(*node) || !found.insert(node).second) continue;
    for (const Output& in : node->inputs()) stack.push_back(in.node);
  }
  return found;
}

// A wrong gradient of any op between the xs and y, and a wrong value of any op that the gradients are made
// of, is a wrong derivative of y.
inline void record_gradient_checks(const Output& y, const Outputs& xs, const Outputs& dxs, int first_of_dxs) {
  std::set<const Node*> on_path;
  for (std::size_t k = 0; k < xs.size(); ++k)
    if (dxs[k]) on_path.insert(xs[k].node);
  const auto nodes =
      nodes_behind({y}, [](const Node& n) { return n.schema().gradient_function() != nullptr; });
  std::vector<const Node*> by_id(nodes.begin(), nodes.end());
  std::sort(by_id.begin(), by_id.end(), [](const Node* a, const Node* b) { return a->id() < b->id(); });
  for (const Node* node : by_id)
    for (const Output& in : node->inputs())
      if (on_path.count(in.node) > 0 && on_path.insert(node).second)
        record_op_check(node->op(), OpCheck::gradient);
  for (const Node* node : nodes_behind(dxs, [&](const Node& n) { return n.id() >= first_of_dxs; }))
    record_op_check(node->op(), OpCheck::value);
}

}  // namespace detail

/// `build` makes the tensor to be differentiated from placeholders that are fed `inputs` (f64 numbers). The
/// gradients of Σ wᵢ·yᵢ, with fixed weights w that tell the elements of y apart, must be the central
/// differences.
inline void expect_gradients(const std::vector<Tensor>& inputs,
                             const std::function<Output(Scope&, const Outputs&)>& build,
                             const GradientCheck& check = {}) {
  Graph graph;
  Scope s(graph);
  Outputs xs;
  Feeds feeds;
  for (const Tensor& input : inputs) {
    xs.push_back(placeholder(s, check.dtype, check.known_shapes ? input.shape() : Shape::unknown_rank()));
    feeds.emplace_back(xs.back(), detail::converted<double>(input, check.dtype));
  }
  const Output y = build(s, xs);
  const Output weights = placeholder(s, check.dtype, check.known_shapes ? y.shape() : Shape::unknown_rank());
  const int first_of_gradients = graph.num_nodes();
  const Outputs gradients_of_xs = gradients(s, {y}, xs, {weights});
  Session session(graph);
  const Tensor w = test_numbers(session.run(y, feeds).shape(), 7);
  const Feeds plain_feeds = feeds;
  feeds.emplace_back(weights, detail::converted<double>(w, check.dtype));

  const auto weighted_sum = [&](const Feeds& at) {
    const Tensor values = detail::as_double(session.run(y, at));
    double sum = 0;
    for (std::int64_t i = 0; i < values.elements(); ++i)
      sum += w.data<double>()[i] * values.data<double>()[i];
    return sum;
  };
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (std::count(check.constant.begin(), check.constant.end(), static_cast<int>(k)) > 0) {
      EXPECT_FALSE(gradients_of_xs[k]) << "input " << k << " has a gradient";
      continue;
    }
    ASSERT_TRUE(gradients_of_xs[k]) << "input " << k << " has no gradient";
    if (check.known_shapes) {
      EXPECT_EQ(gradients_of_xs[k].shape().to_string(), inputs[k].shape().to_string()) << "input " << k;
      record_op_check(gradients_of_xs[k].node->op(), OpCheck::shape);
    }
    const Tensor gradient = detail::as_double(session.run(gradients_of_xs[k], feeds));
    ASSERT_EQ(gradient.shape(), inputs[k].shape()) << "input " << k;
    for (std::int64_t i = 0; i < gradient.elements(); ++i) {
      double around[2];
      for (int side = 0; side < 2; ++side) {
        Tensor moved = inputs[k].clone();
        moved.data<double>()[i] += side == 0 ? -check.step : check.step;
        Feeds at = plain_feeds;
        at[k].second = detail::converted<double>(moved, check.dtype);
        around[side] = weighted_sum(at);
      }
      const double expected = (around[1] - around[0]) / (2 * check.step);
      EXPECT_NEAR(gradient.data<double>()[i], expected, check.tolerance * std::max(1.0, std::abs(expected)))
          << "element " << i << " of input " << k;
    }
  }
  detail::record_gradient_checks(y, xs, gradients_of_xs, first_of_gradients);
}

}  // namespace kolo
