// What a master and other tasks ask of a task: implemented by the task itself (LocalWorker) and by the
// channel to one in another process (RemoteWorker). Calls with one answer are rows of rpc/calls.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <kolo/core/cluster/rpc/calls.h>
#include <kolo/core/device/device_attributes.h>
#include <kolo/core/graph/graph_def.h>
#include <kolo/core/runtime/config.h>
#include <kolo/core/runtime/trace.h>
#include <kolo/core/tensor/tensor.h>

namespace kolo::detail {

/// A task, as it tells of itself.
struct TaskStatus {
  std::string task;  // /job:ps/replica:0/task:1
  std::string version;
  std::uint64_t cluster_fingerprint = 0;
  std::vector<DeviceAttributes> devices;
  std::int64_t variable_bytes = 0;
  std::vector<std::string> sessions;
  /// What nodes of the steps that are under way wait for.
  struct Wait {
    std::string session;
    std::int64_t step = 0;
    std::string node;
    std::string op;
    std::string what;       // `"w/grad_accum" has 1 of 2 gradients (missing from …)`, a key, a queue
    int nodes_left = 0;     // of the part, that have not run
    bool computes = false;  // other nodes of the part run meanwhile
  };
  std::vector<Wait> waits;
};

/// A process that is a task: once restarted, it is another one.
struct TaskProcess {
  std::string task;
  std::uint64_t incarnation = 0;                         // drawn when it starts; 0: one that did not say
  auto operator<=>(const TaskProcess&) const = default;  // NOLINT(modernize-use-nullptr): of clang-tidy 14
};

/// The most that a run is told: of others a task finds out by their age.
inline constexpr std::size_t kMostStepsOver = 10'000;

struct RunPartRequest {
  std::string session;
  std::uint64_t part = 0;  // as register_part gave it
  std::int64_t step = 0;
  std::uint64_t request_id = 0;    // random; a second call with the same one is refused
  std::vector<Tensor> feeds = {};  // only in the master's own process
  // Between the master's task and this one, where they are two: keys of the values that the former takes of
  // this part, and gives for it.
  std::vector<std::string> taken = {}, given = {};
  TraceLevel trace_level = TraceLevel::no_trace;
  bool metadata = false;           // memory and kernels, too
  bool only_ends = false;          // it has neither fetches nor metadata
  std::vector<std::int64_t> over;  // steps of the session of which nothing needs to be kept
};

struct PartResult {
  std::vector<Tensor> fetches;  // the caller's own
  RunMetadata metadata;
};

/// Values that a task asks of another for one of its steps.
struct TensorsRequest {
  std::string session;
  std::int64_t step = 0;
  std::string receiver;  // task
  std::vector<std::string> keys;
};

/// Takes the values of a TensorsRequest, in whatever order they come. Calls follow one another.
class TensorReceiver {
 public:
  virtual ~TensorReceiver() = default;
  /// Memory of the host for value `key` (its place among the keys) of type and shape. Throws where it is
  /// larger than it may be; the call then ends with that error.
  virtual Tensor memory_for(std::size_t key, DType dtype, const Shape& shape) = 0;
  /// value: what memory_for gave, written. dead: of a branch that was not taken; empty then.
  virtual void arrived(std::size_t key, Tensor value, bool dead) = 0;
  /// Last and once. error: null where all have arrived.
  virtual void ended(std::exception_ptr error) = 0;
};

/// A variable of a task.
struct VariableKey {
  std::string container;  // "": the default one
  std::string name;
  auto operator<=>(const VariableKey&) const = default;  // NOLINT(modernize-use-nullptr): of clang-tidy 14
};

/// Any thread. What fails throws, or comes as the exception of an asynchronous call: AbortedError `Session
/// handle is not found: <h>. Possibly this worker ("<task>") just restarted.` for sessions that are not
/// there, UnavailableError where the task is away.
class Worker : public WorkerCalls {
 public:
  /// Runs the part; `done` is called once, from any thread, perhaps before this returns.
  virtual std::shared_ptr<Call> run_part(
      const RunPartRequest& request, const Deadline& deadline,
      std::function<void(std::exception_ptr error, PartResult result)> done) = 0;
  /// Values of the step that are on their way or were not asked for.
  virtual std::shared_ptr<Call> receive(const TensorsRequest& request,
                                        std::shared_ptr<TensorReceiver> receiver) = 0;
  /// on_value: for each key in order; an empty tensor where the variable has no value (or is not there). A
  /// variable is copied as one state, one at a time.
  virtual void get_variables(const std::string& session, const std::vector<VariableKey>& keys,
                             const std::function<void(std::size_t key, Tensor value)>& on_value,
                             const Deadline& deadline) = 0;
  /// value(key): asked for in order, one at a time.
  virtual void set_variables(const std::string& session, const std::vector<VariableKey>& keys,
                             const std::function<Tensor(std::size_t key)>& value,
                             const Deadline& deadline) = 0;
  /// on_change: called with the task's status when the watch stands, and last, once, with the error that
  /// ended it (UnavailableError when the task is lost, CancelledError when it was cancelled).
  virtual std::shared_ptr<Call> watch(
      std::function<void(const TaskStatus* status, std::exception_ptr ended)> on_change) = 0;
};

}  // namespace kolo::detail
