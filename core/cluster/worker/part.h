// A part of a step as its task has planned it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/cluster/worker/task_variables.h>
#include <kolo/core/cluster/worker/worker.h>
#include <kolo/core/graph/graph.h>
#include <kolo/core/passes/place.h>
#include <kolo/core/runtime/plan.h>

namespace kolo::detail {

/// A part of a step: the nodes that one task runs, devices filled in, nodes in the order of creation.
struct PartRequest {
  GraphDef graph;
  std::vector<std::string> feeds;    // "x:0", placeholders of the part; only in that of the master's task
  std::vector<std::string> fetches;  // "y:1"; only there
  std::vector<std::string> targets;  // operations
};

/// What the parts of a session share on a task; outlives them.
struct PartSurroundings {
  const DeviceSet& devices;
  TaskVariables& variables;
  Containers& containers;
  /// The session's, by the node's name.
  std::function<RandomState&(const std::string& node, std::int64_t op_seed, std::optional<std::int64_t> seed)>
      random_state;
  int intra_op_threads = 1;
  std::string master;  // task of the session's master: whose gradients they are
  SessionConfig config;
};

/// Any thread, once it is made.
class Part final : public PlanEnvironment {
 public:
  /// Throws what import, placement and kernels throw; InvalidArgumentError for variables of another type or
  /// shape than those of the task.
  Part(const PartRequest& request, const PartSurroundings& surroundings);
  ~Part() override;

  Plan& plan() { return *plan_; }
  std::size_t num_feeds() const { return feeds_.size(); }
  const Output& feed(std::size_t i) const { return feeds_[i]; }
  /// Positions in the plan.
  const std::vector<int>& senders() const { return senders_; }
  struct Received {
    std::string key;
    int position = 0;
  };
  /// By the task that sends.
  const std::map<std::string, std::vector<Received>>& received() const { return received_; }
  /// The position of the _NetRecv whose own memory fetch `i` is; −1 where that is none.
  int receiver_of_fetch(std::size_t i) const { return receivers_of_fetches_[i]; }
  /// Whether a run waits for nobody and, as far as note_run() was told, is over in about the time that
  /// another thread takes to wake. asked: how many of its values the request for the run takes itself.
  bool is_quick(std::size_t asked) const;
  void note_run(std::chrono::duration<float, std::micro> took);

  const DeviceSet& devices() const override { return around_.devices; }
  void place(StepGraph& graph) override KOLO_EXCLUDES(mutex_);
  bool place_elsewhere(const Node&, const std::string&) override { return false; }
  int intra_op_threads() const override { return around_.intra_op_threads; }
  GraphOptions graph_options() const override { return graph_options_of(around_.config); }
  VariableStorage& variable(const Node& storage) override KOLO_EXCLUDES(mutex_);
  bool shares_variables() const override { return true; }
  std::shared_ptr<Contained> contained(const Node& node) override {
    return around_.containers.find_or_make(node);
  }
  RandomState& random_state(const std::string& node, std::int64_t op_seed) override {
    return around_.random_state(node, op_seed, graph_.seed());
  }
  std::shared_ptr<StepVote> vote(const Node& node) override;

 private:
  void import(const PartRequest& request);
  StepSignature signature_of(const PartRequest& request);
  void find_transfers();
  bool waits_for_nobody() const;
  std::string device_of(const Node& storage) KOLO_REQUIRES(mutex_);
  VariableStorage& variable_locked(const Node& storage) KOLO_REQUIRES(mutex_);

  const PartSurroundings around_;
  Graph graph_;
  const Placer placer_;
  std::vector<Output> feeds_;
  Mutex mutex_;
  Placements placements_ KOLO_GUARDED_BY(mutex_);
  std::map<int, std::shared_ptr<VariableStorage>> variables_ KOLO_GUARDED_BY(mutex_);  // by node
  std::unique_ptr<Plan> plan_;
  std::vector<int> senders_;
  std::map<std::string, std::vector<Received>> received_;
  std::vector<int> receivers_of_fetches_;
  bool waits_for_nobody_ = false;  // where all that it sends is asked for
  // An estimate, half of it the last run's: runs that update it at the same time may overwrite each other's.
  std::atomic<float> run_us_{1000};
};

}  // namespace kolo::detail
