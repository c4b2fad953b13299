// What a session may use, how it places, and how long and on which threads a run may take.
#pragma once

#include <cstdint>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include <kolo/core/device/device_options.h>
#include <kolo/core/passes/graph_options.h>

namespace kolo {

/// One of a session's own choice of inter-op pools.
struct ThreadPoolOptions {
  int num_threads = 0;  // that run nodes, the caller's among them; 0: as inter_op_parallelism_threads
  std::string global_name = {};  // sessions that give the same name share the pool; "": this session's own
};

/// How a session reaches its server.
struct RpcOptions {
  /// A session on a server of its own process goes through a socket, as a client of another process does.
  /// Local sessions ignore it.
  bool use_rpc_for_inprocess_master = false;
};

/// Threads, devices and limits of a session. Read once, when the session is made.
struct SessionConfig {
  /// Threads one kernel may use; 0: OMP_NUM_THREADS, else cores. The process's first session fixes it for
  /// all.
  int intra_op_parallelism_threads = 0;
  /// Threads that run nodes, the caller's among them; 0: as many as intra-op; negative: the caller's alone.
  /// The helpers are one pool for the whole process, and the first session that uses it fixes its size.
  int inter_op_parallelism_threads = 0;
  bool use_per_session_threads = false;  // helpers of this session's own instead
  /// Where it is not empty, the session has these pools instead, and RunOptions::inter_op_thread_pool picks
  /// one. Throws InvalidArgumentError `Pool <name> configured previously with num_threads=<a>; cannot
  /// re-configure with num_threads=<b>`.
  std::vector<ThreadPoolOptions> session_inter_op_thread_pool = {};
  GpuOptions gpu_options = {};
  std::map<std::string, int> device_count = {};  // type → at most so many; missing: 1 CPU, all GPUs
  std::vector<VirtualGpu> virtual_gpus = {};     // instead of the process's GPUs; see docs/devices.md
  std::vector<std::string> device_filters = {};  // partial names; what matches none is not seen. Empty: all
  bool log_device_placement = false;  // says where each node goes, on stdout and in the log, at its first run
  bool allow_soft_placement = false;  // a node that cannot be where it was asked for goes where it can
  GraphOptions graph_options = {};    // what may be rewritten of a step, and how precisely it computes
  std::int64_t operation_timeout_in_ms = 0;  // for each run; 0: none. RunOptions::timeout_in_ms goes first

  // Kept for who reads the configuration back; without effect on a local session.
  bool isolate_session_state = false;
  std::map<std::string, std::map<int, std::string>> cluster_def = {};  // job → task → address
  int placement_period = 0;
  RpcOptions rpc_options = {};
};

/// graph_options; gpu_options.allow_tf32 is another name of its precision tf32.
inline GraphOptions graph_options_of(const SessionConfig& config) {
  GraphOptions options = config.graph_options;
  if (config.gpu_options.allow_tf32 && options.precision != Precision::bf16)
    options.precision = Precision::tf32;
  return options;
}

/// How much a run notes down in its RunMetadata: nothing of its nodes, or when each ran.
enum class TraceLevel { no_trace = 0, software_trace = 1, hardware_trace = 2, full_trace = 3 };

/// Of one run.
struct RunOptions {
  TraceLevel trace_level = TraceLevel::no_trace;
  std::int64_t timeout_in_ms = 0;  // 0: the session's. When it passes, the run is cancelled and throws
                                   // DeadlineExceededError `Timed out waiting for notification`
  int inter_op_thread_pool = 0;    // of the session's pools; −1: the caller's thread alone
  /// A stop request cancels the run, as close() does: CancelledError `The run was stopped by its stop_token.`
  std::stop_token stop_token = {};
};

}  // namespace kolo
