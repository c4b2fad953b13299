// The value of a graph's global step, as hooks and monitored sessions read it between runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/fetch.h>
#include <kolo/core/runtime/session.h>
#include <kolo/core/tensor/tensor.h>

namespace kolo {

/// Of the variable's value, i32 or i64.
std::int64_t step_of(const Tensor& value);

/// From the variable's storage: no run. `step`: i32 or i64.
std::int64_t read_global_step(Session& session, const Variable& step);

/// The graph's global step. Throws FailedPreconditionError `Global step should be created to use <user>.`
Variable require_global_step(const Graph& graph, const std::string& user);

namespace detail {

/// The step behind a run, which comes with the run where that counts it: a read of its own would wait for a
/// GPU, or for another task, once more. Where another counts, as the chief of workers in step does, the run's
/// own view may be older than its end.
class StepOfRun {
 public:
  StepOfRun() = default;
  /// Adds a read to the graph, younger than every update that it has.
  StepOfRun(Graph& graph, const Variable& step);

  /// To be fetched with `fetches`; null where they do not count the step, or are not known but by name.
  Output behind(const std::vector<Fetch>& fetches);

 private:
  Variable step_;
  Output read_;
  std::vector<Operation> last_;  // of the fetches asked about; most runs ask for the same
  bool last_counts_ = false;
};

}  // namespace detail

}  // namespace kolo
