#include <kolo/core/cluster/worker/part_run.h>

#include <fmt/format.h>

#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/cluster/worker/net_ops.h>
#include <kolo/core/kernels/cancellable.h>

namespace kolo::detail {
namespace {

NetReceiver& receiver_at(Frame& frame, int position) {
  return dynamic_cast<NetReceiver&>(*frame.kernels[static_cast<std::size_t>(position)]);
}

// That a sender is lost, or does not know the session any more, is its own fault and not this task's: the
// master, which watches both, tells it.
std::exception_ptr as_the_senders(const std::exception_ptr& error, const std::string& sender) {
  if (is_consequence(error)) return error;
  const auto as_consequence = [&](Code code, const std::exception& why) {
    return std::make_exception_ptr(
        ConsequenceError(code, fmt::format("nothing comes from {}: {}", sender, why.what())));
  };
  try {
    std::rethrow_exception(error);
  } catch (const UnavailableError& lost) {
    return as_consequence(Code::unavailable, lost);
  } catch (const AbortedError& unknown) {
    return as_consequence(Code::aborted, unknown);
  } catch (...) {
    return error;
  }
}

}  // namespace

// What one task sends, on its way into the kernels of a frame. What comes after the run finds nobody.
class PartRun::Incoming final : public TensorReceiver {
 public:
  Incoming(std::string sender, std::vector<NetReceiver*> kernels, StepCancellation& cancellation)
      : sender_(std::move(sender)), kernels_(std::move(kernels)), cancellation_(cancellation) {}

  Tensor memory_for(std::size_t key, DType dtype, const Shape& shape) override {
    MutexLock lock(mutex_);
    if (detached_) throw ConsequenceError(Code::cancelled, "the step is over");
    return kernels_.at(key)->memory_for(dtype, shape);
  }
  void arrived(std::size_t key, Tensor value, bool dead) override {
    MutexLock lock(mutex_);
    if (!detached_) kernels_.at(key)->arrived(std::move(value), dead);
  }
  void ended(std::exception_ptr error) override {
    MutexLock lock(mutex_);
    if (!detached_ && error) cancellation_.cancel(as_the_senders(error, sender_));
  }
  void detach() {
    MutexLock lock(mutex_);
    detached_ = true;
  }

 private:
  Mutex mutex_;
  const std::string sender_;
  const std::vector<NetReceiver*> kernels_;
  StepCancellation& cancellation_;
  bool detached_ KOLO_GUARDED_BY(mutex_) = false;
};

class PartRun::FrameInUse {
 public:
  explicit FrameInUse(PartRun& run) : run_(run), frame_(run.part_->plan().take_frame()) {}
  ~FrameInUse() {
    run_.show(nullptr);
    run_.part_->plan().give_back(std::move(frame_));
  }
  FrameInUse(const FrameInUse&) = delete;
  FrameInUse& operator=(const FrameInUse&) = delete;
  Frame& operator*() { return *frame_; }

