// Runs parts of a graph on this process's devices.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/graph/graph.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/runtime/config.h>
#include <kolo/core/runtime/step_agreement.h>
#include <kolo/core/runtime/trace.h>

namespace kolo {

/// A tensor to compute, or an operation to run for its effect; an operation's result is an empty tensor.
struct Fetch {
  Fetch(Output tensor) : output(tensor), operation(tensor.node) {}
  Fetch(Operation op) : operation(op) {}
  Output output;
  Operation operation;
};

/// Values that replace tensors of the graph in one run. Any tensor may be fed. The elements are read during
/// the run only.
using Feeds = std::vector<std::pair<Output, Tensor>>;

/// Variables live as long as the session. run: any thread, several at a time. The graph must outlive the
/// session and may grow between runs.
class Session {
 public:
  /// Throws InvalidArgumentError for a configuration that cannot be.
  explicit Session(Graph& graph, SessionConfig config = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Runs what the fetches need and nothing else; the first run with these fetches, fed tensors and their
  /// shapes compiles a plan, later ones reuse it. One result for each fetch, in order; they are the caller's
  /// own copies. Throws what the first failing kernel threw, with the node's name, op and device added;
  /// TensorFlow's texts for feeds and fetches that do not fit.
  std::vector<Tensor> run(const std::vector<Fetch>& fetches, const Feeds& feeds = {},
                          StepTrace* trace = nullptr);
  Tensor run(Output fetch, const Feeds& feeds = {}) { return run(std::vector<Fetch>{fetch}, feeds)[0]; }
  void run(Operation target, const Feeds& feeds = {}) { run(std::vector<Fetch>{target}, feeds); }

  /// Frees plans and variables; waits for runs that are under way. Later runs: FailedPreconditionError
  /// `Attempted to use a closed Session.`
  void close();

  Graph& graph() const;
  /// The storage of the variable whose node is `storage`; made at the first use, uninitialised. For savers
  /// and broadcasts, between runs.
  VariableStorage& variable(const Node& storage);
  /// Positions of the random ops that have run, by node name. set_…: ops that have not run yet start there.
  std::map<std::string, std::uint64_t> random_positions() const;
  void set_random_positions(const std::map<std::string, std::uint64_t>& positions);

  /// The agreement among the ranks that belongs to `node`, an op with a registered agreement (a
  /// GroupAllReduce); made at the first call.
  std::shared_ptr<StepAgreement> agreement(const Node& node);
  /// Those of all such nodes of the graph, in the order of the nodes.
  std::vector<std::shared_ptr<StepAgreement>> agreements();
  /// Threads of the two pools, as they turned out.
  int intra_op_threads() const;
  int inter_op_threads() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kolo
