// Runs a small graph on constants: op tests build it in one expression.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include <kolo/core/graph/graph.h>
#include <kolo/core/kernels/parallel.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/runtime/session.h>

#include "tests/core/op_checks.h"

namespace kolo {

/// What `build` makes of the inputs: the value of its last op, which the caller compares. With `known_shapes`
/// false the inputs are fed, and their shapes are unknown while the graph is built.
inline Tensor run_op(const std::vector<Tensor>& inputs,
                     const std::function<Output(Scope&, const Outputs&)>& build, bool known_shapes = true) {
  Graph graph;
  Scope s(graph);
  Outputs xs;
  Feeds feeds;
  for (const Tensor& input : inputs) {
    xs.push_back(known_shapes ? constant(s, input) : placeholder(s, input.dtype()));
    if (!known_shapes) feeds.emplace_back(xs.back(), input);
  }
  const Output y = build(s, xs);
  Tensor value = Session(graph).run(y, feeds);
  EXPECT_TRUE(y.shape().is_compatible_with(value.shape()))
      << y.shape().to_string() << " was expected of " << y.name();
  record_op_check(y.node->op(), OpCheck::value);
  return value;
}

/// Kernels may use so many threads while it lives.
class IntraOpThreads {
 public:
  explicit IntraOpThreads(int threads) : before_(intra_op_threads()) { set_intra_op_threads(threads); }
  ~IntraOpThreads() { set_intra_op_threads(before_); }
  IntraOpThreads(const IntraOpThreads&) = delete;
  IntraOpThreads& operator=(const IntraOpThreads&) = delete;

 private:
  int before_;
};

}  // namespace kolo
