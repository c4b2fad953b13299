// Which device runs which node: TensorFlow 1's rules, over any nodes, devices and kernels.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <kolo/core/device/device_name.h>
#include <kolo/core/graph/attr.h>
#include <kolo/core/passes/kernel_table.h>
#include <kolo/core/passes/step_graph.h>

namespace kolo {

/// In front of the name of a node with which others want to be.
inline constexpr char kGroupPrefix[] = "loc:@";

struct PlacerDevice {
  std::string name;  // full
  DeviceSpec spec;   // the same, parsed
  int priority = 0;  // of two that a node may go to, the higher is preferred

  /// CPUs have priority 60, all others 210. Throws InvalidArgumentError if `name` is not a full name.
  static PlacerDevice named(const std::string& name);
};

struct PlacerNode {
  std::string name;
  const OpSchema* schema = nullptr;
  std::optional<DType> type = {};  // by which its kernel is chosen; nothing: it has no inputs and outputs
  std::string requested_device = {};
  std::vector<std::string> colocation_groups = {};  // "loc:@x"; without any it is in that of its own name
  bool in_groups = true;  // false: wherever it is, nodes of those groups are placed as if it were not there
  std::vector<StepValue> inputs = {};  // node: index among the nodes placed together, −1 for others
  std::vector<int> control_inputs = {};
  const AttrMap* attrs = nullptr;    // for messages
  std::string assigned_device = {};  // kept where it is set; where it is not, place() sets it
  std::string refused_type = {};     // a type of device that cannot run it, whatever the table says
  /// Not to be placed now: its wishes count as far as they fit, for the sake of the nodes it belongs to.
  bool constraint_only = false;
};

struct PlacerOptions {
  bool allow_soft_placement = false;
  bool log_placement = false;  // place() says what goes where, and one line for each request not heeded
  /// A device of the session's own task: where no task is asked for, its task's devices come first.
  std::string default_device = {};
};

/// Const: any thread, if the kernel table is.
class Placer {
 public:
  Placer(std::vector<PlacerDevice> devices, KernelTable kernels, PlacerOptions options = {});

  /// Sets `assigned_device` of all nodes that have none, but for constraint_only ones. Nodes stand in the
  /// order of creation. group_devices: where groups ("x" of "loc:@x") have gone before. Returns the nodes
  /// that were placed, in the order in which that was decided. Throws InvalidArgumentError `Cannot assign a
  /// device to node '<n>': Could not satisfy explicit device specification …`, `Cannot colocate nodes '<a>'
  /// and '<b>'…`, `Malformed device specification '<spec>'`, `No OpKernel was registered to support Op
  /// '<Op>'…`, FailedPreconditionError `No devices are registered`, InternalError for an assigned device that
  /// cannot be; all with the node's summary. The nodes are then partly assigned.
  std::vector<int> place(std::vector<PlacerNode>& nodes,
                         const std::map<std::string, std::string>& group_devices = {}) const;

  const std::vector<PlacerDevice>& devices() const { return devices_; }
  const KernelTable& kernels() const { return kernels_; }
  const PlacerOptions& options() const { return options_; }

 private:
  std::vector<PlacerDevice> devices_;  // by name
  KernelTable kernels_;
  PlacerOptions options_;
};

/// `[[Node: b = Const[dtype=DT_FLOAT, value=Tensor<type: float shape: [] values: 4>,
/// _device="/device:GPU:2"]()]]`, in one line: how TensorFlow 1 shows the node that an error is about.
std::string node_summary(const std::vector<PlacerNode>& nodes, int node);

}  // namespace kolo
