// How much a session may rewrite of a step before it runs it.
#pragma once

#include <string>
#include <vector>

namespace kolo {

enum class OptimizerLevel {
  l0,  // a step runs node by node as the graph was built
  l1,  // all of graph_pass_names() (pipeline.h), less those that are disabled
};

struct GraphOptions {
  OptimizerLevel optimizer_level = OptimizerLevel::l1;
  std::vector<std::string> disabled_passes = {};  // names out of graph_pass_names()
};

}  // namespace kolo
