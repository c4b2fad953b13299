// Runs parts of a graph on this process's devices.
#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <kolo/core/device/device_attributes.h>
#include <kolo/core/graph/graph.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/config.h>
#include <kolo/core/runtime/fetch.h>
#include <kolo/core/runtime/trace.h>

namespace kolo {

class Callable;
struct CallableSignature;

class Session;

namespace detail {
class RemoteSession;
class SessionState;
SessionState& state_of(Session& session);
RemoteSession* remote_of(Session& session);
}  // namespace detail

/// Runs in this process, or, with a target, on the server there: its tasks then run the graph, and variables
/// live in their containers. Those of a local session live as long as it. run: any thread, several at a time,
/// which share the variables. The graph must outlive the session and may grow between runs.
class Session {
 public:
  /// Throws InvalidArgumentError for a configuration that cannot be.
  explicit Session(Graph& graph, SessionConfig config = {});
  /// target: "" is this process, "grpc://host:port" the server whose master keeps the session. Waits for the
  /// tasks that config.device_filters pass. Throws NotFoundError `No session factory registered for the given
  /// session options: {target: "<t>"…` for another one, UnavailableError where nobody listens,
  /// DeadlineExceededError when config.operation_timeout_in_ms is over.
  template <std::convertible_to<std::string> T>  // not by conversion: {} is a SessionConfig
  Session(Graph& graph, const T& target, SessionConfig config = {})
      : Session(Target{std::string(target)}, graph, std::move(config)) {}
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  /// Closes this one and takes the other's place, at the same address: references to it stay valid. No run of
  /// either is under way.
  Session& operator=(Session&& other) noexcept;

  /// Runs what the fetches need and nothing else; the first run with these fetches, fed tensors and their
  /// shapes compiles a plan, later ones reuse it (the 64 plans used last are kept). One result for each
  /// fetch, in order; they are the caller's own copies. A tensor that is fed and fetched gives the fed value.
  /// metadata: filled in where it is given.
  ///
  /// Throws what the first failing kernel threw, with the node's name, op and device added; the rest of the
  /// step is cancelled. TensorFlow's texts for what cannot be run: InvalidArgumentError for feeds and fetches
  /// that do not fit the graph, NotFoundError for names that are not in it, FailedPreconditionError for a
  /// closed session or an empty graph, CancelledError when close() or a stop token ends the run,
  /// DeadlineExceededError when its time is over.
  std::vector<Tensor> run(const std::vector<Fetch>& fetches, const Feeds& feeds = {},
                          const RunOptions& options = {}, RunMetadata* metadata = nullptr) {
    return run_step(fetches, feeds, {}, options, metadata);
  }
  /// Also runs the operations `Targets{…}` for their effect; they have no results.
  template <std::same_as<Targets> T>  // not by conversion: {.timeout_in_ms = 5} is RunOptions
  std::vector<Tensor> run(const std::vector<Fetch>& fetches, const Feeds& feeds, const T& targets,
                          const RunOptions& options = {}, RunMetadata* metadata = nullptr) {
    return run_step(fetches, feeds, targets, options, metadata);
  }
  Tensor run(Output fetch, const Feeds& feeds = {}) { return run(std::vector<Fetch>{fetch}, feeds)[0]; }
  void run(Operation target, const Feeds& feeds = {}) { run(std::vector<Fetch>{target}, feeds); }
  /// "scope/x:0": the tensor's value. "scope/x": runs the operation, gives an empty tensor.
  Tensor run(const char* name, const Feeds& feeds = {}) { return run(std::vector<Fetch>{name}, feeds)[0]; }
  template <std::same_as<std::string> T>  // not by conversion: {"x:0", "y:0"} is a list of two
  Tensor run(const T& name, const Feeds& feeds = {}) {
    return run(std::vector<Fetch>{name}, feeds)[0];
  }
  /// See FetchStructure.
  template <NestedFetches T>
  typename FetchStructure<T>::Result run(const T& fetches, const Feeds& feeds = {},
                                         const RunOptions& options = {}, RunMetadata* metadata = nullptr) {
    std::vector<Fetch> list;
    FetchStructure<T>::flatten(fetches, list);
    const std::vector<Tensor> results = run(list, feeds, options, metadata);
    const Tensor* next = results.data();
    return FetchStructure<T>::rebuild(fetches, next);
  }

