// A simulated server: its sessions, of target "simulated://<name>", run in this process, and its variables
// outlive them.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/runtime/remote_session.h>
#include <kolo/core/runtime/session.h>
#include <kolo/core/runtime/session_variables.h>

namespace kolo::testing_support {

class SimulatedServer {
 public:
  /// That stand.
  static inline std::atomic<int> sessions_made = 0;
  static inline std::atomic<int> reads = 0;  // calls that ask for variables
  /// What the next session on it throws, once for each: a task that is away.
  static inline std::vector<std::string> refusals;

  static void clear() {
    kept().clear();
    refusals.clear();
    sessions_made = 0;
  }

 private:
  using Key = std::pair<std::string, const Graph*>;
  static std::map<Key, std::shared_ptr<Session>>& kept() {
    static std::map<Key, std::shared_ptr<Session>> sessions;
    return sessions;
  }

  static std::mutex& mutex() {
    static std::mutex of_kept;
    return of_kept;
  }

  class Client final : public detail::RemoteSession {
   public:
    Client(Graph& graph, const std::string& target, SessionConfig config) : config_(std::move(config)) {
      const std::lock_guard lock(mutex());
      if (!refusals.empty()) {
        const std::string refusal = refusals.back();
        refusals.pop_back();
        throw UnavailableError("{}", refusal);
      }
      auto& found = kept()[{target, &graph}];
      if (!found) found = std::make_shared<Session>(graph);
      server_ = found;
      ++sessions_made;
    }
    std::vector<Tensor> run(const detail::StepRequest& request, const RunOptions& options,
                            RunMetadata* metadata) override {
      return open().run(request.fetches, request.feeds, request.targets, options, metadata);
    }
    std::shared_ptr<Bound> bind(const detail::StepRequest& request,
                                const std::vector<Output>& feeds) override {
      return std::make_shared<Signature>(request, feeds);
    }
    std::vector<Tensor> run_bound(const Bound& bound, std::span<const Tensor> feeds,
                                  const RunOptions& options, RunMetadata* metadata) override {
      detail::StepRequest request = static_cast<const Signature&>(bound).request;
      for (std::size_t i = 0; i < feeds.size(); ++i)
        request.feeds.emplace_back(static_cast<const Signature&>(bound).feeds[i], feeds[i]);
      return run(request, options, metadata);
    }
    void close() override { server_.reset(); }
    void get_variables(const std::vector<std::string>& names,
                       const std::function<void(std::size_t, Tensor)>& on_value) override {
      ++reads;
      const std::vector<Tensor> values = open().get_variables(names);
      for (std::size_t i = 0; i < names.size(); ++i) on_value(i, values[i]);
    }
    void set_variables(const std::vector<std::string>& names,
                       const std::function<Tensor(std::size_t)>& value) override {
      for (std::size_t i = 0; i < names.size(); ++i) open().set_variables({{names[i], value(i)}});
    }
    std::vector<bool> are_initialized(const std::vector<std::string>& names) override {
      std::vector<bool> initialized;
      for (const Tensor& value : open().get_variables(names)) initialized.push_back(static_cast<bool>(value));
      return initialized;
    }
    std::vector<detail::WrittenShard> write_shards(const detail::ShardPlace&,
                                                   const std::vector<detail::SavedVariable>&) override {
      throw UnimplementedError("a simulated server has no files");
    }
    void read_shards(const std::vector<detail::SavedVariable>&) override {
      throw FailedPreconditionError("a simulated server has no files");
    }
    std::map<std::string, std::uint64_t> random_positions() override { return open().random_positions(); }
    void set_random_positions(const std::map<std::string, std::uint64_t>& positions) override {
      open().set_random_positions(positions);
    }
    std::vector<DeviceAttributes> list_devices() override { return open().list_devices(); }
    const SessionConfig& config() const override { return config_; }

   private:
    struct Signature final : Bound {
      Signature(detail::StepRequest of, std::vector<Output> fed)
          : request(std::move(of)), feeds(std::move(fed)) {}
      detail::StepRequest request;
      std::vector<Output> feeds;
    };
    Session& open() const {
      if (!server_) throw FailedPreconditionError("Attempted to use a closed Session.");
      return *server_;
    }
    const SessionConfig config_;
    std::shared_ptr<Session> server_;
  };

  static inline const detail::RegisterRemoteSessions registered{
      "simulated://",
      {[](Graph& graph, const std::string& target, const SessionConfig& config) {
         return std::make_unique<Client>(graph, target, config);
       },
       [](const std::string& target, const std::vector<std::string>&, const SessionConfig&) {
         std::erase_if(kept(), [&](const auto& entry) { return entry.first.first == target; });
       }}};
};

}  // namespace kolo::testing_support
