#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include <kolo/core/base/error.h>

#include <kolo/core/cluster/rpc/messages_internal.h>

namespace kolo::detail {
namespace {

constexpr std::size_t kLongestName = std::size_t{64} << 10;
constexpr std::size_t kLongestHandle = 64;

int checked_int(std::int64_t value, const char* what) {
  if (value < std::numeric_limits<int>::min() || value > std::numeric_limits<int>::max())
    throw InvalidArgumentError("{} is {}, which is no 32-bit number", what, value);
  return static_cast<int>(value);
}

}  // namespace

void parse_message(google::protobuf::MessageLite& message, std::string_view bytes) {
  if (bytes.size() > std::size_t{std::numeric_limits<int>::max()} ||
      !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    throw InvalidArgumentError("{} bytes are no {}", bytes.size(), message.GetTypeName());
}

void put_strings(Strings& to, const std::vector<std::string>& from) {
  to.Reserve(static_cast<int>(from.size()));
  for (const auto& text : from) *to.Add() = text;
}

std::string checked_name(const std::string& name, const char* what) {
  if (name.size() > kLongestName)
    throw InvalidArgumentError("a {} of {} bytes came; {} are allowed", what, name.size(), kLongestName);
  const bool has_control =
      std::any_of(name.begin(), name.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  if (has_control) throw InvalidArgumentError("a {} with control characters came", what);
  return name;
}

std::vector<std::string> checked_names(const Strings& from, const char* what) {
  std::vector<std::string> names;
  names.reserve(static_cast<std::size_t>(from.size()));
  for (const auto& name : from) names.push_back(checked_name(name, what));
  return names;
}

std::string checked_handle(const std::string& handle) {
  const bool letters = std::all_of(handle.begin(), handle.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
  if (handle.empty() || handle.size() > kLongestHandle || !letters)
    throw InvalidArgumentError("a session handle that is none came ({} bytes)", handle.size());
  return handle;
}

def::SessionConfigDef to_def(const SessionConfig& config) {
  def::SessionConfigDef to;
  to.set_intra_op_parallelism_threads(config.intra_op_parallelism_threads);
  to.set_inter_op_parallelism_threads(config.inter_op_parallelism_threads);
  to.set_use_per_session_threads(config.use_per_session_threads);
  for (const auto& pool : config.session_inter_op_thread_pool) {
    auto& entry = *to.add_session_inter_op_thread_pool();
    entry.set_num_threads(pool.num_threads);
    entry.set_global_name(pool.global_name);
  }
  to.set_per_process_gpu_memory_fraction(config.gpu_options.per_process_gpu_memory_fraction);
  to.set_allow_growth(config.gpu_options.allow_growth);
  to.set_visible_device_list(config.gpu_options.visible_device_list);
  to.set_allow_tf32(config.gpu_options.allow_tf32);
  for (const auto& [type, count] : config.device_count) {
    auto& entry = *to.add_device_count();
    entry.set_type(type);
    entry.set_count(count);
  }
  for (const auto& gpu : config.virtual_gpus) {
    auto& entry = *to.add_virtual_gpus();
    entry.set_total_bytes(gpu.total_bytes);
    entry.set_free_bytes(gpu.free_bytes);
    entry.set_transfer_latency_us(gpu.transfer_latency.count());
    entry.set_transfer_bytes_per_second(gpu.transfer_bytes_per_second);
    entry.set_delay_seed(gpu.delay_seed);
  }
  put_strings(*to.mutable_device_filters(), config.device_filters);
  to.set_log_device_placement(config.log_device_placement);
  to.set_allow_soft_placement(config.allow_soft_placement);
  to.set_optimizer_level(static_cast<std::uint32_t>(config.graph_options.optimizer_level));
  put_strings(*to.mutable_disabled_passes(), config.graph_options.disabled_passes);
  to.set_precision(static_cast<std::uint32_t>(config.graph_options.precision));
  to.set_operation_timeout_in_ms(config.operation_timeout_in_ms);
  to.set_isolate_session_state(config.isolate_session_state);
  for (const auto& [job, tasks] : config.cluster_def) {
    to.add_cluster_jobs(job);
    for (const auto& [index, address] : tasks) {
      auto& entry = *to.add_cluster_tasks();
      entry.set_job(job);
      entry.set_index(index);
      entry.set_address(address);
    }
  }
  to.set_placement_period(config.placement_period);
  to.set_use_rpc_for_inprocess_master(config.rpc_options.use_rpc_for_inprocess_master);
  return to;
}

SessionConfig from_def(const def::SessionConfigDef& from) {
  SessionConfig config;
  config.intra_op_parallelism_threads = checked_int(from.intra_op_parallelism_threads(), "intra-op threads");
  config.inter_op_parallelism_threads = checked_int(from.inter_op_parallelism_threads(), "inter-op threads");
  config.use_per_session_threads = from.use_per_session_threads();
  for (const auto& pool : from.session_inter_op_thread_pool())
    config.session_inter_op_thread_pool.push_back(
        {.num_threads = checked_int(pool.num_threads(), "threads of a pool"),
         .global_name = checked_name(pool.global_name(), "pool's name")});
  config.gpu_options.per_process_gpu_memory_fraction = from.per_process_gpu_memory_fraction();
  config.gpu_options.allow_growth = from.allow_growth();
  config.gpu_options.visible_device_list = checked_name(from.visible_device_list(), "list of devices");
  config.gpu_options.allow_tf32 = from.allow_tf32();
  for (const auto& entry : from.device_count())
    config.device_count[checked_name(entry.type(), "device type")] =
        checked_int(entry.count(), "number of devices");
  for (const auto& gpu : from.virtual_gpus())
    config.virtual_gpus.push_back({.total_bytes = gpu.total_bytes(),
                                   .free_bytes = gpu.free_bytes(),
                                   .transfer_latency = std::chrono::microseconds(gpu.transfer_latency_us()),
                                   .transfer_bytes_per_second = gpu.transfer_bytes_per_second(),
                                   .delay_seed = gpu.delay_seed()});
  config.device_filters = checked_names(from.device_filters(), "device filter");
  config.log_device_placement = from.log_device_placement();
  config.allow_soft_placement = from.allow_soft_placement();
  if (from.optimizer_level() > static_cast<std::uint32_t>(OptimizerLevel::l1))
    throw InvalidArgumentError("there is no optimizer level {}", from.optimizer_level());
  config.graph_options.optimizer_level = static_cast<OptimizerLevel>(from.optimizer_level());
  config.graph_options.disabled_passes = checked_names(from.disabled_passes(), "pass's name");
  if (from.precision() > static_cast<std::uint32_t>(Precision::bf16))
    throw InvalidArgumentError("there is no precision {}", from.precision());
  config.graph_options.precision = static_cast<Precision>(from.precision());
  config.operation_timeout_in_ms = from.operation_timeout_in_ms();
  config.isolate_session_state = from.isolate_session_state();
  for (const auto& job : from.cluster_jobs()) config.cluster_def[checked_name(job, "job's name")];
  for (const auto& task : from.cluster_tasks())
    config.cluster_def[checked_name(task.job(), "job's name")][checked_int(task.index(), "task index")] =
        checked_name(task.address(), "task's address");
  config.placement_period = checked_int(from.placement_period(), "placement period");
  config.rpc_options.use_rpc_for_inprocess_master = from.use_rpc_for_inprocess_master();
  return config;
}

def::DeviceDef to_def(const DeviceAttributes& device) {
  def::DeviceDef to;
  to.set_name(device.name);
  to.set_type(device.type);
  to.set_incarnation(device.incarnation);
  to.set_description(device.description);
  to.set_is_virtual(device.is_virtual);
  return to;
}

DeviceAttributes from_def(const def::DeviceDef& from) {
  return {.name = checked_name(from.name(), "device's name"),
          .type = checked_name(from.type(), "device type"),
          .incarnation = from.incarnation(),
          .description = checked_name(from.description(), "device's description"),
          .is_virtual = from.is_virtual()};
}

def::TaskStatusDef to_def(const TaskStatus& status) {
  def::TaskStatusDef to;
  to.set_task(status.task);
  to.set_version(status.version);
  to.set_cluster_fingerprint(status.cluster_fingerprint);
  for (const auto& device : status.devices) *to.add_devices() = to_def(device);
  to.set_variable_bytes(status.variable_bytes);
  put_strings(*to.mutable_sessions(), status.sessions);
  for (const auto& wait : status.waits) {
    auto& entry = *to.add_waits();
    entry.set_session(wait.session);
    entry.set_step(wait.step);
    entry.set_node(wait.node);
    entry.set_op(wait.op);
    entry.set_what(wait.what);
    entry.set_nodes_left(wait.nodes_left);
    entry.set_computes(wait.computes);
  }
  return to;
}

TaskStatus from_def(const def::TaskStatusDef& from) {
  TaskStatus status;
  status.task = checked_name(from.task(), "task");
  status.version = checked_name(from.version(), "version");
  status.cluster_fingerprint = from.cluster_fingerprint();
  for (const auto& device : from.devices()) status.devices.push_back(from_def(device));
  status.variable_bytes = from.variable_bytes();
  status.sessions = checked_names(from.sessions(), "session handle");
  for (const auto& wait : from.waits())
    status.waits.push_back({.session = checked_name(wait.session(), "session handle"),
                            .step = wait.step(),
                            .node = checked_name(wait.node(), "node's name"),
                            .op = checked_name(wait.op(), "op"),
                            .what = checked_name(wait.what(), "reason"),
                            .nodes_left = checked_int(wait.nodes_left(), "number of nodes"),
                            .computes = wait.computes()});
  return status;
}

def::StepNamesDef to_def(const StepNames& names) {
  def::StepNamesDef to;
  put_strings(*to.mutable_feeds(), names.feeds);
  put_strings(*to.mutable_fetches(), names.fetches);
  put_strings(*to.mutable_targets(), names.targets);
  return to;
}

StepNames from_def(const def::StepNamesDef& from) {
  return {.feeds = checked_names(from.feeds(), "feed's name"),
          .fetches = checked_names(from.fetches(), "fetch's name"),
          .targets = checked_names(from.targets(), "target's name")};
}

def::VariablesRequestDef to_def(const std::string& session, const std::vector<VariableKey>& keys) {
  def::VariablesRequestDef to;
  to.set_session(session);
  for (const auto& key : keys) {
    auto& entry = *to.add_keys();
    entry.set_container(key.container);
    entry.set_name(key.name);
  }
  return to;
}

std::vector<VariableKey> keys_of(const def::VariablesRequestDef& from) {
  std::vector<VariableKey> keys;
  for (const auto& key : from.keys())
    keys.push_back({.container = checked_name(key.container(), "container's name"),
                    .name = checked_name(key.name(), "variable's name")});
  return keys;
}

def::VariablesRequestDef to_def(const std::string& session, const std::vector<std::string>& names) {
  def::VariablesRequestDef to;
  to.set_session(session);
  for (const auto& name : names) to.add_keys()->set_name(name);
  return to;
}

std::vector<std::string> names_of(const def::VariablesRequestDef& from) {
  std::vector<std::string> names;
  for (const auto& key : from.keys()) names.push_back(checked_name(key.name(), "variable's name"));
  return names;
}

def::InitializedResponseDef to_def(const std::vector<bool>& initialized) {
  def::InitializedResponseDef to;
  for (const bool one : initialized) to.add_initialized(one);
  return to;
}

std::vector<bool> from_def(const def::InitializedResponseDef& from, std::size_t variables) {
  if (static_cast<std::size_t>(from.initialized_size()) != variables)
    throw DataLossError("{} of {} answers came", from.initialized_size(), variables);
  return {from.initialized().begin(), from.initialized().end()};
}

def::SessionRequestDef of_session(const std::string& session) {
  def::SessionRequestDef to;
  to.set_session(session);
  return to;
}

TraceLevel trace_level_of(std::uint32_t level) {
  if (level > static_cast<std::uint32_t>(TraceLevel::full_trace))
    throw InvalidArgumentError("there is no trace level {}", level);
  return static_cast<TraceLevel>(level);
}

}  // namespace kolo::detail
