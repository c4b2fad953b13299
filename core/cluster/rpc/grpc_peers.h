// The tasks of a cluster over gRPC: one channel to each, shared by all that is said to it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <kolo/core/base/mutex.h>
#include <kolo/core/cluster/cluster_spec.h>
#include <kolo/core/cluster/kept_threads.h>
#include <kolo/core/cluster/rpc/channel.h>
#include <kolo/core/cluster/worker/peers.h>
#include <kolo/core/cluster/worker/tensor_sink.h>

namespace kolo::detail {

/// Any thread. Channels are made at first use and kept.
class GrpcPeers final : public Peers {
 public:
  /// cluster: with the ports as they are bound. caller.name is the own task, its fingerprint the cluster's.
  GrpcPeers(const ClusterSpec& cluster, Caller caller);

  /// The own task, and what it sends. Borrowed weakly, since it holds its peers: without it worker() throws
  /// UnavailableError for the own task.
  void set_own(std::weak_ptr<Worker> own, std::weak_ptr<TensorSource> values) KOLO_EXCLUDES(mutex_);
  std::vector<std::string> tasks() const override;
  std::shared_ptr<Worker> worker(const std::string& task) override KOLO_EXCLUDES(mutex_);
  std::string address(const std::string& task) const override;
  /// Values that ride on the calls that run parts.
  const std::shared_ptr<StepStreams>& streams() const { return streams_; }
  /// To all tasks that are watched: this one stops on purpose. Does not wait.
  void say_stopping() KOLO_EXCLUDES(mutex_);
  /// Afterwards, and before the watches are cancelled.
  void wait_until_stopping_is_heard(std::chrono::steady_clock::time_point deadline) KOLO_EXCLUDES(mutex_);

 private:
  Caller caller_;
  std::map<std::string, std::string> addresses_;  // by task
  KeptThreads threads_;
  const std::shared_ptr<StepStreams> streams_;
  Mutex mutex_;
  std::weak_ptr<Worker> own_ KOLO_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<RemoteWorker>> workers_ KOLO_GUARDED_BY(mutex_);
};

}  // namespace kolo::detail
