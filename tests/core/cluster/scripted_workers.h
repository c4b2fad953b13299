// Tasks that do what a test says, in place of those of a cluster.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/base/mutex.h>
#include <kolo/core/cluster/worker/peers.h>

#include "tests/core/cluster/fake_calls.h"
#include "tests/core/cluster/typed_calls.h"

namespace kolo::detail {

inline constexpr std::chrono::seconds kTestPatience{20};

/// A call that a test ends.
class ScriptedCall final : public Call {
 public:
  explicit ScriptedCall(std::function<void()> on_cancel) : on_cancel_(std::move(on_cancel)) {}
  void cancel() override { on_cancel_(); }

 private:
  std::function<void()> on_cancel_;
};

/// Any thread.
class ScriptedWorker final : public FakeCalls<Worker> {
 public:
  using Done = std::function<void(std::exception_ptr, PartResult)>;

  ScriptedWorker(std::string task, std::uint64_t incarnation) : task_(std::move(task)) {
    status_.task = task_;
    status_.version = "1";
    status_.cluster_fingerprint = 7;
    status_.devices = {{.name = task_ + "/device:CPU:0", .type = "CPU", .incarnation = incarnation}};
    answer_rows();
  }

  // What a test scripts and looks at.

  /// Answers a part; by default each fetch is the number of the step. Called on a thread of its own.
  std::function<void(const RunPartRequest&, const Done&)> on_run;
  std::function<void(const PartRequest&, const Deadline&)> on_register;
  std::function<void(const Deadline&)> on_status;
  /// Ends the receiver of values that this task is to send.
  std::function<void(TensorReceiver&)> on_receive;
  /// Also of a look for the token, which has no variables.
  std::function<void(const ShardPlace&, const std::vector<SavedVariable>&)> on_write_shard;
  /// A part that nobody answers ends when it is cancelled.
  static void never(const RunPartRequest& /*request*/, const Done& /*done*/) {}

  void go_down(const std::string& why = "connection closed") {
    std::vector<std::function<void(const TaskStatus*, std::exception_ptr)>> watches;
    std::vector<Done> parts;
    {
      MutexLock lock(mutex_);
      down_ = why;
      watches.swap(watches_);
      for (auto& [id, done] : running_) parts.push_back(std::move(done));
      running_.clear();
    }
    for (const auto& watch : watches) watch(nullptr, away(why));
    for (const auto& part : parts) part(away(why), {});
  }
  /// Ends its watches alone, as a transport that notices first.
  void lose_watches() {
    std::vector<std::function<void(const TaskStatus*, std::exception_ptr)>> watches;
    {
      MutexLock lock(mutex_);
      watches.swap(watches_);
    }
    for (const auto& watch : watches) watch(nullptr, away("no answer for 4 s"));
  }
  void come_up() {
    MutexLock lock(mutex_);
    down_.clear();
  }
  void restart(std::uint64_t incarnation) {
    go_down();
    {
      MutexLock lock(mutex_);
      for (DeviceAttributes& device : status_.devices) device.incarnation = incarnation;
    }
    come_up();
  }
  template <typename Change>
  void change_status(const Change& change) {
    MutexLock lock(mutex_);
    change(status_);
  }
  std::vector<std::string> said() {
    MutexLock lock(mutex_);
    return said_;
  }
  int count(const std::string& what) {
    const auto all = said();
    return static_cast<int>(
        std::count_if(all.begin(), all.end(), [&](const auto& line) { return line.starts_with(what); }));
  }
  /// Watches that stand.
  std::size_t watches() {
    MutexLock lock(mutex_);
    return watches_.size();
  }
  std::vector<RunPartRequest> runs() {
    MutexLock lock(mutex_);
    return runs_;
  }
  std::vector<PartRequest> parts() {
    MutexLock lock(mutex_);
    return parts_;
  }

  // Worker.

