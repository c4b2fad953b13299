#include <kolo/core/runtime/stream_kernels.h>

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include <kolo/core/base/env.h>
#include <kolo/core/base/error.h>
#include <kolo/core/kernels/cancellable.h>
#include <kolo/core/kernels/deferred_check.h>
#include <kolo/core/kernels/parallel.h>
#include <kolo/core/runtime/node_error.h>
#include <kolo/core/runtime/node_log.h>

namespace kolo {
namespace {

using Clock = std::chrono::steady_clock;

// One run at a time, as of every kernel.
class QueuedKernel final : public Kernel, public StreamKernel {
 public:
  QueuedKernel(std::unique_ptr<Kernel> kernel, StreamPlace place)
      : StreamKernel(std::move(place)),
        kernel_(std::move(kernel)),
        numbered_(dynamic_cast<NumberedKernel*>(kernel_.get())) {
    times_.only_put_there = place_.stream.native() != nullptr;
    if (auto* const found = dynamic_cast<DeferredCheck*>(kernel_.get()))
      place_.errors->watch([this, found] { with_name([found] { found->check(); }); });
  }

  void compute(KernelContext& context) override {
    if (log_) log_->begin();
    Stream& stream = place_.stream;
    context_ = &context;
    context.native_stream = stream.native();
    stream.wait_for(before_, passed_);
    if (log_) log_->use(stream.name(), context);
    stream.enqueue([this] { run(); });
    record_end();
    if (log_) log_->end();
  }
  void put(KernelContext& context, void* native) override {
    context_ = &context;
    context.native_stream = native;
    if (native == nullptr) return run();
    with_name([this] {
      if (numbered_ != nullptr) numbered_->compute_by_number(*context_);
      else kernel_->compute(*context_);
    });
  }
  NumberedKernel* numbered() override { return numbered_; }
  void put_with(KernelContext& context, void* native, std::uint64_t number) override {
    context_ = &context;
    context.native_stream = native;
    with_name([&] { numbered_->compute_with(context, number); });
  }
  const KernelTimes& times() const { return times_; }

 private:
  void run() {
    if (place_.errors->noted()) return;
    set_intra_op_threads(place_.threads);
    times_.start = Clock::now();
    try {
      with_name([this] { kernel_->compute(*context_); });
    } catch (...) {
      place_.errors->note(std::current_exception());
    }
    times_.end = Clock::now();
  }

  template <typename Work>
  void with_name(const Work& work) const {
    try {
      work();
    } catch (...) {
      const StepNode& node = place_.node;
      std::rethrow_exception(
          described(std::current_exception(), node.name, node.schema->name(), node.device));
    }
  }

  const std::unique_ptr<Kernel> kernel_;
  NumberedKernel* const numbered_;
  KernelContext* context_ = nullptr;
  KernelTimes times_;
};

class WaitedKernel final : public AsyncKernel, public StreamKernel {
 public:
  WaitedKernel(std::unique_ptr<Kernel> kernel, StreamPlace place)
      : StreamKernel(std::move(place)), kernel_(std::move(kernel)) {}

  void start(KernelContext& context, Completion done) override {
    if (log_) log_->begin_asynchronous();
    context_ = &context;
    done_ = done;
    place_.stream.wait_for(before_, passed_);
    place_.stream.enqueue([this] { run(); });
  }

 private:
  void run() {
    set_intra_op_threads(place_.threads);
    std::exception_ptr error = place_.errors->first();
    if (log_) log_->log.begin(log_->token + "/start");
    try {
      if (!error) kernel_->compute(*context_);
    } catch (...) {
      error = std::current_exception();
    }
    if (log_) log_end();
    // A copy: once it is called, the next step may have started this kernel again.
    const Completion done = done_;
    done(std::move(error));
  }

