// The variables of a task, which outlive sessions.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <kolo/core/base/mutex.h>
#include <kolo/core/cluster/worker/worker.h>
#include <kolo/core/graph/node.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo::detail {

/// By container and name. Plans keep what they use; a container that is dropped leaves it to them
/// uninitialised. Any thread.
class TaskVariables {
 public:
  /// task: for messages.
  explicit TaskVariables(std::string task) : task_(std::move(task)) {}

  /// Of a variable's node.
  static VariableKey key_of(const Node& storage);
  /// Made at the first call, uninitialised. Throws InvalidArgumentError `Variable <v> is float [3,2] in
  /// container "localhost" of <task>; this graph declares float [3,4]`.
  std::shared_ptr<VariableStorage> find_or_make(const VariableKey& key, DType dtype, const Shape& shape,
                                                Device& device) KOLO_EXCLUDES(mutex_);
  /// nullptr where there is none.
  std::shared_ptr<VariableStorage> find(const VariableKey& key) KOLO_EXCLUDES(mutex_);
  void drop(const std::string& container) KOLO_EXCLUDES(mutex_);
  std::int64_t bytes() KOLO_EXCLUDES(mutex_);

 private:
  static VariableKey in_container(const VariableKey& key);

  const std::string task_;
  Mutex mutex_;
  std::map<VariableKey, std::shared_ptr<VariableStorage>> all_ KOLO_GUARDED_BY(mutex_);
};

/// The value as one state, in memory of its own on the host; empty where it is not initialised.
Tensor copy_of(VariableStorage& variable);
/// value: on the host. Throws InvalidArgumentError for another type or shape.
void set_value(VariableStorage& variable, const Tensor& value);

}  // namespace kolo::detail