  std::shared_ptr<Call> run_part(const RunPartRequest& request, const Deadline& /*deadline*/,
                                 Done done) override {
    int id = 0;
    std::size_t fetches = 0;
    {
      MutexLock lock(mutex_);
      check_up();
      runs_.push_back(request);
      id = static_cast<int>(runs_.size());
      running_[id] = std::move(done);
      fetches = parts_.at(request.part - 1).fetches.size();
    }
    const auto answer = [this, id](std::exception_ptr error, PartResult result) {
      end(id, std::move(error), std::move(result));
    };
    threads_.emplace_back([this, request, answer, fetches] {
      if (on_run) return on_run(request, answer);
      PartResult result;
      for (std::size_t i = 0; i < fetches; ++i)
        result.fetches.push_back(Tensor::scalar(static_cast<float>(request.step)));
      answer(nullptr, std::move(result));
    });
    return std::make_shared<ScriptedCall>([this, id] {
      say("cancel");
      end(id, std::make_exception_ptr(ConsequenceError(Code::cancelled, "cancelled")), {});
    });
  }
  std::shared_ptr<Call> receive(const TensorsRequest& /*request*/,
                                std::shared_ptr<TensorReceiver> receiver) override {
    if (!on_receive) throw UnimplementedError("scripted");
    on_receive(*receiver);
    return std::make_shared<ScriptedCall>([] {});
  }
  void get_variables(const std::string& /*session*/, const std::vector<VariableKey>& keys,
                     const std::function<void(std::size_t, Tensor)>& on_value,
                     const Deadline& /*deadline*/) override {
    say("get");
    for (std::size_t i = 0; i < keys.size(); ++i) on_value(i, value_of(keys[i]));
  }
  void set_variables(const std::string& /*session*/, const std::vector<VariableKey>& keys,
                     const std::function<Tensor(std::size_t)>& value, const Deadline& /*deadline*/) override {
    say("set");
    for (std::size_t i = 0; i < keys.size(); ++i) {
      Tensor given = value(i);
      MutexLock lock(mutex_);
      variables_[keys[i]] = std::move(given);
    }
  }
  std::shared_ptr<Call> watch(std::function<void(const TaskStatus*, std::exception_ptr)> on_change) override {
    TaskStatus now;
    {
      MutexLock lock(mutex_);
      check_up();
      now = status_;
    }
    on_change(&now, nullptr);
    MutexLock lock(mutex_);
    watches_.push_back(std::move(on_change));
    const std::size_t index = watches_.size() - 1;
    return std::make_shared<ScriptedCall>([this, index] {
      std::function<void(const TaskStatus*, std::exception_ptr)> ended;
      {
        MutexLock guard(mutex_);
        if (index < watches_.size()) ended = std::exchange(watches_[index], {});
      }
      if (ended) ended(nullptr, std::make_exception_ptr(CancelledError("cancelled")));
    });
  }

