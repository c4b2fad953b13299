// From a step in which no edge crosses tasks any more to one graph for each task.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/cluster/worker/step_part.h>
#include <kolo/core/passes/step_graph.h>

namespace kolo::detail {

/// Names of nodes; upper and lower case count as one.
class UniqueNames {
 public:
  void take(const std::string& name);
  /// `wished`, or with _1, _2, … where it is taken; takes it.
  std::string unique(const std::string& wished);

 private:
  std::set<std::string> taken_;
};

class PartGraphs {
 public:
  /// parts: by task, with what they send and receive.
  PartGraphs(const StepGraph& step, const PartitionOptions& options, std::map<std::string, StepPart> parts);
  std::vector<StepPart> make();

 private:
  struct Ordered {
    std::int64_t order;
    std::string name;
    NodeDef definition;
  };
  struct Nodes {
    std::vector<Ordered> all;
    std::set<std::string> names;
    std::map<std::pair<const Node*, int>, std::string> captured;  // what loops take from outside, here
  };

  void add(int node);
  void add_loop(const StepNode& loop, const std::string& task);
  void add_inner(const Node& inner, const StepNode& loop, const std::set<const Node*>& inside, Nodes& nodes);
  std::string inner_device(const Node& inner, const StepNode& loop) const;
  AttrMap with_captures(const AttrMap& attrs, const OpSchema& schema, const Graph& graph,
                        const Nodes& nodes) const;
  std::string name_of(StepValue value) const;
  std::vector<std::string> inputs_of(const StepNode& node) const;
  void name_ends();

  const StepGraph& step_;
  const PartitionOptions& options_;
  std::map<std::string, StepPart> parts_;
  std::map<std::string, Nodes> nodes_;  // by task
};

}  // namespace kolo::detail
