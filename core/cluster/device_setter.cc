#include <kolo/core/cluster/device_setter.h>

#include <algorithm>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/device/device_name.h>

namespace kolo {
namespace {

void check_tasks(int tasks) {
  if (tasks < 1)
    throw InvalidArgumentError("a strategy for {} tasks was asked for; it needs at least 1", tasks);
}

bool is_local_variable(const Node& op) {
  const auto local = op.attrs().find("local");
  return op.schema().is_variable_storage() && local != op.attrs().end() && local->second.get<bool>();
}

// With a cluster, as many as its job has; the job may be missing.
int ps_tasks_of(const ReplicaDeviceSetterOptions& options, const DeviceSpec& ps_device) {
  if (!options.cluster) return options.ps_tasks;
  const auto& jobs = options.cluster->as_map();
  const auto job = jobs.find(ps_device.job.value_or(""));
  return job == jobs.end() ? 0 : static_cast<int>(job->second.size());
}

class ReplicaDeviceSetter {
 public:
  ReplicaDeviceSetter(const ReplicaDeviceSetterOptions& options, DeviceSpec ps_device, PsStrategy strategy)
      : ps_device_(std::move(ps_device)),
        worker_device_(parse_scope_device(options.worker_device)),
        merge_devices_(options.merge_devices),
        ps_ops_(options.ps_ops),
        strategy_(std::move(strategy)) {}

  std::string operator()(const Node& op) const {
    const std::string& asked = op.requested_device();
    if (!merge_devices_ && !asked.empty()) return asked;
    const auto current = parse_device_spec(asked);
    if (!current) return asked;  // malformed: the placer refuses it by name
    const bool is_ps_op = ps_ops_.count(op.op()) > 0 && !is_local_variable(op) && !ps_device_.is_empty();
    return merge_scopes(is_ps_op ? ps_device_for(op, *current) : worker_device_, *current).to_string();
  }

 private:
  DeviceSpec ps_device_for(const Node& op, const DeviceSpec& current) const {
    DeviceSpec device = ps_device_;
    if (device.job && (!current.job || current.job == device.job)) device.task = strategy_(op);
    return device;
  }

  DeviceSpec ps_device_;
  DeviceSpec worker_device_;
  bool merge_devices_;
  std::set<std::string> ps_ops_;
  PsStrategy strategy_;
};

}  // namespace

PsStrategy round_robin(int tasks) {
  check_tasks(tasks);
  return [tasks, next = std::make_shared<int>(0)](const Node&) {
    const int task = *next;
    *next = (task + 1) % tasks;
    return task;
  };
}

double byte_size(const Node& op) {
  if (op.num_outputs() != 1 || !op.output_shape(0).is_fully_known())
    throw InvalidArgumentError("Op {} must have a single output of known shape", op.name());
  return static_cast<double>(op.output_shape(0).elements()) *
         static_cast<double>(size_of(op.output_dtype(0)));
}

GreedyLoadBalancing::GreedyLoadBalancing(int tasks, PsLoad load) : load_(std::move(load)) {
  check_tasks(tasks);
  if (!load_) throw InvalidArgumentError("the load of an op must be callable");
  loads_ = std::make_shared<std::vector<double>>(tasks);
}

int GreedyLoadBalancing::operator()(const Node& op) const {
  const double load = load_(op);
  const auto least = std::min_element(loads_->begin(), loads_->end());
  *least += load;
  return static_cast<int>(least - loads_->begin());
}

DeviceFunction replica_device_setter(const ReplicaDeviceSetterOptions& options) {
  const DeviceSpec ps_device = parse_scope_device(options.ps_device);
  const int tasks = ps_tasks_of(options, ps_device);
  if (tasks < 0) throw InvalidArgumentError("ps_tasks is {}; it must not be negative", tasks);
  if (tasks == 0) return {};
  if (!options.merge_devices)
    log_warning("DEPRECATION: It is recommended to set merge_devices=true in replica_device_setter");
  PsStrategy strategy = options.ps_strategy ? *options.ps_strategy : round_robin(tasks);
  if (!strategy) throw InvalidArgumentError("ps_strategy must be callable");
  return ReplicaDeviceSetter(options, ps_device, std::move(strategy));
}

}  // namespace kolo