 private:
  PartRun& run_;
  std::unique_ptr<Frame> frame_;
};

PartResult PartRun::run(const RunPartRequest& request, StepOptions options) {
  check_feeds(request);
  Plan& plan = part_->plan();
  FrameInUse in_use(*this);
  Frame& frame = *in_use;
  plan.bind_feeds(frame, [&](int i) -> const Tensor& { return request.feeds[static_cast<std::size_t>(i)]; });
  bind(frame);
  show(&frame);

  PartResult result;
  const bool traced = request.trace_level != TraceLevel::no_trace;
  options.trace = traced ? &result.metadata.step_stats : nullptr;
  options.nodes_left = &nodes_left_;
  options.busy_threads = &busy_threads_;
  try {
    open_streams(request, frame, *options.cancellation);
    run_step(plan, frame, options);
  } catch (...) {
    close_streams(frame, true);
    throw;
  }
  close_streams(frame, false);
  if (request.metadata) {
    result.metadata.memory = memory_report(plan, frame);
    result.metadata.kernels = kernel_choices(plan);
  }
  result.fetches = take_fetches(frame);
  return result;
}

void PartRun::check_feeds(const RunPartRequest& request) const {
  if (request.feeds.size() != part_->num_feeds())
    throw InvalidArgumentError("{} values are fed; the part takes {}", request.feeds.size(),
                               part_->num_feeds());
  for (std::size_t i = 0; i < request.feeds.size(); ++i) {
    const Output& feed = part_->feed(i);
    const Tensor& value = request.feeds[i];
    if (!value || value.dtype() != feed.dtype() || value.shape() != feed.shape())
      throw InvalidArgumentError("what is fed for {} is not {} {}", feed.name(), tf_name(feed.dtype()),
                                 feed.shape());
  }
}

void PartRun::bind(Frame& frame) const {
  for (const int p : part_->senders())
    dynamic_cast<NetSender&>(*frame.kernels[static_cast<std::size_t>(p)]).bind(*exchange_);
  for (const auto& [task, values] : part_->received())
    for (const Part::Received& value : values) receiver_at(frame, value.position).prepare();
}

void PartRun::open_streams(const RunPartRequest& request, Frame& frame, StepCancellation& cancellation) {
  for (const auto& [task, values] : part_->received()) {
    if (peers_ == nullptr) throw InternalError("{} has no way to {}", receiver_, task);
    TensorsRequest wanted{
        .session = request.session, .step = request.step, .receiver = receiver_, .keys = {}};
    std::vector<NetReceiver*> kernels;
    for (const Part::Received& value : values) {
      wanted.keys.push_back(value.key);
      kernels.push_back(&receiver_at(frame, value.position));
    }
    incoming_.push_back(std::make_shared<Incoming>(task, std::move(kernels), cancellation));
    calls_.push_back(peers_->worker(task)->receive(wanted, incoming_.back()));
  }
}

void PartRun::close_streams(Frame& frame, bool failed) {
  for (const auto& incoming : incoming_) incoming->detach();
  if (!failed) return;
  for (const auto& call : calls_) call->cancel();
  // Where values are under way, they are written until those calls are over.
  for (const auto& [task, values] : part_->received())
    for (const Part::Received& value : values) receiver_at(frame, value.position).give_up_memory();
}

std::vector<Tensor> PartRun::take_fetches(Frame& frame) const {
  const Plan& plan = part_->plan();
  std::vector<Tensor> fetches;
  for (std::size_t i = 0; i < plan.fetches().size(); ++i) {
    if (plan.fetches()[i] < 0) continue;
    if (!plan.was_computed(frame, i)) throw InvalidArgumentError("Retval[{}] does not have value", i);
    Tensor& value = frame.values[static_cast<std::size_t>(plan.fetches()[i])];
    const int receiver = part_->receiver_of_fetch(i);
    fetches.push_back(receiver < 0 ? value.clone() : value);
  }
  // What a fetch has the next step must not overwrite.
  for (std::size_t i = 0; i < plan.fetches().size(); ++i)
    if (const int receiver = part_->receiver_of_fetch(i); receiver >= 0)
      receiver_at(frame, receiver).give_up_memory();
  return fetches;
}

void PartRun::show(Frame* frame) {
  MutexLock lock(mutex_);
  frame_ = frame;
}

void PartRun::append_waits(const std::vector<std::string>& workers, const TaskStatus::Wait& like,
                           std::vector<TaskStatus::Wait>& waits) {
  MutexLock lock(mutex_);
  if (frame_ == nullptr) return;
  const std::vector<PlanNode>& nodes = part_->plan().nodes();
  for (std::size_t p = 0; p < nodes.size(); ++p) {
    auto* const kernel = dynamic_cast<Cancellable*>(frame_->async_kernels[p]);
    if (kernel == nullptr) continue;
    TaskStatus::Wait wait = like;
    wait.what = kernel->waits_for(workers);
    if (wait.what.empty()) continue;
    wait.node = nodes[p].name;
    wait.op = nodes[p].op;
    wait.nodes_left = nodes_left_.load();
    wait.computes = busy_threads_.load() > 0;
    waits.push_back(std::move(wait));
  }
}

}  // namespace kolo::detail
