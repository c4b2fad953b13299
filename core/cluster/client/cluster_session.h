// A session whose graph is run by the tasks of a cluster, as its client sees it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include <kolo/core/base/mutex.h>
#include <kolo/core/cluster/client/connect.h>
#include <kolo/core/runtime/remote_session.h>

namespace kolo::detail {

class ClusterSession final : public RemoteSession {
 public:
  /// Sends the graph; waits for the tasks that the config's filters pass, at most for its
  /// operation_timeout_in_ms. The graph outlives the session.
  ClusterSession(Graph& graph, std::string target, SessionConfig config);
  ~ClusterSession() override;

  std::vector<Tensor> run(const StepRequest& request, const RunOptions& options,
                          RunMetadata* metadata) override;
  std::shared_ptr<Bound> bind(const StepRequest& request, const std::vector<Output>& feeds) override;
  std::vector<Tensor> run_bound(const Bound& bound, std::span<const Tensor> feeds, const RunOptions& options,
                                RunMetadata* metadata) override;
  void close() override KOLO_EXCLUDES(mutex_);
  void get_variables(const std::vector<std::string>& names,
                     const std::function<void(std::size_t, Tensor)>& on_value) override;
  void set_variables(const std::vector<std::string>& names,
                     const std::function<Tensor(std::size_t)>& value) override;
  std::vector<bool> are_initialized(const std::vector<std::string>& names) override;
  std::vector<WrittenShard> write_shards(const ShardPlace& place,
                                         const std::vector<SavedVariable>& variables) override;
  void read_shards(const std::vector<SavedVariable>& variables) override;
  std::map<std::string, std::uint64_t> random_positions() override;
  void set_random_positions(const std::map<std::string, std::uint64_t>& positions) override;
  std::vector<DeviceAttributes> list_devices() override { return devices_; }
  const SessionConfig& config() const override { return config_; }

 private:
  class Use;
  class BoundStep;

  /// Where the places of the results are: of the values that come, in the order of the fetches.
  static std::vector<Tensor> placed(std::vector<Tensor> values, const std::vector<bool>& is_value);
  std::vector<Tensor> run_step(RunStepRequest request, const std::vector<bool>& is_value,
                               const RunOptions& options, RunMetadata* metadata);
  /// What was added to the graph since the last call goes to the master.
  void send_growth(const Deadline& deadline) KOLO_EXCLUDES(mutex_);
  /// The master learns that this client lives, again where the stream has broken.
  void keep_watch() KOLO_EXCLUDES(mutex_);
  /// Of a master that has all of the graph.
  template <typename Row>
  typename Row::Answer ask(const typename Row::Request& request);
  Deadline deadline_of(std::int64_t milliseconds) const;
  void print(const std::vector<std::string>& placement_lines) const;

  Graph& graph_;
  const std::string target_;
  const SessionConfig config_;
  std::int64_t operation_timeout_in_ms_;  // the server's, where it has one; written by the constructor alone
  const ConnectedMaster connected_;
  std::string handle_;
  std::vector<DeviceAttributes> devices_;

  struct Watch;  // shared with its stream
  const std::shared_ptr<Watch> watch_;

  Mutex mutex_;
  CondVar changed_;
  bool closed_ KOLO_GUARDED_BY(mutex_) = false;
  bool gone_ KOLO_GUARDED_BY(mutex_) = false;     // from the master, too
  bool sending_ KOLO_GUARDED_BY(mutex_) = false;  // a thread sends what the graph has grown by
  std::int64_t version_ KOLO_GUARDED_BY(mutex_) = 0;
  int sent_ KOLO_GUARDED_BY(mutex_) = 0;  // nodes of the graph that the master has
  std::set<Use*> uses_ KOLO_GUARDED_BY(mutex_);
};

}  // namespace kolo::detail
