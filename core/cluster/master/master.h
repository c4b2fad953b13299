// What a client asks of the master that keeps its session: implemented by the master of a server
// (LocalMaster), which a client in the same process calls directly, and by the channel to one in another
// process (RemoteMaster). Calls with one answer are rows of rpc/calls.h.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/cluster/rpc/calls.h>
#include <kolo/core/runtime/config.h>
#include <kolo/core/runtime/trace.h>
#include <kolo/core/tensor/tensor.h>

namespace kolo::detail {

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
class Master : public MasterCalls {
 public:
  virtual StepResult run_step(const RunStepRequest& request, const Deadline& deadline) = 0;
  /// By the names of variables of the session's graph, see Worker.
  virtual void get_variables(const std::string& session, const std::vector<std::string>& names,
                             const std::function<void(std::size_t name, Tensor value)>& on_value,
                             const Deadline& deadline) = 0;
  virtual void set_variables(const std::string& session, const std::vector<std::string>& names,
                             const std::function<Tensor(std::size_t name)>& value,
                             const Deadline& deadline) = 0;
  /// A client's sign of life: held as long as its session. ended: once.
  virtual std::shared_ptr<Call> watch(const std::string& session,
                                      std::function<void(std::exception_ptr)> ended) = 0;
};

}  // namespace kolo::detail
