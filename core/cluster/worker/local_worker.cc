#include <kolo/core/cluster/worker/local_worker.h>
#include <kolo/core/cluster/worker/task_shards.h>

#include <chrono>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/cluster/worker/copy_sink.h>
#include <kolo/core/cluster/worker/local_worker_internal.h>

#include <kolo/core/cluster/rpc/shard_messages_internal.h>

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

// The rows of WorkerCalls. Messages come from the wire: what they hold is checked here, but for the handle of
// a session, which the service has checked.
struct LocalWorker::Answers {
  Impl& impl;

  def::TaskStatusDef operator()(GetStatus, const auto&, const Deadline&) const {
    return to_def(impl.status());
  }
  def::Empty operator()(CreateWorkerSession, const auto& request, const Deadline& deadline) const {
    impl.add_session({.session = request.session(),
                      .master = checked_name(request.master(), "task"),
                      .config = from_def(request.config()),
                      .master_incarnation = request.master_incarnation()});
    end_if_given_up(deadline, [&] { impl.remove_session(request.session()); });
    return {};
  }
  def::Empty operator()(DeleteWorkerSession, const auto& request, const Deadline&) const {
    impl.remove_session(request.session());
    return {};
  }
  def::RegisterGraphResponseDef operator()(RegisterGraph, const auto& request, GraphDef& graph,
                                           const Deadline& deadline) const {
    const auto session = impl.session(request.session());
    def::RegisterGraphResponseDef answer;
    answer.set_part(session->add_part({.graph = std::move(graph),
                                       .feeds = checked_names(request.feeds(), "feed's name"),
                                       .fetches = checked_names(request.fetches(), "fetch's name"),
                                       .targets = checked_names(request.targets(), "target's name")}));
    end_if_given_up(deadline, [&] { session->remove_part(answer.part()); });
    return answer;
  }
  def::Empty operator()(DeregisterGraph, const auto& request, const Deadline&) const {
    impl.session(request.session())->remove_part(request.part());
    return {};
  }
  def::Empty operator()(CleanupAll, const auto& request, const Deadline&) const {
    impl.drop(checked_names(request.containers(), "container's name"));
    return {};
  }
  def::InitializedResponseDef operator()(AreInitialized, const auto& request, const Deadline&) const {
    const auto session = impl.session(request.session());
    std::vector<bool> initialized;
    for (const VariableKey& key : keys_of(request)) {
      const auto variable = session->variables().find(key);
      initialized.push_back(variable && variable->initialized.load());
    }
    return to_def(initialized);
  }
  def::WriteShardResponseDef operator()(WriteShard, const auto& request, const Deadline&) const {
    const auto session = impl.session(request.session());
    const ShardPlace place = place_from(request);
    const std::vector<SavedVariable> variables = variables_from(request.variables());
    check_same_folder(place, impl.task());
    if (variables.empty()) return {};
    return to_def(write_shard(session->variables(), place, keys_from(request.variables()), variables));
  }
  def::Empty operator()(ReadShard, const auto& request, const Deadline&) const {
    const auto session = impl.session(request.session());
    read_shard(session->variables(), keys_from(request.variables()), variables_from(request.variables()),
               *impl.state().devices.host(), impl.task());
    return {};
  }
  def::RandomPositionsDef operator()(RandomPositions, const auto& request, const Deadline&) const {
    return to_def("", impl.session(request.session())->random_positions());
  }
  def::Empty operator()(SetRandomPositions, const auto& request, const Deadline&) const {
    impl.session(request.session())->set_random_positions(positions_from(request));
    return {};
  }

 private:
  // A master that has given up knows nothing of what it was given.
  template <typename Undo>
  static void end_if_given_up(const Deadline& deadline, const Undo& undo) {
    if (!deadline.stop().stop_requested()) return;
    undo();
    throw CancelledError("the call was cancelled");
  }
};

void LocalWorker::on_call(std::string_view method, const Message& request, GraphDef* graph, Message& answer,
                          const Deadline& deadline) {
  answer_row(Answers{*impl_}, method, request, graph, answer, deadline);
}

LocalWorker::LocalWorker(const LocalWorkerOptions& options) : impl_(std::make_shared<Impl>(options)) {}
LocalWorker::~LocalWorker() { impl_->shut_down(); }
void LocalWorker::set_peers(Peers& peers) { impl_->set_peers(peers); }
const std::string& LocalWorker::task() const { return impl_->task(); }

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
  // Not by owning the worker, whose end waits for the thread.
  auto run = [impl = impl_.get(), call, admitted](const RunPartRequest& asked, const Deadline& until,
                                                  const auto& tell) {
    PartResult result;
    std::exception_ptr error;
    const auto began = std::chrono::steady_clock::now();
    try {
      result = impl->run(admitted, asked, until, call->cancellation);
    } catch (...) {
      error = std::current_exception();
    }
    admitted.part->note_run(std::chrono::steady_clock::now() - began);
    tell(error, std::move(result));
  };
  // A quick one here: who brings the request may be a thread of the transport, which must not wait.
  if (admitted.part->is_quick(request.taken.size())) run(request, deadline, done);
  else
    impl_->threads().run(
        [run = std::move(run), request, deadline, done = std::move(done)] { run(request, deadline, done); });
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
