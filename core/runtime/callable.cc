#include <algorithm>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/runtime/remote_session.h>
#include <kolo/core/runtime/session.h>
#include <kolo/core/runtime/session_internal.h>

namespace kolo {

/// Any thread.
class Callable::Impl {
 public:
  virtual ~Impl() = default;
  virtual void run(std::span<const Tensor> feeds, std::span<Tensor> results, RunMetadata* metadata) = 0;
  std::size_t num_results() const { return request_.fetches.size(); }

 protected:
  // Checked without feeds: their values come with the calls.
  Impl(const Graph& graph, const CallableSignature& signature, const RunOptions& options)
      : options_(options),
        request_(detail::checked_request(graph, signature.fetches, {}, signature.targets)) {
    for (const FeedTarget& target : signature.feeds) {
      const Output tensor = detail::checked_feed_target(graph, target);
      if (std::count(feeds_.begin(), feeds_.end(), tensor) > 0)
        throw InvalidArgumentError("Endpoint \"{}\" fed more than once.", tensor.name());
      for (const Fetch& fetch : request_.fetches)
        if (fetch.output == tensor) throw InvalidArgumentError("{} is both fed and fetched.", tensor.name());
      feeds_.push_back(tensor);
    }
  }

  void check(std::span<const Tensor> feeds, std::span<Tensor> results) const {
    if (feeds.size() != feeds_.size())
      throw InvalidArgumentError("{} tensors are fed to a callable that was made for {} feeds", feeds.size(),
                                 feeds_.size());
    if (results.size() != num_results())
      throw InvalidArgumentError("there is room for {} results of a callable that was made for {} fetches",
                                 results.size(), num_results());
    for (std::size_t i = 0; i < feeds.size(); ++i) detail::check_feed_value(feeds_[i], feeds[i]);
  }

  static bool has_place_for(const Tensor& result, const Tensor& value) {
    return result && result.dtype() == value.dtype() && result.shape() == value.shape();
  }

  const RunOptions options_;
  const detail::StepRequest request_;  // without feeds
  Outputs feeds_;
};

class Callable::Local final : public Impl {
 public:
  Local(std::shared_ptr<Session::Impl> session, const CallableSignature& signature, const RunOptions& options)
      : Impl(session->state().graph(), signature, options), session_(std::move(session)) {}

  void run(std::span<const Tensor> feeds, std::span<Tensor> results, RunMetadata* metadata) override {
    Session::Impl::Run run(*session_, options_);
    check(feeds, results);
    const std::shared_ptr<Plan> plan = plan_for(feeds);
    const auto feed = [&](int i) -> const Tensor& { return feeds[static_cast<std::size_t>(i)]; };
    const auto take = [&](const Frame& frame) {
      detail::check_results(*plan, frame, request_);
      for (std::size_t i = 0; i < results.size(); ++i) {
        const int value = plan->fetches()[i];
        if (value < 0) continue;
        const Tensor& computed = frame.values[static_cast<std::size_t>(value)];
        if (has_place_for(results[i], computed)) results[i].copy_from(computed);
        else results[i] = computed.clone();
      }
    };
    run.step(*plan, feed, take, metadata);
  }

 private:
  // The one of the last call, if shapes and places are still the same.
  std::shared_ptr<Plan> plan_for(std::span<const Tensor> feeds) {
    MutexLock lock(mutex_);
    const DeviceSet& devices = session_->state().devices();
    const bool same = plan_ != nullptr && std::equal(feeds.begin(), feeds.end(), fed_.begin(), fed_.end(),
                                                     [&](const Tensor& value, const auto& before) {
                                                       return value.shape() == before.first &&
                                                              devices.holder_of(value) == before.second;
                                                     });
    if (same) return plan_;
    detail::StepRequest request = request_;
    for (std::size_t i = 0; i < feeds.size(); ++i) request.feeds.emplace_back(feeds_[i], feeds[i]);
    plan_ = session_->plan_for(request);
    fed_.clear();
    for (const Tensor& value : feeds) fed_.emplace_back(value.shape(), devices.holder_of(value));
    return plan_;
  }

  const std::shared_ptr<Session::Impl> session_;

  Mutex mutex_;
  std::shared_ptr<Plan> plan_ KOLO_GUARDED_BY(mutex_);  // of the last call
  // Shapes of its feeds, and on which GPUs they lie.
  std::vector<std::pair<Shape, const Device*>> fed_ KOLO_GUARDED_BY(mutex_);
};

class Callable::Remote final : public Impl {
 public:
  Remote(std::shared_ptr<detail::RemoteSession> session, const Graph& graph,
         const CallableSignature& signature, const RunOptions& options)
      : Impl(graph, signature, options),
        session_(std::move(session)),
        bound_(session_->bind(request_, feeds_)) {}

  void run(std::span<const Tensor> feeds, std::span<Tensor> results, RunMetadata* metadata) override {
    check(feeds, results);
    std::vector<Tensor> values = session_->run_bound(*bound_, feeds, options_, metadata);
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!values[i]) continue;
      if (has_place_for(results[i], values[i])) results[i].copy_from(values[i]);
      else results[i] = std::move(values[i]);
    }
  }

 private:
  const std::shared_ptr<detail::RemoteSession> session_;
  const std::shared_ptr<detail::RemoteSession::Bound> bound_;
};

void Callable::run(std::span<const Tensor> feeds, std::span<Tensor> results, RunMetadata* metadata) const {
  impl_->run(feeds, results, metadata);
}

std::vector<Tensor> Callable::operator()(const std::vector<Tensor>& feeds) const {
  std::vector<Tensor> results(impl_->num_results());
  impl_->run(feeds, results, nullptr);
  return results;
}

Callable Session::make_callable(const CallableSignature& signature, const RunOptions& options) {
  if (remote_) return Callable(std::make_shared<Callable::Remote>(remote_, graph(), signature, options));
  return Callable(std::make_shared<Callable::Local>(impl_, signature, options));
}

}  // namespace kolo
