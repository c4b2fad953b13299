// What kolo-train --tensorboard writes: the rows of its log as curves, the graph, and the weights' spread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <kolo/core/graph/scope.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>
#include <kolo/core/summary/summary_writer.h>

namespace kolo::models {

/// Rank 0's. A disk that is full ends the events, with one warning, and not the training. One thread.
class EventLog {
 public:
  /// histogram_steps: between two histograms of the trainable variables; 0: none. Throws what SummaryWriter
  /// does.
  EventLog(const std::string& folder, const Graph& graph, std::int64_t first_step,
           std::int64_t histogram_steps);

  /// A row of metrics.jsonl: its loss, rates and what the test samples say.
  void add(const nlohmann::ordered_json& row);
  /// The weights after this step, where their histograms are due.
  void add_weights(Session& session, std::int64_t step);
  void close();

 private:
  void write(const std::function<void()>& action);

  SummaryWriter writer_;
  bool has_failed_ = false;
  std::vector<Variable> weights_;
  std::int64_t histogram_steps_;
};

}  // namespace kolo::models