  // What it has written was known to nobody before; the stream's thread tells of its end.
  void log_end() const {
    const std::string& stream = place_.stream.name();
    log_->use(stream, *context_);
    log_->log.record(stream, log_->token);
    log_->log.wait(OrderLog::this_thread(), log_->token);
    log_->end();
  }

  const std::unique_ptr<Kernel> kernel_;
  KernelContext* context_ = nullptr;
  Completion done_;
};

class ToldKernel final : public AsyncKernel, public Cancellable {
 public:
  ToldKernel(std::unique_ptr<Kernel> kernel, std::shared_ptr<StreamErrors> errors, Stream& fence)
      : kernel_(std::move(kernel)), errors_(std::move(errors)), fence_(fence) {}

  void start(KernelContext& context, Completion done) override {
    if (auto error = errors_->first()) return done(std::move(error));
    done_ = done;
    if (passed_) fence_.record(*passed_);
    static_cast<AsyncKernel&>(*kernel_).start(context, {&ToldKernel::end, this, 0});
  }
  void cancel() override {
    if (auto* const waiting = dynamic_cast<Cancellable*>(kernel_.get())) waiting->cancel();
  }
  StreamEvent& passed() {
    if (!passed_) passed_ = fence_.make_event();
    return *passed_;
  }

 private:
  static void end(void* kernel, int /*node*/, std::exception_ptr error) {
    const ToldKernel& told = *static_cast<ToldKernel*>(kernel);
    const Completion done = told.done_;
    done(error ? std::move(error) : told.errors_->first());
  }

  const std::unique_ptr<Kernel> kernel_;
  const std::shared_ptr<StreamErrors> errors_;
  Stream& fence_;
  std::unique_ptr<StreamEvent> passed_;  // where another comes behind it
  Completion done_;
};

class SentKernel final : public AsyncKernel, public StreamKernel {
 public:
  SentKernel(std::unique_ptr<Kernel> kernel, StreamPlace place)
      : StreamKernel(std::move(place)), kernel_(std::move(kernel)) {}

  void start(KernelContext& context, Completion done) override {
    if (log_) log_->begin_asynchronous();
    context_ = &context;
    done_ = done;
    if (auto error = place_.errors->first()) return end(this, 0, std::move(error));
    place_.stream.wait_for(before_, passed_);
    static_cast<AsyncKernel&>(*kernel_).start(context, {&SentKernel::end, this, 0});
  }

 private:
  static void end(void* kernel, int /*node*/, std::exception_ptr error) {
    const SentKernel& sent = *static_cast<SentKernel*>(kernel);
    const Completion done = sent.done_;
    if (sent.log_) sent.log_->end_asynchronous(*sent.context_);
    done(error ? std::move(error) : sent.place_.errors->first());
  }

  const std::unique_ptr<Kernel> kernel_;
  KernelContext* context_ = nullptr;
  Completion done_;
};

// What remains of a wait when its caller has given up.
struct Ends {
  Mutex mutex;
  CondVar changed;
  std::size_t pending KOLO_GUARDED_BY(mutex) = 0;
  std::exception_ptr error KOLO_GUARDED_BY(mutex);

