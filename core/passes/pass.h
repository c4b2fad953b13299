// Rewrites of the step graph that other parts of kolo bring along: collectives puts gradients into buckets
// here.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <kolo/core/passes/step_graph.h>

namespace kolo {

class StepVote;

/// What a pass may ask of the session that compiles the step.
class PassContext {
 public:
  virtual ~PassContext() = default;
  /// The session's vote for a node of the user's graph.
  virtual std::shared_ptr<StepVote> vote(const Node& node) = 0;
};

using Pass = void (*)(StepGraph& graph, PassContext& context);

/// A namespace-scope constant of the pass's file. Registered passes run after placement, in the order of
/// their names, before updates are ordered and memory is planned.
struct RegisterPass {
  RegisterPass(std::string name, Pass pass);
};
std::vector<Pass> registered_passes();

}  // namespace kolo
