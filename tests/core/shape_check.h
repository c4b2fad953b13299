// Checks the shape function of an op.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <initializer_list>
#include <utility>
#include <vector>

#include <kolo/core/graph/graph.h>
#include <kolo/core/ops/basic.h>

#include "tests/core/op_checks.h"

namespace kolo {

/// What is known of an input when the graph is built: {-1, 3}, {{-1, 3}, DType::i32}, Shape::unknown_rank().
struct KnownInput {
  KnownInput(std::initializer_list<std::int64_t> dims) : shape(dims) {}
  KnownInput(Shape shape, DType dtype = DType::f32) : shape(std::move(shape)), dtype(dtype) {}
  Shape shape;
  DType dtype = DType::f32;
};

/// The shape of what `build` makes of such inputs must be `expected`.
inline void expect_shape(const std::vector<KnownInput>& inputs,
                         const std::function<Output(Scope&, const Outputs&)>& build, const Shape& expected) {
  Graph graph;
  Scope s(graph);
  Outputs xs;
  for (const KnownInput& input : inputs) xs.push_back(placeholder(s, input.dtype, input.shape));
  const Output y = build(s, xs);
  EXPECT_EQ(y.shape().to_string(), expected.to_string()) << y.name();
  record_op_check(y.node->op(), OpCheck::shape);
}

}  // namespace kolo
