// What a session holds from run to run: variables, positions of random ops, agreements among the ranks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <kolo/core/base/mutex.h>
#include <kolo/core/runtime/plan.h>
#include <kolo/core/runtime/session_devices.h>

namespace kolo::detail {

/// Any thread.
class SessionState final : public PlanEnvironment {
 public:
  SessionState(Graph& graph, SessionConfig config, int intra_op_threads)
      : graph_(graph), config_(std::move(config)), devices_(config_), intra_op_threads_(intra_op_threads) {}

  Graph& graph() const { return graph_; }
  const SessionConfig& config() const { return config_; }

  const DeviceSet& devices() const override { return devices_.devices(); }
  void place(StepGraph& graph) override { devices_.place(graph); }
  GraphOptions graph_options() const override { return config_.graph_options; }
  int intra_op_threads() const override { return intra_op_threads_; }
  VariableStorage& variable(const Node& storage) override KOLO_EXCLUDES(mutex_);
  RandomState& random_state(const std::string& node, std::int64_t op_seed) override KOLO_EXCLUDES(mutex_);
  std::shared_ptr<StepAgreement> agreement(const Node& node) override KOLO_EXCLUDES(mutex_);

  std::map<std::string, std::uint64_t> random_positions() KOLO_EXCLUDES(mutex_);
  void set_random_positions(const std::map<std::string, std::uint64_t>& positions) KOLO_EXCLUDES(mutex_);
  std::vector<std::shared_ptr<StepAgreement>> agreements() KOLO_EXCLUDES(mutex_);
  /// Frees the variables and agreements. No run is under way.
  void clear() KOLO_EXCLUDES(mutex_);

 private:
  VariableStorage& variable_locked(const Node& storage) KOLO_REQUIRES(mutex_);

  Graph& graph_;
  const SessionConfig config_;
  SessionDevices devices_;  // outlives plans and variables
  const int intra_op_threads_;

  Mutex mutex_;
  std::map<int, std::unique_ptr<VariableStorage>> variables_ KOLO_GUARDED_BY(mutex_);
  std::map<std::string, std::unique_ptr<RandomState>> random_states_ KOLO_GUARDED_BY(mutex_);
  std::map<std::string, std::uint64_t> random_starts_ KOLO_GUARDED_BY(mutex_);
  std::map<int, std::shared_ptr<StepAgreement>> agreements_ KOLO_GUARDED_BY(mutex_);
};

}  // namespace kolo::detail
