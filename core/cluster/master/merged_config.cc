#include <kolo/core/cluster/master/merged_config.h>

#include <utility>

namespace kolo::detail {
namespace {

template <typename T>
void append(std::vector<T>& list, const std::vector<T>& more) {
  list.insert(list.end(), more.begin(), more.end());
}

template <typename T>
void override_with(T& value, const T& of_server, const T& fallback) {
  if (of_server != fallback) value = of_server;
}

}  // namespace

SessionConfig merged_config(const SessionConfig& server, const SessionConfig& session) {
  const SessionConfig defaults;
  SessionConfig merged = session;
  merged.intra_op_parallelism_threads = server.intra_op_parallelism_threads;
  merged.inter_op_parallelism_threads = server.inter_op_parallelism_threads;
  merged.use_per_session_threads = server.use_per_session_threads;
  merged.session_inter_op_thread_pool = server.session_inter_op_thread_pool;
  merged.gpu_options = server.gpu_options;
  merged.device_count = server.device_count;
  merged.virtual_gpus = server.virtual_gpus;

  append(merged.device_filters, server.device_filters);
  override_with(merged.log_device_placement, server.log_device_placement, defaults.log_device_placement);
  override_with(merged.allow_soft_placement, server.allow_soft_placement, defaults.allow_soft_placement);
  override_with(merged.graph_options.optimizer_level, server.graph_options.optimizer_level,
                defaults.graph_options.optimizer_level);
  override_with(merged.graph_options.precision, server.graph_options.precision,
                defaults.graph_options.precision);
  append(merged.graph_options.disabled_passes, server.graph_options.disabled_passes);
  override_with(merged.operation_timeout_in_ms, server.operation_timeout_in_ms,
                defaults.operation_timeout_in_ms);
  override_with(merged.isolate_session_state, server.isolate_session_state, defaults.isolate_session_state);
  for (const auto& [job, tasks] : server.cluster_def) merged.cluster_def[job] = tasks;
  override_with(merged.placement_period, server.placement_period, defaults.placement_period);
  override_with(merged.rpc_options.use_rpc_for_inprocess_master,
                server.rpc_options.use_rpc_for_inprocess_master,
                defaults.rpc_options.use_rpc_for_inprocess_master);
  return merged;
}

}  // namespace kolo::detail
