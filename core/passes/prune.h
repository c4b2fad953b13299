// Cuts out of a graph what the fetches need and nothing else.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/graph/graph.h>
#include <kolo/core/passes/step_graph.h>

namespace kolo {

/// What a plan is compiled for: the values and operations asked for, and which tensors are fed with which
/// shapes.
struct StepSignature {
  std::vector<Output> fetched;       // an empty one where an operation was asked for
  std::vector<const Node*> targets;  // the node of every fetch
  std::vector<std::pair<Output, Shape>> fed;
  std::map<int, std::string> fed_on = {};  // by feed: the GPU in whose memory it lies; of others the host's
  int first_node = 0;  // control inputs of smaller ids are not of this step: it is the body of a loop
  int loop_depth = 0;  // loops around it
};

/// True for ops whose value is there to be fed: placeholders, and the variables of a loop in its iterations.
bool is_placeholder(const Node& node);

/// Ancestors, by inputs and control inputs, of fetches and targets, cut at fed tensors. A fed tensor's
/// producer stays only if another of its outputs, or a control edge, needs it; of a placeholder that is fed
/// nothing stays but the feed, and who waits for it waits for nothing. Shapes follow from the fed ones.
StepGraph prune(const StepSignature& signature);

}  // namespace kolo
