// Which task of a cluster holds which variable: device functions for Scope::device.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <kolo/core/cluster/cluster_spec.h>
#include <kolo/core/graph/graph.h>

namespace kolo {

/// The number of the parameter server's task that an op goes to. Called once for each.
using PsStrategy = std::function<int(const Node& op)>;

/// 0, 1, …, tasks − 1, 0, …: one further with each call. Copies count together. Throws InvalidArgumentError
/// unless there is a task.
PsStrategy round_robin(int tasks);

/// What a task takes on with an op.
using PsLoad = std::function<double(const Node& op)>;
/// Bytes of the op's output. Throws InvalidArgumentError `Op <op> must have a single output` of known shape.
double byte_size(const Node& op);

/// Each op goes to the task with the least load, the first of equal ones; copies share their loads. One
/// thread at a time, as whoever builds a graph.
class GreedyLoadBalancing {
 public:
  /// Throws InvalidArgumentError unless there is a task and `load` is callable.
  explicit GreedyLoadBalancing(int tasks, PsLoad load = byte_size);
  int operator()(const Node& op) const;
  /// By task.
  const std::vector<double>& loads() const { return *loads_; }

 private:
  std::shared_ptr<std::vector<double>> loads_;
  PsLoad load_;
};

/// Where replica_device_setter puts variables and all other ops.
struct ReplicaDeviceSetterOptions {
  int ps_tasks = 0;                           // of `ps_device`'s job; with a cluster, as many as that says
  std::string ps_device = "/job:ps";          // of ps_ops; "": as all others
  std::string worker_device = "/job:worker";  // of all others
  bool merge_devices = true;  // false (deprecated): an op that asks for any device keeps that alone
  std::optional<ClusterSpec> cluster = {};
  std::set<std::string> ps_ops = {"Variable"};  // but for local variables, which stay with the worker
  std::optional<PsStrategy> ps_strategy = {};   // left out: round_robin
};

/// The device function with which each worker builds the same graph, variables on parameter servers and all
/// else on the worker:
///   const Scope s = Scope(graph).device(replica_device_setter({.cluster = cluster}));
/// What inner scopes ask for wins, field by field; an op that asks for another job than `ps_device`'s gets no
/// task's number. Initialisers, slots and reads follow their variable. Without tasks for parameters an empty
/// function, which Scope::device takes for nullptr. Throws InvalidArgumentError `ps_strategy must be
/// callable` and for malformed devices.
DeviceFunction replica_device_setter(const ReplicaDeviceSetterOptions& options);

}  // namespace kolo
