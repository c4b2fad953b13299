// Gives every node of a step a device, and remembers it for the session's later steps.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <kolo/core/passes/placer.h>
#include <kolo/core/passes/step_graph.h>

namespace kolo {

/// Where the nodes of one graph have gone so far. One thread at a time.
class Placements {
 public:
  /// nullptr while the node has no place.
  const std::string* find(const Node& node) const;
  /// Where groups of colocated nodes are, by the name behind "loc:@".
  const std::map<std::string, std::string>& group_devices() const { return groups_; }
  void add(const Node& node, const std::string& device, bool with_groups);
  /// The node has no place any more and will not get one on that type of device; false where that is so
  /// already.
  bool refuse(const Node& node, const std::string& device_type);
  /// "" where there is none.
  const std::string& refused_type(const Node& node) const;
  /// The nodes of the graph that update the variable, as far as the graph has grown.
  const std::vector<const Node*>& updaters_of(const Node& storage);

 private:
  std::map<int, std::string> devices_;  // by node id
  std::map<std::string, std::string> groups_;
  std::map<int, std::string> refused_;                // types of devices, by node id
  std::map<int, std::vector<const Node*>> updaters_;  // by the storage's id
  int scanned_ = 0;                                   // nodes of the graph that updaters_ knows of
};

/// Nodes that `placements` knows stay where they are; the others go where `placer` says, and are added. An
/// unplaced variable also heeds the nodes outside the step that update it, and a group the op in it whose
/// value is fed: they must be with it later. Fed values lie on the placer's default device, whoever else is
/// in their op's group; a loop's node goes to a CPU of the task that was asked for, its ops where they ask.
/// Where the placer logs, says `<node>: (<Op>): <device>` of each node placed, on stdout and in the log.
/// Throws as Placer::place; `placements` is then unchanged.
void place(StepGraph& graph, const Placer& placer, Placements& placements);

}  // namespace kolo
