#include <kolo/core/runtime/callable.h>

#include <algorithm>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/runtime/session_impl.h>

namespace kolo {

class Callable::Impl {
 public:
  Impl(std::shared_ptr<Session::Impl> session, const CallableSignature& signature, const RunOptions& options)
      : session_(std::move(session)), options_(options) {
    const Graph& graph = session_->state().graph();
    // Checked without feeds: their values come with the calls.
    request_ = detail::checked_request(graph, signature.fetches, {}, signature.targets);
    for (const FeedTarget& target : signature.feeds) {
      const Output tensor = detail::checked_feed_target(graph, target);
      if (std::count(feeds_.begin(), feeds_.end(), tensor) > 0)
        throw InvalidArgumentError("Endpoint \"{}\" fed more than once.", tensor.name());
      for (const Fetch& fetch : request_.fetches)
        if (fetch.output == tensor) throw InvalidArgumentError("{} is both fed and fetched.", tensor.name());
      feeds_.push_back(tensor);
    }
  }

  void run(std::span<const Tensor> feeds, std::span<Tensor> results, RunMetadata* metadata) {
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
        if (results[i] && results[i].dtype() == computed.dtype() && results[i].shape() == computed.shape())
          results[i].copy_from(computed);
        else results[i] = computed.clone();
      }
    };
    run.step(*plan, feed, take, metadata);
  }

  std::size_t num_results() const { return request_.fetches.size(); }

 private:
  void check(std::span<const Tensor> feeds, std::span<Tensor> results) const {
    if (feeds.size() != feeds_.size())
      throw InvalidArgumentError("{} tensors are fed to a callable that was made for {} feeds", feeds.size(),
                                 feeds_.size());
    if (results.size() != num_results())
      throw InvalidArgumentError("there is room for {} results of a callable that was made for {} fetches",
                                 results.size(), num_results());
    for (std::size_t i = 0; i < feeds.size(); ++i) detail::check_feed_value(feeds_[i], feeds[i]);
  }

  // The one of the last call, if the shapes are still the same.
  std::shared_ptr<Plan> plan_for(std::span<const Tensor> feeds) {
    MutexLock lock(mutex_);
    const bool same =
        plan_ != nullptr &&
        std::equal(feeds.begin(), feeds.end(), shapes_.begin(), shapes_.end(),
                   [](const Tensor& value, const Shape& shape) { return value.shape() == shape; });
    if (same) return plan_;
    detail::StepRequest request = request_;
    for (std::size_t i = 0; i < feeds.size(); ++i) request.feeds.emplace_back(feeds_[i], feeds[i]);
    plan_ = session_->plan_for(request);
    shapes_.clear();
    for (const Tensor& value : feeds) shapes_.push_back(value.shape());
    return plan_;
  }

  const std::shared_ptr<Session::Impl> session_;
  const RunOptions options_;
  detail::StepRequest request_;  // without feeds
  Outputs feeds_;

  Mutex mutex_;
  std::shared_ptr<Plan> plan_ KOLO_GUARDED_BY(mutex_);  // of the last call
  std::vector<Shape> shapes_ KOLO_GUARDED_BY(mutex_);   // of its feeds
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
  return Callable(std::make_shared<Callable::Impl>(impl_, signature, options));
}

}  // namespace kolo
