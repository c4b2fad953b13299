#include <kolo/core/cluster/worker/local_worker.h>
#include <kolo/core/cluster/worker/task_shards.h>

#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/cluster/worker/copy_sink.h>
#include <kolo/core/cluster/worker/local_worker_internal.h>

namespace kolo::detail {
namespace {

// A part on a thread of its own; ended by the cancellation that the thread shares.
class RunningPart final : public Call {
 public:
  void cancel() override {
    cancellation.cancel(std::make_exception_ptr(ConsequenceError(Code::cancelled, "the step was cancelled")));
  }
  StepCancellation cancellation;
};

}  // namespace

LocalWorker::LocalWorker(const LocalWorkerOptions& options) : impl_(std::make_shared<Impl>(options)) {}
LocalWorker::~LocalWorker() { impl_->shut_down(); }
void LocalWorker::set_peers(Peers& peers) { impl_->set_peers(peers); }
const std::string& LocalWorker::task() const { return impl_->task(); }

TaskStatus LocalWorker::status(const Deadline&) { return impl_->status(); }
void LocalWorker::create_session(const WorkerSessionRequest& request, const Deadline&) {
  impl_->add_session(request);
}
void LocalWorker::delete_session(const std::string& session, const Deadline&) {
  impl_->remove_session(session);
}

std::uint64_t LocalWorker::register_part(const PartRequest& request, const Deadline&) {
  return impl_->session(request.session)->add_part(request);
}
void LocalWorker::deregister_part(const std::string& session, std::uint64_t part, const Deadline&) {
  impl_->session(session)->remove_part(part);
}

std::shared_ptr<Call> LocalWorker::run_part(const RunPartRequest& request, const Deadline& deadline,
                                            std::function<void(std::exception_ptr, PartResult)> done) {
  auto call = std::make_shared<RunningPart>();
  Impl::Admitted admitted;
  try {
    admitted = impl_->admit(request);
  } catch (...) {
    done(std::current_exception(), {});
    return call;
  }
  // Not by owning the worker, whose end waits for this thread.
  impl_->threads().run(
      [impl = impl_.get(), call, admitted = std::move(admitted), request, deadline, done = std::move(done)] {
        PartResult result;
        std::exception_ptr error;
        try {
          result = impl->run(admitted, request, deadline, call->cancellation);
        } catch (...) {
          error = std::current_exception();
        }
        done(error, std::move(result));
      });
  return call;
}

PartResult LocalWorker::run_part_here(const RunPartRequest& request, const Deadline& deadline,
                                      StepCancellation& cancellation) {
  return impl_->run(impl_->admit(request), request, deadline, cancellation);
}

std::shared_ptr<Call> LocalWorker::receive(const TensorsRequest& request,
                                           std::shared_ptr<TensorReceiver> receiver) {
  return serve(request, make_copy_sink(std::move(receiver)));
}

std::shared_ptr<Call> LocalWorker::serve(const TensorsRequest& request, std::shared_ptr<TensorSink> sink) {
  std::shared_ptr<StepExchange> exchange;
  try {
    const auto session = impl_->session(request.session);
    impl_->check_keys(request.keys);
    exchange = session->exchange(request.step);
  } catch (...) {
    sink->end(std::current_exception());
    return std::make_shared<NoCall>();
  }
  return exchange->ask(request.keys, std::move(sink));
}

void LocalWorker::cleanup_containers(const std::vector<std::string>& containers, const Deadline&) {
  impl_->drop(containers);
}

void LocalWorker::get_variables(const std::string& session, const std::vector<VariableKey>& keys,
                                const std::function<void(std::size_t, Tensor)>& on_value, const Deadline&) {
  const auto held = impl_->session(session);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto variable = held->variables().find(keys[i]);
    on_value(i, variable ? copy_of(*variable) : Tensor());
  }
}

void LocalWorker::set_variables(const std::string& session, const std::vector<VariableKey>& keys,
                                const std::function<Tensor(std::size_t)>& value, const Deadline&) {
  const auto held = impl_->session(session);
  const TaskState state = impl_->state();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Tensor given = value(i);
    auto variable = held->variables().find(keys[i]);
    // No step has needed it yet: where its graph wants it is known when one does.
    if (!variable)
      variable = held->variables().find_or_make(keys[i], given.dtype(), given.shape(), *state.devices.host());
    set_value(*variable, given);
  }
}

std::vector<bool> LocalWorker::are_initialized(const std::string& session,
                                               const std::vector<VariableKey>& keys, const Deadline&) {
  const auto held = impl_->session(session);
  std::vector<bool> initialized;
  for (const VariableKey& key : keys) {
    const auto variable = held->variables().find(key);
    initialized.push_back(variable && variable->initialized.load());
  }
  return initialized;
}

WrittenShard LocalWorker::write_shard(const std::string& session, const ShardPlace& place,
                                      const std::vector<VariableKey>& keys,
                                      const std::vector<SavedVariable>& variables, const Deadline&) {
  const auto held = impl_->session(session);
  check_same_folder(place, impl_->task());
  return variables.empty() ? WrittenShard() : detail::write_shard(held->variables(), place, keys, variables);
}

void LocalWorker::read_shard(const std::string& session, const std::vector<VariableKey>& keys,
                             const std::vector<SavedVariable>& variables, const Deadline&) {
  const auto held = impl_->session(session);
  detail::read_shard(held->variables(), keys, variables, *impl_->state().devices.host(), impl_->task());
}

std::map<std::string, std::uint64_t> LocalWorker::random_positions(const std::string& session,
                                                                   const Deadline&) {
  return impl_->session(session)->random_positions();
}

void LocalWorker::set_random_positions(const std::string& session,
                                       const std::map<std::string, std::uint64_t>& positions,
                                       const Deadline&) {
  impl_->session(session)->set_random_positions(positions);
}

std::shared_ptr<Call> LocalWorker::watch(
    std::function<void(const TaskStatus*, std::exception_ptr)> on_change) {
  return impl_->add_watch(std::move(on_change));
}

void LocalWorker::check_session(const std::string& session) const { impl_->session(session); }

void LocalWorker::close_sessions_of(const TaskProcess& master, std::chrono::seconds gone) {
  const std::vector<std::string> handles = impl_->sessions_of(master, /*others=*/false);
  if (handles.empty()) return;
  log_warning("Closing {} sessions of {}: it has been gone for {} s", handles.size(), master.task,
              gone.count());
  for (const std::string& handle : handles) impl_->remove_session(handle);
}

void LocalWorker::close_sessions_before(const TaskProcess& master) {
  const std::vector<std::string> handles = impl_->sessions_of(master, /*others=*/true);
  if (handles.empty()) return;
  log_warning("Closing {} sessions of {}: it has been restarted", handles.size(), master.task);
  for (const std::string& handle : handles) impl_->remove_session(handle);
}

void LocalWorker::shutdown() { impl_->shut_down(); }

}  // namespace kolo::detail