 private:
  void answer_rows() {
    on<GetStatus>([this](const auto&, const Deadline& deadline) {
      if (on_status) on_status(deadline);
      MutexLock lock(mutex_);
      check_up();
      return to_def(status_);
    });
    on<CreateWorkerSession>(
        [this](const auto& request, const Deadline&) { say("create " + request.session()); });
    on<DeleteWorkerSession>(
        [this](const auto& request, const Deadline&) { say("delete " + request.session()); });
    on<RegisterGraph>([this](const auto& request, const GraphDef& graph, const Deadline& deadline) {
      say("register");
      const PartRequest part{graph, checked_names(request.feeds(), "feed"),
                             checked_names(request.fetches(), "fetch"),
                             checked_names(request.targets(), "target")};
      if (on_register) on_register(part, deadline);
      MutexLock lock(mutex_);
      parts_.push_back(part);
      def::RegisterGraphResponseDef answer;
      answer.set_part(parts_.size());
      return answer;
    });
    on<DeregisterGraph>([this](const auto& request, const Deadline&) {
      say("deregister " + std::to_string(request.part()));
    });
    on<CleanupAll>([this](const auto& request, const Deadline&) {
      std::string names = "containers";
      for (const std::string& name : request.containers()) names += " " + name;
      say(names);
    });
    on<AreInitialized>([this](const auto& request, const Deadline&) {
      say("initialized");
      std::vector<bool> result;
      for (const VariableKey& key : keys_of(request)) result.push_back(static_cast<bool>(value_of(key)));
      return to_def(result);
    });
    on<WriteShard>([this](const auto& request, const Deadline&) {
      const ShardPlace place = place_from(request);
      const std::vector<SavedVariable> variables = variables_from(request.variables());
      say(variables.empty()
              ? "look for the token"
              : "write shard " + std::to_string(place.shard) + " of " + std::to_string(place.shards));
      if (on_write_shard) on_write_shard(place, variables);
      return to_def(WrittenShard{
          .sums = std::vector<std::uint32_t>(variables.size(), 1), .file_bytes = 2, .header_crc32c = 3});
    });
    on<ReadShard>([this](const auto& request, const Deadline&) {
      say("read " + std::to_string(request.variables_size()));
    });
    on<RandomPositions>([this](const auto&, const Deadline&) {
      say("ask positions");
      MutexLock lock(mutex_);
      return to_def("", positions_);
    });
    on<SetRandomPositions>([this](const auto& request, const Deadline&) {
      say("set positions");
      MutexLock lock(mutex_);
      positions_ = positions_from(request);
    });
  }
  static std::exception_ptr away(const std::string& why) {
    return std::make_exception_ptr(UnavailableError("{}", why));
  }
  void check_up() KOLO_REQUIRES(mutex_) {
    if (!down_.empty()) throw UnavailableError("{}", down_);
  }
  void say(const std::string& what) KOLO_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (what != "cancel") check_up();
    said_.push_back(what);
  }
  Tensor value_of(const VariableKey& key) KOLO_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return variables_[key];
  }
  void end(int id, std::exception_ptr error, PartResult result) KOLO_EXCLUDES(mutex_) {
    Done done;
    {
      MutexLock lock(mutex_);
      const auto found = running_.find(id);
      if (found == running_.end()) return;
      done = std::move(found->second);
      running_.erase(found);
    }
    done(std::move(error), std::move(result));
  }

  const std::string task_;
  Mutex mutex_;
  TaskStatus status_ KOLO_GUARDED_BY(mutex_);
  std::map<std::string, std::uint64_t> positions_ KOLO_GUARDED_BY(mutex_);
  std::string down_ KOLO_GUARDED_BY(mutex_);
  std::vector<std::string> said_ KOLO_GUARDED_BY(mutex_);
  std::vector<PartRequest> parts_ KOLO_GUARDED_BY(mutex_);
  std::vector<RunPartRequest> runs_ KOLO_GUARDED_BY(mutex_);
  std::map<int, Done> running_ KOLO_GUARDED_BY(mutex_);
  std::map<VariableKey, Tensor> variables_ KOLO_GUARDED_BY(mutex_);
  std::vector<std::function<void(const TaskStatus*, std::exception_ptr)>> watches_ KOLO_GUARDED_BY(mutex_);
  std::vector<std::jthread> threads_;
};

class ScriptedPeers final : public Peers {
 public:
  explicit ScriptedPeers(const std::vector<std::string>& tasks) {
    std::uint64_t incarnation = 100;
    for (const std::string& task : tasks)
      workers_[task] = std::make_shared<ScriptedWorker>(task, ++incarnation);
  }
  ScriptedWorker& at(const std::string& task) { return *workers_.at(task); }

  std::vector<std::string> tasks() const override {
    std::vector<std::string> names;
    for (const auto& [task, worker] : workers_) names.push_back(task);
    return names;
  }
  std::shared_ptr<Worker> worker(const std::string& task) override { return workers_.at(task); }
  std::string address(const std::string& task) const override {
    return "host:" + task.substr(task.size() - 1);
  }

 private:
  std::map<std::string, std::shared_ptr<ScriptedWorker>> workers_;
};

}  // namespace kolo::detail
