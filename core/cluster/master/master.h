// What a client asks of the master that keeps its session: implemented by the master of a server
// (LocalMaster), which a client in the same process calls directly, and by the channel to one in another
// process (RemoteMaster).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/cluster/call.h>
#include <kolo/core/device/device_attributes.h>
#include <kolo/core/graph/graph_def.h>
#include <kolo/core/runtime/config.h>
#include <kolo/core/runtime/shards.h>
#include <kolo/core/runtime/trace.h>
#include <kolo/core/tensor/tensor.h>

namespace kolo::detail {

struct CreatedSession {
  std::string handle;  // 32 hex digits
  std::int64_t graph_version = 0;
  std::int64_t operation_timeout_in_ms = 0;  // the server's where it has one, else the session's; 0: none
};

/// Of a step: names of tensors ("x:0") and operations ("x").
struct StepNames {
  std::vector<std::string> feeds;
  std::vector<std::string> fetches;  // a tensor each; operations are targets
  std::vector<std::string> targets;
};

struct RunStepRequest {
  std::string session;
  StepNames names;            // without callable
  std::int64_t callable = 0;  // other than 0: as make_callable gave it
  std::vector<Tensor> feeds;  // in the order of the names; read during the call only
  TraceLevel trace_level = TraceLevel::no_trace;
  bool metadata = false;
  std::uint64_t request_id = 0;  // random
};

struct StepResult {
  std::vector<Tensor> fetches;  // the caller's own
  RunMetadata metadata;
  std::vector<std::string> placement_lines;  // with log_device_placement: what this step has placed anew
};

/// Any thread. Calls block; the stop of their deadline ends them with CancelledError. A session that is not
/// there: AbortedError `Session <h> is not found.`
class Master {
 public:
  virtual ~Master() = default;

  /// Waits for the tasks that the config's filters pass, until the deadline.
  virtual CreatedSession create_session(const GraphDef& graph, const SessionConfig& config,
                                        const Deadline& deadline) = 0;
  /// Adds nodes; returns the new version. Throws AbortedError `Current version is <a> but caller expected
  /// <b>.`
  virtual std::int64_t extend_session(const std::string& session, std::int64_t version, const GraphDef& nodes,
                                      const Deadline& deadline) = 0;
  virtual StepResult run_step(const RunStepRequest& request, const Deadline& deadline) = 0;
  virtual std::int64_t make_callable(const std::string& session, const StepNames& names,
                                     const Deadline& deadline) = 0;
  virtual void release_callable(const std::string& session, std::int64_t callable,
                                const Deadline& deadline) = 0;
  /// Cancels its steps, waits for them.
  virtual void close_session(const std::string& session, const Deadline& deadline) = 0;
  virtual std::vector<DeviceAttributes> list_devices(const std::string& session,
                                                     const Deadline& deadline) = 0;
  /// Closes all sessions of this master; drops the containers, the default one where none is named, on the
  /// tasks that the config's filters pass.
  virtual void reset(const std::vector<std::string>& containers, const SessionConfig& config,
                     const Deadline& deadline) = 0;

  /// By the names of variables of the session's graph, see Worker.
  virtual void get_variables(const std::string& session, const std::vector<std::string>& names,
                             const std::function<void(std::size_t name, Tensor value)>& on_value,
                             const Deadline& deadline) = 0;
  virtual void set_variables(const std::string& session, const std::vector<std::string>& names,
                             const std::function<Tensor(std::size_t name)>& value,
                             const Deadline& deadline) = 0;
  virtual std::vector<bool> are_initialized(const std::string& session, const std::vector<std::string>& names,
                                            const Deadline& deadline) = 0;

  /// As RemoteSession has them.
  virtual std::vector<WrittenShard> write_shards(const std::string& session, const ShardPlace& place,
                                                 const std::vector<SavedVariable>& variables,
                                                 const Deadline& deadline) = 0;
  virtual void read_shards(const std::string& session, const std::vector<SavedVariable>& variables,
                           const Deadline& deadline) = 0;
  virtual std::map<std::string, std::uint64_t> random_positions(const std::string& session,
                                                                const Deadline& deadline) = 0;
  virtual void set_random_positions(const std::string& session,
                                    const std::map<std::string, std::uint64_t>& positions,
                                    const Deadline& deadline) = 0;

  /// A client's sign of life: held as long as its session. ended: once.
  virtual std::shared_ptr<Call> watch(const std::string& session,
                                      std::function<void(std::exception_ptr)> ended) = 0;
};

}  // namespace kolo::detail
