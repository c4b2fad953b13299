// Tasks of one process that reach each other directly, and a master that does the least: for tests of what
// tasks do for a step.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/cluster/worker/local_worker.h>
#include <kolo/core/cluster/worker/partition.h>
#include <kolo/core/passes/place.h>
#include <kolo/core/passes/prune.h>
#include <kolo/core/runtime/fetch.h>

#include "tests/core/cluster/typed_calls.h"

namespace kolo::detail {

inline const std::string kPs0 = task_name("ps", 0), kPs1 = task_name("ps", 1);
inline const std::string kWorker0 = task_name("worker", 0), kWorker1 = task_name("worker", 1);

class SmallCluster final : public Peers {
 public:
  explicit SmallCluster(const std::vector<std::string>& tasks, const SessionConfig& config = {}) {
    for (const std::string& task : tasks)
      workers_[task] = std::make_shared<LocalWorker>(LocalWorkerOptions{.task = task, .config = config});
    for (const auto& [task, worker] : workers_) worker->set_peers(*this);
  }

  std::vector<std::string> tasks() const override {
    std::vector<std::string> names;
    for (const auto& [task, worker] : workers_) names.push_back(task);
    return names;
  }
  std::shared_ptr<Worker> worker(const std::string& task) override { return workers_.at(task); }
  std::string address(const std::string&) const override { return "here"; }
  LocalWorker& operator[](const std::string& task) { return *workers_.at(task); }

 private:
  std::map<std::string, std::shared_ptr<LocalWorker>> workers_;
};

inline Placer placer_for(SmallCluster& cluster, const std::string& master) {
  std::vector<PlacerDevice> devices;
  for (const std::string& task : cluster.tasks())
    for (const DeviceAttributes& device : status_of(cluster[task]).devices)
      devices.push_back(PlacerDevice::named(device.name));
  return Placer(std::move(devices), registered_kernel_table(true),
                {.default_device = master + "/device:CPU:0"});
}

class SmallSession {
 public:
  SmallSession(SmallCluster& cluster, Graph& graph, std::string master, const std::string& handle,
               const SessionConfig& config = {})
      : cluster_(cluster),
        graph_(graph),
        master_(std::move(master)),
        handle_(handle),
        placer_(placer_for(cluster, master_)) {
    for (const std::string& task : cluster.tasks())
      create_session(cluster[task], {handle_, master_, config}, {});
  }
  ~SmallSession() { close(); }
  void close() {
    for (const std::string& task : cluster_.tasks()) delete_session(cluster_[task], handle_, {});
  }

  std::vector<StepPart> cut(const std::vector<Fetch>& fetches,
                            const std::vector<std::pair<Output, Tensor>>& feeds = {}) {
    StepSignature signature;
    for (const Fetch& fetch : fetches)
      signature.fetched.push_back(fetch.output), signature.targets.push_back(fetch.operation.node);
    for (const auto& [output, value] : feeds) signature.fed.push_back({output, value.shape()});
    StepGraph step = prune(signature);
    place(step, placer_, placements_);
    PartitionOptions options;
    options.master = master_;
    options.target = "grpc://here:1";
    options.client_task = master_;
    options.incarnation = [this](const std::string& device) {
      for (const auto& known : status_of(cluster_[task_of_device(device)]).devices)
        if (known.name == device) return known.incarnation;
      return std::uint64_t{0};
    };
    options.seed = graph_.seed();
    return partition(step, options);
  }

  /// Values of the fetches that are tensors.
  std::vector<Tensor> run(const std::vector<Fetch>& fetches,
                          const std::vector<std::pair<Output, Tensor>>& feeds = {}) {
    std::vector<StepPart> parts = cut(fetches, feeds);
    std::vector<std::pair<std::string, std::uint64_t>> registered;
    for (StepPart& part : parts)
      registered.emplace_back(part.task, register_part(cluster_[part.task], handle_,
                                                       {.graph = std::move(part.graph),
                                                        .feeds = std::move(part.feeds),
                                                        .fetches = std::move(part.fetches),
                                                        .targets = std::move(part.targets)},
                                                       {}));
    return run_registered(registered, feeds);
  }

  std::vector<Tensor> run_registered(const std::vector<std::pair<std::string, std::uint64_t>>& parts,
                                     const std::vector<std::pair<Output, Tensor>>& feeds = {}) {
    const std::int64_t step = ++steps_;
    struct Outcome {
      std::exception_ptr error;
      PartResult result;
    };
    std::vector<std::shared_ptr<Call>> calls(parts.size());
    std::vector<std::future<Outcome>> outcomes;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      RunPartRequest request;
      request.session = handle_;
      request.part = parts[i].second;
      request.step = step;
      request.request_id = ++requests_;
      if (parts[i].first == master_)
        for (const auto& [output, value] : feeds) request.feeds.push_back(value);
      auto outcome = std::make_shared<std::promise<Outcome>>();
      outcomes.push_back(outcome->get_future());
      calls[i] = cluster_[parts[i].first].run_part(
          request, std::chrono::steady_clock::now() + std::chrono::seconds(30),
          [outcome](std::exception_ptr error, PartResult result) {
            outcome->set_value({std::move(error), std::move(result)});
          });
    }
    // The parts of a failed step are cancelled by who sees it first, whichever it is.
    std::vector<Tensor> fetched;
    std::exception_ptr first, consequence;
    std::vector<bool> done(parts.size(), false);
    for (std::size_t left = parts.size(); left > 0;) {
      for (std::size_t i = 0; i < parts.size(); ++i) {
        if (done[i] || outcomes[i].wait_for(std::chrono::milliseconds(5)) != std::future_status::ready)
          continue;
        done[i] = true, --left;
        Outcome outcome = outcomes[i].get();
        if (parts[i].first == master_) fetched = std::move(outcome.result.fetches);
        if (!outcome.error) continue;
        auto& known = is_consequence(outcome.error) ? consequence : first;
        if (!known) known = outcome.error;
        for (const auto& call : calls) call->cancel();
      }
    }
    if (first || consequence) std::rethrow_exception(first ? first : consequence);
    return fetched;
  }

  const std::string& handle() const { return handle_; }

 private:
  SmallCluster& cluster_;
  Graph& graph_;
  const std::string master_, handle_;
  Placer placer_;
  Placements placements_;
  std::int64_t steps_ = 0;
  static inline std::atomic<std::uint64_t> requests_{0};
};

}  // namespace kolo::detail
