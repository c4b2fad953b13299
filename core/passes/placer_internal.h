// The placer's first half: which nodes must be together, and what they ask for together.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/passes/placer.h>

namespace kolo::detail {

/// A type of device with the priority that a kernel gives it.
struct SupportedType {
  std::string type;
  int priority;
  bool operator==(const SupportedType&) const = default;
};
using SupportedTypes = std::vector<SupportedType>;  // best first

/// Device types and their order among equals: the higher priority first, then by name.
class TypeOrder {
 public:
  explicit TypeOrder(const std::vector<PlacerDevice>& devices);
  const std::map<std::string, int>& priorities() const { return priorities_; }
  void sort(SupportedTypes& types) const;

 private:
  std::map<std::string, int> priorities_;
};

/// What both can run, in the order that the one with priorities of its own asks for; where both have and
/// differ, in the devices' order.
SupportedTypes intersect(const SupportedTypes& a, const SupportedTypes& b, const TypeOrder& order);

/// Groups of nodes that share a device, as a forest of disjoint sets.
class Colocation {
 public:
  Colocation(const Placer& placer, const std::vector<PlacerNode>& nodes);

  /// Groups by reference edges, then by "loc:@x". Throws as Placer::place.
  void join_all(const std::map<std::string, std::string>& group_devices);

  struct Group {
    DeviceSpec spec;
    SupportedTypes types;
    bool assigned = false;  // spec is where one of its nodes is already: nothing relaxes it
  };
  int root(int node) const;
  const Group& group(int node) const { return groups_[root(node)]; }
  /// `Colocation Debug Info:` with a line `<Op>: GPU CPU ` for each op of the node's group; "" for a group of
  /// one.
  std::string debug_text(int node) const;
  /// Throws `error` with the node's summary.
  [[noreturn]] void refuse(int node, Code code, const std::string& message) const;

 private:
  void add(int node);
  void add_assigned(int node);
  SupportedTypes supported_types(const PlacerNode& node);
  void join_by_references(int node);
  void join_by_names(int node, const std::map<std::string, std::string>& group_devices);
  /// The reason why not, or "".
  std::string join(int a, int b, Conflict conflict);
  std::string restrict_to(int node, const std::string& device);
  std::string merged(const Group& a, const Group& b, Conflict conflict, Group& result) const;
  bool can_be_placed(const Group& group) const;

  const Placer& placer_;
  const std::vector<PlacerNode>& nodes_;
  const TypeOrder order_;
  mutable std::vector<int> parent_;
  std::vector<Group> groups_;           // by root
  std::map<std::string, int> by_name_;  // group name → its first node
  std::vector<bool> skipped_;           // constraint-only nodes whose wishes cannot be read
  std::map<std::pair<const OpSchema*, int>, SupportedTypes> supported_;  // by schema and type
};

}  // namespace kolo::detail
