// A loop of so many iterations, for tests.
#pragma once

#include <functional>

#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/control_flow.h>
#include <kolo/core/ops/math.h>

namespace kolo::testing {

/// Runs `effect` in each of `times` iterations; gives the number of iterations, an f64, once all are done.
inline Output counted_loop(const Scope& s, int times, const std::function<Operation(const Scope&)>& effect) {
  const auto number = [](const Scope& at, double value) { return fill(at, DType::f64, Shape{}, value); };
  return while_loop(
      s, [&](const Scope& c, const Outputs& v) { return less(c, v[0], number(c, times)); },
      [&](const Scope& b, const Outputs& v) {
        const Operation done = effect(b);
        return Outputs{add(b.control_dependencies({done}), v[0], number(b, 1))};
      },
      {number(s, 0)})[0];
}

}  // namespace kolo::testing
