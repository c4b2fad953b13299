// What stands behind a session whose graph runs in other processes: filled in by the library that knows the
// target's prefix.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/base/source_line.h>
#include <kolo/core/device/device_attributes.h>
#include <kolo/core/graph/graph.h>
#include <kolo/core/runtime/config.h>
#include <kolo/core/runtime/shards.h>
#include <kolo/core/runtime/step_request.h>
#include <kolo/core/runtime/trace.h>

namespace kolo::detail {

/// Any thread, but for the destructor. Errors are those of Session, and what the other processes say; after
/// close() all but list_devices and config throw FailedPreconditionError `Attempted to use a closed Session.`
class RemoteSession {
 public:
  /// A signature bound once; freed with its last owner, which may be after the session's end.
  class Bound {
   public:
    virtual ~Bound() = default;
  };

  virtual ~RemoteSession() = default;
  /// One result for each fetch, an empty tensor for an operation. The graph may have grown since the last
  /// run. metadata: null where it is not asked for.
  virtual std::vector<Tensor> run(const StepRequest& request, const RunOptions& options,
                                  RunMetadata* metadata) = 0;
  /// request: without feeds' values. Later: run_bound with one tensor for each of `feeds`.
  virtual std::shared_ptr<Bound> bind(const StepRequest& request, const std::vector<Output>& feeds) = 0;
  virtual std::vector<Tensor> run_bound(const Bound& bound, std::span<const Tensor> feeds,
                                        const RunOptions& options, RunMetadata* metadata) = 0;
  /// Idempotent, does not throw. Cancels runs that are under way, and waits for them.
  virtual void close() = 0;

  /// on_value: for each variable in order, its value as one state; an empty tensor where it has none. Throws
  /// NotFoundError for what is no variable of the graph.
  virtual void get_variables(const std::vector<std::string>& names,
                             const std::function<void(std::size_t name, Tensor value)>& on_value) = 0;
  /// value(name): asked for in order, one at a time.
  virtual void set_variables(const std::vector<std::string>& names,
                             const std::function<Tensor(std::size_t name)>& value) = 0;
  /// Which of them have a value.
  virtual std::vector<bool> are_initialized(const std::vector<std::string>& names) = 0;
  /// Each task with variables among these writes its own, in the order of the tasks' names, under the
  /// temporary name of its shard; place.shard and .shards are theirs. Before, each task finds the token file.
  virtual std::vector<WrittenShard> write_shards(const ShardPlace& place,
                                                 const std::vector<SavedVariable>& variables) = 0;
  /// Each task reads its own. Throws FailedPreconditionError where one finds another file there, or none.
  virtual void read_shards(const std::vector<SavedVariable>& variables) = 0;
  /// As Session's, of the random ops of all tasks.
  virtual std::map<std::string, std::uint64_t> random_positions() = 0;
  virtual void set_random_positions(const std::map<std::string, std::uint64_t>& positions) = 0;
  virtual std::vector<DeviceAttributes> list_devices() = 0;
  virtual const SessionConfig& config() const = 0;
};

/// The two things that a target's prefix brings.
struct RemoteSessionFactory {
  std::function<std::unique_ptr<RemoteSession>(Graph& graph, const std::string& target,
                                               const SessionConfig& config)>
      make;
  std::function<void(const std::string& target, const std::vector<std::string>& containers,
                     const SessionConfig& config)>
      reset;
};

/// A namespace-scope constant of the library that serves targets of this prefix, such as "grpc://".
struct RegisterRemoteSessions {
  RegisterRemoteSessions(const std::string& prefix, RemoteSessionFactory factory,
                         SourceLine place = SourceLine::here());
};

/// Throws NotFoundError `No session factory registered for the given session options: {target: "<t>"…`.
const RemoteSessionFactory& remote_session_factory(const std::string& target);

}  // namespace kolo::detail
