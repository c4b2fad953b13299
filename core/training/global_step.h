// The value of a graph's global step, as hooks and monitored sessions read it between runs.
#pragma once

#include <cstdint>
#include <string>

#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>
#include <kolo/core/tensor/tensor.h>

namespace kolo {

/// Of the variable's value, i32 or i64.
std::int64_t step_of(const Tensor& value);

/// From the variable's storage: no run. `step`: i32 or i64.
std::int64_t read_global_step(Session& session, const Variable& step);

/// The graph's global step. Throws FailedPreconditionError `Global step should be created to use <user>.`
Variable require_global_step(const Graph& graph, const std::string& user);

}  // namespace kolo
