#include <kolo/core/runtime/session.h>

#include <algorithm>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/runtime/session_impl.h>

namespace kolo {
namespace {

// For reset(): the sessions of this process that have not been destroyed. A session takes itself out before
// it goes.
template <typename Impl>
struct OpenSessions {
  Mutex mutex;
  std::vector<std::weak_ptr<Impl>> all KOLO_GUARDED_BY(mutex);

  static OpenSessions& instance() {
    static OpenSessions sessions;
    return sessions;
  }
  void add(const std::shared_ptr<Impl>& session) {
    MutexLock lock(mutex);
    std::erase_if(all, [](const std::weak_ptr<Impl>& known) { return known.expired(); });
    all.push_back(session);
  }
  std::vector<std::weak_ptr<Impl>> take() {
    MutexLock lock(mutex);
    return std::exchange(all, {});
  }
};

}  // namespace

Session::Session(Graph& graph, SessionConfig config)
    : impl_(std::make_shared<Impl>(graph, std::move(config))) {
  OpenSessions<Impl>::instance().add(impl_);
}
Session::~Session() { impl_->close(); }

std::vector<Tensor> Session::run_step(const std::vector<Fetch>& fetches, const Feeds& feeds,
                                      const Targets& targets, const RunOptions& options,
                                      RunMetadata* metadata) {
  Impl::Run run(*impl_, options);
  const detail::StepRequest request = detail::checked_request(graph(), fetches, feeds, targets);
  const std::shared_ptr<Plan> plan = impl_->plan_for(request);
  std::vector<Tensor> results;
  const auto feed = [&](int i) -> const Tensor& { return request.feeds[static_cast<std::size_t>(i)].second; };
  const auto take = [&](const Frame& frame) {
    detail::check_results(*plan, frame, request);
    for (std::size_t i = 0; i < fetches.size(); ++i) {
      const int value = plan->fetches()[i];
      results.push_back(value < 0 ? Tensor() : frame.values[static_cast<std::size_t>(value)].clone());
    }
  };
  run.step(*plan, feed, take, metadata);
  return results;
}

void Session::close() { impl_->close(); }

void Session::reset(const std::string& target, const std::vector<std::string>& /*containers*/) {
  if (!target.empty())
    throw UnimplementedError("reset of \"{}\": only the sessions of this process, \"\", can be reset",
                             target);
  for (const auto& weak : OpenSessions<Impl>::instance().take())
    if (const auto session = weak.lock()) session->close(true);
}

Graph& Session::graph() const { return impl_->state().graph(); }
const SessionConfig& Session::config() const { return impl_->state().config(); }
VariableStorage& Session::variable(const Node& storage) { return impl_->state().variable(storage); }
std::map<std::string, std::uint64_t> Session::random_positions() const {
  return impl_->state().random_positions();
}
void Session::set_random_positions(const std::map<std::string, std::uint64_t>& positions) {
  impl_->state().set_random_positions(positions);
}
std::shared_ptr<StepAgreement> Session::agreement(const Node& node) { return impl_->state().agreement(node); }
std::vector<std::shared_ptr<StepAgreement>> Session::agreements() { return impl_->state().agreements(); }
int Session::intra_op_threads() const { return impl_->state().intra_op_threads(); }
int Session::inter_op_threads() const { return impl_->pools().threads(); }

}  // namespace kolo
