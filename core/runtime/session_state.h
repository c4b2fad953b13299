// What a session holds from run to run: variables, queues, positions of random ops, votes among the ranks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <kolo/core/base/mutex.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/config.h>
#include <kolo/core/runtime/plan.h>
#include <kolo/core/runtime/session_devices.h>

namespace kolo {

class Session;

namespace detail {

/// Any thread.
class SessionState final : public PlanEnvironment {
 public:
  SessionState(Graph& graph, SessionConfig config, int intra_op_threads)
      : graph_(graph), config_(std::move(config)), devices_(config_), intra_op_threads_(intra_op_threads) {}

  Graph& graph() const { return graph_; }
  const SessionConfig& config() const { return config_; }

  const DeviceSet& devices() const override { return devices_.devices(); }
  void place(StepGraph& graph) override { devices_.place(graph); }
  bool place_elsewhere(const Node& node, const std::string& device_type) override {
    return devices_.place_elsewhere(node, device_type);
  }
  GraphOptions graph_options() const override { return graph_options_of(config_); }
  int intra_op_threads() const override { return intra_op_threads_; }
  /// The storage of the variable whose node is `storage`; made at the first use, uninitialised. For savers
  /// and broadcasts, between runs.
  VariableStorage& variable(const Node& storage) override KOLO_EXCLUDES(mutex_);
  std::shared_ptr<Contained> contained(const Node& node) override { return containers_.find_or_make(node); }
  /// Does not make it where there is none.
  bool is_initialized(const Node& storage) KOLO_EXCLUDES(mutex_);
  RandomState& random_state(const std::string& node, std::int64_t op_seed) override KOLO_EXCLUDES(mutex_);
  /// The vote of the ranks that belongs to `node`, an op with a registered vote (a GroupAllReduce); made at
  /// the first call.
  std::shared_ptr<StepVote> vote(const Node& node) override KOLO_EXCLUDES(mutex_);

  std::map<std::string, std::uint64_t> random_positions() KOLO_EXCLUDES(mutex_);
  void set_random_positions(const std::map<std::string, std::uint64_t>& positions) KOLO_EXCLUDES(mutex_);
  /// Those of all such nodes of the graph, in the order of the nodes.
  StepVotes votes() KOLO_EXCLUDES(mutex_);
  /// Frees variables, queues and votes. No run is under way.
  void clear() KOLO_EXCLUDES(mutex_);

 private:
  VariableStorage& variable_locked(const Node& storage) KOLO_REQUIRES(mutex_);

  Graph& graph_;
  const SessionConfig config_;
  SessionDevices devices_;  // outlives plans and variables
  const int intra_op_threads_;
  Containers containers_;

  Mutex mutex_;
  std::map<int, std::unique_ptr<VariableStorage>> variables_ KOLO_GUARDED_BY(mutex_);
  std::map<std::string, std::unique_ptr<RandomState>> random_states_ KOLO_GUARDED_BY(mutex_);
  std::map<std::string, std::uint64_t> random_starts_ KOLO_GUARDED_BY(mutex_);
  std::map<int, std::shared_ptr<StepVote>> votes_ KOLO_GUARDED_BY(mutex_);
};

/// Of a session that is open, and as long as it lives.
SessionState& state_of(Session& session);
inline VariableStorage& storage_of(Session& session, const Variable& variable) {
  return state_of(session).variable(*variable.ref().node);
}

// Between runs, on any device.

/// The value in the host's memory: the variable's own memory where it lies there, else a copy.
Tensor read_variable(const VariableStorage& variable);
/// Memory of the host for a new value, to be written and handed to write_variable: the variable's own where
/// it lies there.
Tensor memory_for_value(const VariableStorage& variable);
/// value: in the host's memory, of the variable's type and shape. The variable is then initialized.
void write_variable(VariableStorage& variable, const Tensor& value);

}  // namespace detail
}  // namespace kolo
