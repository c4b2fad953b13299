// What keeps a state of its own from run to run beside variables (queues, accumulators), by name.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include <kolo/core/base/mutex.h>
#include <kolo/core/base/source_line.h>
#include <kolo/core/graph/node.h>

namespace kolo {

/// The state behind an op whose schema is contained(). Its kernels keep it alive. Any thread.
class Contained {
 public:
  virtual ~Contained() = default;
  /// Throws InvalidArgumentError where `node`, of the same op and name, asks for another kind of state.
  virtual void check_shared_by(const Node& node) const = 0;
  /// Its container is dropped: it is as if it had just been made. Who waits in it gets CancelledError.
  virtual void drop() = 0;
};

/// name: by which messages call it.
using ContainedFactory = std::function<std::shared_ptr<Contained>(const Node& node, const std::string& name)>;

/// A namespace-scope constant of the file that has the kernels of the ops on it. The op itself gets a kernel:
/// its handle is the node's name.
struct RegisterContained {
  RegisterContained(const std::string& op, ContainedFactory make, SourceLine place = SourceLine::here());
};

/// Held by a local session, or by a server for all its sessions. Any thread.
class Containers {
 public:
  /// The name of the container where none is given.
  static constexpr char kDefault[] = "localhost";

  /// The state of `node`, of a contained() op: that of its container, op and shared_name (its own name where
  /// that is ""), made at the first call. Throws as Contained::check_shared_by.
  std::shared_ptr<Contained> find_or_make(const Node& node) KOLO_EXCLUDES(mutex_);
  void clear() KOLO_EXCLUDES(mutex_);
  /// Drops what the container holds; plans that have it go on with what is then empty.
  void drop(const std::string& container) KOLO_EXCLUDES(mutex_);

 private:
  using Key = std::tuple<std::string, std::string, std::string>;  // container, op, name
  Mutex mutex_;
  std::map<Key, std::shared_ptr<Contained>> all_ KOLO_GUARDED_BY(mutex_);
};

}  // namespace kolo