  void one_more(std::exception_ptr another) KOLO_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    if (!error) error = std::move(another);
    if (--pending == 0) changed.notify_all();
  }
};

// Of what a run has given a stream, for the order checker: the caller's wait at the run's end bears this
// name, whether it looks for the end or sleeps until then.
std::string step_token(const void* run, const Stream* stream) {
  return fmt::format("step:{}:{}", fmt::ptr(run), fmt::ptr(stream));
}

bool wait_until_all_are_done(std::span<Stream* const> streams, const std::function<bool()>& gives_up) {
  constexpr auto kAskedEvery = std::chrono::milliseconds(20);
  const auto ends = std::make_shared<Ends>();
  {
    MutexLock lock(ends->mutex);
    ends->pending = streams.size();
  }
  OrderLog* const log = OrderLog::active();
  const auto token_of = [&](Stream* stream) { return step_token(ends.get(), stream); };
  for (Stream* const stream : streams) {
    try {
      stream->when_done(
          [ends, log, token = log != nullptr ? token_of(stream) : ""](std::exception_ptr error) {
            if (log != nullptr) log->record(OrderLog::this_thread(), token);
            ends->one_more(std::move(error));
          });
    } catch (...) {
      ends->one_more(std::current_exception());
    }
  }
  MutexLock lock(ends->mutex);
  while (ends->pending > 0) {
    ends->changed.wait_until(ends->mutex, Clock::now() + kAskedEvery);
    if (ends->pending > 0 && gives_up()) return false;
  }
  if (log != nullptr)
    for (Stream* const stream : streams) log->wait(OrderLog::this_thread(), token_of(stream));
  if (ends->error) std::rethrow_exception(ends->error);
  return true;
}

}  // namespace

void StreamErrors::note(std::exception_ptr error) {
  MutexLock lock(mutex_);
  if (error_) return;
  error_ = std::move(error);
  if (told_) told_(error_);
}

void StreamErrors::watch(std::function<void()> check) {
  MutexLock lock(mutex_);
  checks_.push_back(std::move(check));
}

std::exception_ptr StreamErrors::noted() const {
  MutexLock lock(mutex_);
  return error_;
}

std::exception_ptr StreamErrors::first() {
  MutexLock lock(mutex_);
  if (!error_) ask();
  return error_;
}

std::exception_ptr StreamErrors::take() {
  MutexLock lock(mutex_);
  ask();
  return std::exchange(error_, nullptr);
}

// All of them: each forgets what it tells.
void StreamErrors::ask() {
  for (const auto& check : checks_) {
    try {
      check();
    } catch (...) {
      if (!error_) error_ = std::current_exception();
    }
  }
}

StreamErrorListener::StreamErrorListener(StreamErrors* errors, std::function<void(std::exception_ptr)> told)
    : errors_(errors) {
  if (errors_ == nullptr) return;
  MutexLock lock(errors_->mutex_);
  errors_->told_ = std::move(told);
}

StreamErrorListener::~StreamErrorListener() {
  if (errors_ == nullptr) return;
  MutexLock lock(errors_->mutex_);
  errors_->told_ = nullptr;
}

std::unique_ptr<Kernel> on_stream(std::unique_ptr<Kernel> kernel, StreamPlace place) {
  return std::make_unique<QueuedKernel>(std::move(kernel), std::move(place));
}

std::optional<KernelTimes> times_on_stream(const Kernel& kernel) {
  const auto* const queued = dynamic_cast<const QueuedKernel*>(&kernel);
  return queued != nullptr ? std::optional(queued->times()) : std::nullopt;
}

bool must_be_waited_for(const StepGraph& graph, const StepNode& node) {
  const OpSchema& schema = *node.schema;
  if (schema.is_branch_guard() || schema.is_branch_join()) return true;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const int input = static_cast<int>(i);
    if (schema.is_host_input(input) || schema.input_spec(input).initialized_by_op ||
        !graph.shape(node.inputs[i]).is_fully_known())
      return true;
  }
  for (std::size_t o = 0; o < node.dtypes.size(); ++o)
    if (schema.is_host_output(static_cast<int>(o), node.dtypes[o]) || !node.shapes[o].is_fully_known())
      return true;
  return false;
}

std::unique_ptr<Kernel> waited_on_stream(std::unique_ptr<Kernel> kernel, StreamPlace place) {
  return std::make_unique<WaitedKernel>(std::move(kernel), std::move(place));
}

void StreamKernel::comes_behind(StreamKernel& other) {
  if (!other.end_) other.end_ = other.place_.stream.make_event();
  before_.push_back(other.end_.get());
}

void StreamKernel::comes_behind_fence(Kernel& fence) {
  passed_.push_back(&static_cast<ToldKernel&>(fence).passed());
}

