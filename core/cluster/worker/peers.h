// The tasks of a cluster, as one of them reaches them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <kolo/core/cluster/worker/worker.h>

namespace kolo::detail {

/// Any thread.
class Peers {
 public:
  virtual ~Peers() = default;
  /// All of the cluster, by name; this task among them.
  virtual std::vector<std::string> tasks() const = 0;
  /// This task itself is called without a socket. Throws InvalidArgumentError for a task that the cluster
  /// does not have.
  virtual std::shared_ptr<Worker> worker(const std::string& task) = 0;
  virtual std::string address(const std::string& task) const = 0;
};

}  // namespace kolo::detail