  /// Which kernel each node of such a run has, and why not a faster one: compiles the plan, runs nothing. Of
  /// feeds type and shape count. Collective where the first run is; throws as run() does before it runs.
  std::vector<KernelChoice> kernels(const std::vector<Fetch>& fetches, const Feeds& feeds = {});

  /// Binds a signature once, so that each call costs the step alone. Throws as run() does for feeds and
  /// fetches, and InvalidArgumentError `<t> is both fed and fetched.`
  Callable make_callable(const CallableSignature& signature, const RunOptions& options = {});

  /// Cancels runs that are under way (CancelledError), waits for them, frees plans and variables. Later runs:
  /// FailedPreconditionError `Attempted to use a closed Session.`
  void close();
  /// Closes all open sessions of this process, with the variables that they hold. Later runs of theirs:
  /// CancelledError `Session has been closed.` The containers of a local session are its own, so all go,
  /// whichever are named.
  /// With a target: closes all sessions of the master there, and drops the containers, by default the default
  /// one, on all tasks that config.device_filters pass.
  static void reset(const std::string& target = "", const std::vector<std::string>& containers = {},
                    const SessionConfig& config = {});

  // Between runs, which see what they leave; or, on a server, beside those of other sessions.

  /// The values of variables by name, the caller's own copies; an empty tensor for one that has no value.
  /// Throws NotFoundError for what is no variable of the graph.
  std::vector<Tensor> get_variables(const std::vector<std::string>& names);
  /// They have these values then. Throws NotFoundError for what is no variable of the graph,
  /// InvalidArgumentError for a value of another type or shape; nothing is changed then.
  void set_variables(const std::map<std::string, Tensor>& values);
  std::vector<DeviceAttributes> list_devices() const;

  Graph& graph() const { return *graph_; }
  const std::string& target() const { return target_; }
  const SessionConfig& config() const;
  // Of a local session; UnimplementedError on a server.

  /// Positions of the random ops that have run, by node name. set_…: ops that have not run yet start there.
  std::map<std::string, std::uint64_t> random_positions() const;
  void set_random_positions(const std::map<std::string, std::uint64_t>& positions);

  /// Threads of a kernel, and of the pool that runs use by default, as they turned out.
  int intra_op_threads() const;
  int inter_op_threads() const;

 private:
  friend class Callable;
  friend detail::SessionState& detail::state_of(Session& session);
  friend detail::RemoteSession* detail::remote_of(Session& session);
  class Impl;
  struct Target {
    std::string name;
  };
  Session(Target target, Graph& graph, SessionConfig config);
  Impl& local(const char* what) const;
  std::vector<Tensor> run_step(const std::vector<Fetch>& fetches, const Feeds& feeds, const Targets& targets,
                               const RunOptions& options, RunMetadata* metadata);
  Graph* graph_;
  std::string target_;
  std::shared_ptr<Impl> impl_;  // null with a target
  std::shared_ptr<detail::RemoteSession> remote_;
};

/// TensorFlow 1's: the names of those of `variables`, by default all global and local ones of the graph, that
/// have no value in the session. Between runs; runs nothing.
std::vector<std::string> report_uninitialized_variables(Session& session,
                                                        const std::vector<Variable>& variables);
std::vector<std::string> report_uninitialized_variables(Session& session);

/// What a Callable is fed, and what it fetches and runs, in this order.
struct CallableSignature {
  std::vector<FeedTarget> feeds = {};  // in the order in which a call gives their values
  std::vector<Fetch> fetches = {};     // tensors: in the order in which a call gets their values
  std::vector<Fetch> targets = {};     // operations
};

/// Made by Session::make_callable. Calls: any thread, several at a time. It may outlive its session, but not
/// the graph: calls after the session's end throw as Session::run does on a closed one.
class Callable {
 public:
  /// One tensor for each feed, of its type and a shape that fits. results: one for each fetch; a tensor that
  /// has the fetch's type and shape is written into, any other is replaced by a new one. Throws as
  /// Session::run; results are then unchanged.
  /// With shapes that do not change from call to call, calls after the first allocate nothing but what the
  /// kernels do.
  void run(std::span<const Tensor> feeds, std::span<Tensor> results, RunMetadata* metadata = nullptr) const;
  /// With results of its own making.
  std::vector<Tensor> operator()(const std::vector<Tensor>& feeds = {}) const;

 private:
  friend class Session;
  class Impl;
  class Local;
  class Remote;
  explicit Callable(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

}  // namespace kolo
