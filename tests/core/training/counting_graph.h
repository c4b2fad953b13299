// A graph whose training step adds one to the global step and to a variable.
#pragma once

#include <kolo/core/graph/scope.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>

namespace kolo {

struct CountingGraph {
  Graph graph;
  Scope s{graph};
  Variable step = get_or_create_global_step(s);
  Variable w{s.named("w"), constant(s, Tensor::of<float>({2}, {10, 20}))};
  Output count = assign_add(s, step, constant(s, Tensor::scalar<std::int64_t>(1)));
  Output train =
      assign_add(s.control_dependencies({Operation(count)}), w, constant(s, Tensor::of<float>({2}, {1, 1})));

  std::int64_t global_step(Session& session) const { return session.run(step.read()).value<std::int64_t>(); }
};

}  // namespace kolo
