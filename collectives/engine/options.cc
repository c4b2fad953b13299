#include <kolo/collectives/engine/options.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include <kolo/collectives/algorithms/allreduce_registry.h>
#include <kolo/core/base/autotune.h>
#include <kolo/core/base/env.h>
#include <kolo/core/base/error.h>
#include <kolo/core/device/gpu_platform.h>
#include <kolo/core/kernels/own_kernels.h>
#include <kolo/core/runtime/weight_sums.h>

namespace kolo {
namespace {

// nccl: whether it can be is known when ranks compare their training step; all else then goes as with auto.
std::string allreduce_name(const std::string& fallback) {
  std::vector<std::string> allowed = {"auto", "nccl"};
  for (const auto& name : allreduce_names()) allowed.push_back(name);
  return env_choice("KOLO_ALLREDUCE", fallback, allowed);
}

LogLevel log_level() {
  const std::vector<std::string> names = {"debug", "info", "warning", "error", "off"};
  const std::string name = env_choice("KOLO_LOG_LEVEL", "info", names);
  return static_cast<LogLevel>(std::find(names.begin(), names.end(), name) - names.begin());
}

constexpr double kYear = 365.0 * 24 * 3600;

}  // namespace

EngineOptions EngineOptions::from_environment() {
  EngineOptions o;
  o.bucket_bytes = env_int64("KOLO_BUCKET_BYTES", o.bucket_bytes, 1);
  o.first_bucket_bytes = env_int64("KOLO_FIRST_BUCKET_BYTES", o.first_bucket_bytes, 1);
  o.fusion_bytes = env_int64("KOLO_FUSION_BYTES", o.fusion_bytes, 0);
  o.cycle_time = decltype(o.cycle_time)(env_double("KOLO_CYCLE_TIME_MS", o.cycle_time.count(), 0, 60e3));
  o.cache_capacity = env_int64("KOLO_CACHE_CAPACITY", o.cache_capacity, 0);
  o.allreduce = allreduce_name(o.allreduce);
  // One message: MPI counts its bytes in an int.
  o.chunk_bytes = env_int64("KOLO_CHUNK_BYTES", o.chunk_bytes, 64, std::int64_t{1} << 30);
  const Autotune autotune = autotune_of_environment();
  o.autotune = autotune.by_time;
  o.cost_table = autotune.cost_table;
  o.f32_wire = env_choice("KOLO_F32_WIRE", "0", {"0", "1"}) == "1";
  o.autotune_log = env_string("KOLO_AUTOTUNE_LOG").value_or("");
  o.timeline = env_string("KOLO_TIMELINE").value_or("");
  o.stall_warning =
      decltype(o.stall_warning)(env_double("KOLO_STALL_WARNING_S", o.stall_warning.count(), 0, kYear));
  o.stall_abort = decltype(o.stall_abort)(env_double("KOLO_STALL_ABORT_S", o.stall_abort.count(), 0, kYear));
  o.log_level = kolo::log_level();
  if (env_string("KOLO_COMM_THREAD_CORE"))
    o.comm_thread_core = static_cast<int>(env_int64("KOLO_COMM_THREAD_CORE", 0, 0, 4095));
  o.flight_dir = env_string("KOLO_FLIGHT_DIR").value_or(o.flight_dir);
  o.data_dir = env_string("KOLO_DATA_DIR").value_or("");
  o.virtual_gpus = static_cast<int>(virtual_gpus_of_environment().size());
  return o;
}

const std::vector<std::string>& known_variables() {
  static const std::vector<std::string> names = {
      "KOLO_ALLREDUCE",
      "KOLO_AUTOTUNE",
      "KOLO_AUTOTUNE_LOG",
      "KOLO_BUCKET_BYTES",
      "KOLO_CACHE_CAPACITY",
      "KOLO_CHECK_DRIFT",
      "KOLO_CHUNK_BYTES",
      "KOLO_CLUSTER",
      "KOLO_CLUSTER_TLS_CA",
      "KOLO_CLUSTER_TLS_CERT",
      "KOLO_CLUSTER_TLS_KEY",
      "KOLO_CLUSTER_TOKEN_FILE",
      "KOLO_COMM_THREAD_CORE",
      "KOLO_CUDA_COUNT",
      "KOLO_CUDA_GRAPHS",
      "KOLO_CUDA_LIBRARIES",
      "KOLO_CUDA_LOG",
      "KOLO_CUDA_PLUGIN",
      "KOLO_CUDA_SYNC",
      "KOLO_CYCLE_TIME_MS",
      "KOLO_DATA_DIR",
      "KOLO_END_WITH_WORKERS",
      "KOLO_ENGINES",
      "KOLO_F32_WIRE",
      "KOLO_FIRST_BUCKET_BYTES",
      "KOLO_FLIGHT_DIR",
      "KOLO_FUSION_BYTES",
      "KOLO_GPU_SPIN_US",
      "KOLO_KERNELS",
      "KOLO_JOB_START",
      "KOLO_LAUNCHER",
      "KOLO_LOG_LEVEL",
      "KOLO_MPI_JOB",
      "KOLO_NCCL_INIT_TIMEOUT_S",
      "KOLO_PID_NAMESPACE",
      "KOLO_RANK_PROCESS",
      "KOLO_REQUEUE",
      "KOLO_RESTART",
      "KOLO_RPC_CHUNK_BYTES",
      "KOLO_STALL_ABORT_S",
      "KOLO_STALL_WARNING_S",
      "KOLO_STOPPED_EXIT_CODE",
      "KOLO_STOP_BEFORE",
      "KOLO_STOP_FILE",
      "KOLO_STOP_GRACE_S",
      "KOLO_STOP_WHEN",
      "KOLO_TERMINAL",
      "KOLO_TIMELINE",
      "KOLO_VIRTUAL_GPUS",
      "KOLO_WORKSPACE_MIB",
  };
  return names;
}

std::vector<std::pair<std::string, std::string>> shared_options(const EngineOptions& o) {
  return {{"KOLO_BUCKET_BYTES", std::to_string(o.bucket_bytes)},
          {"KOLO_FIRST_BUCKET_BYTES", std::to_string(o.first_bucket_bytes)},
          {"KOLO_FUSION_BYTES", std::to_string(o.fusion_bytes)},
          {"KOLO_CACHE_CAPACITY", std::to_string(o.cache_capacity)},
          {"KOLO_ALLREDUCE", o.allreduce},
          {"KOLO_CHUNK_BYTES", std::to_string(o.chunk_bytes)},
          {"KOLO_AUTOTUNE", o.autotune             ? "1"
                            : o.cost_table.empty() ? "0"
                                                   : "a file"},
          {"KOLO_F32_WIRE", o.f32_wire ? "1" : "0"},
          {"KOLO_KERNELS", std::string(detail::name_of(detail::kernel_source()))},
          {"KOLO_CHECK_DRIFT", std::to_string(detail::check_drift_steps())},
          {"KOLO_TIMELINE", o.timeline.empty() ? "unset" : "set"}};
}

std::string differences_table(const std::vector<std::vector<std::pair<std::string, std::string>>>& ranks) {
  std::map<std::string, std::map<std::string, std::vector<int>>> ranks_by_value;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    for (const auto& [name, value] : ranks[rank])
      ranks_by_value[name][value].push_back(static_cast<int>(rank));
  std::string table;
  for (const auto& [name, of_rank_0] : ranks.at(0)) {
    const auto& values = ranks_by_value[name];
    if (values.size() == 1) continue;
    std::string row;
    for (const auto& [value, ranks] : values)
      row += fmt::format("{}{} on ranks [{}]", row.empty() ? "" : "; ", value, fmt::join(ranks, ","));
    table += fmt::format("\n  {}: {}", name, row);
  }
  return table;
}

}  // namespace kolo