void StreamKernel::put(KernelContext& /*context*/, void* /*native*/) {
  throw InternalError("the work of node {} cannot be put on a stream by itself", node_name());
}

void StreamKernel::put_with(KernelContext& context, void* native, std::uint64_t /*number*/) {
  put(context, native);
}

void StreamKernel::record_end() {
  if (end_) place_.stream.record(*end_);
}

void StreamKernel::log_begin() const {
  if (log_) log_->begin();
}

void StreamKernel::log_use(const KernelContext& context) const {
  if (!log_) return;
  log_->begin();
  log_->use(place_.stream.name(), context);
  log_->end();
}

void StreamKernel::set_log(NodeLog log) { log_ = std::make_shared<const NodeLog>(std::move(log)); }

StreamKernel* stream_kernel(Kernel* kernel) { return dynamic_cast<StreamKernel*>(kernel); }

std::unique_ptr<Kernel> told_of_errors(std::unique_ptr<Kernel> kernel, std::shared_ptr<StreamErrors> errors,
                                       Stream& fence) {
  return std::make_unique<ToldKernel>(std::move(kernel), std::move(errors), fence);
}

std::unique_ptr<Kernel> sent_from_stream(std::unique_ptr<Kernel> kernel, StreamPlace place) {
  return std::make_unique<SentKernel>(std::move(kernel), std::move(place));
}

StreamEnds::StreamEnds(std::vector<Stream*> streams, std::vector<bool> is_joined)
    : streams_(std::move(streams)), is_joined_(std::move(is_joined)) {
  is_joined_.resize(streams_.size(), true);
  for (Stream* const stream : streams_) ends_.push_back(stream->make_event());
  for (std::size_t i = 1; i < ends_.size(); ++i) {
    others_.push_back(ends_[i].get());
    if (is_joined_[i]) joined_.push_back(ends_[i].get());
  }
}

void StreamEnds::join(bool all) {
  for (std::size_t i = 1; i < streams_.size(); ++i)
    if (all || is_joined_[i]) streams_[i]->record(*ends_[i]);
  streams_[0]->wait_for(all ? others_ : joined_);
  streams_[0]->record(*ends_[0]);
  if (OrderLog* const log = OrderLog::active())
    log->record(streams_[0]->name(), step_token(this, streams_[0]));
}

// About as long as it takes to go to sleep and be woken; soon it offers its core to others between two looks.
// What wait() returns; nothing where the time is over.
std::optional<bool> StreamEnds::look(const std::function<bool()>& gives_up) const {
  static const auto most = std::chrono::microseconds(env_int64("KOLO_GPU_SPIN_US", 10'000, 0, 1'000'000));
  const auto until = Clock::now() + most;
  constexpr int kLooksAtOnce = 200;
  for (int looks = 0; !streams_[0]->has_passed(*ends_[0]); ++looks) {
    if (Clock::now() >= until) return std::nullopt;
    if (looks < kLooksAtOnce) continue;
    if (gives_up()) return false;
    std::this_thread::yield();
  }
  return true;
}

bool StreamEnds::wait(const std::function<bool()>& gives_up, bool is_whole) {
  if (streams_.empty()) return true;
  std::size_t asked = 1;  // how many of the streams
  std::exception_ptr error;
  try {
    join(!is_whole);
    if (const auto ended = look(gives_up)) {
      OrderLog* const log = OrderLog::active();
      if (*ended && log != nullptr) log->wait(OrderLog::this_thread(), step_token(this, streams_[0]));
      return *ended;
    }
  } catch (...) {  // the others may go on all the same
    error = std::current_exception();
    asked = streams_.size();
  }
  const bool ended = wait_until_all_are_done({streams_.data(), asked}, gives_up);
  if (error) std::rethrow_exception(error);
  return ended;
}

}  // namespace kolo
