#include <utility>

#include <kolo/core/base/error.h>

#include <kolo/core/cluster/rpc/part_call_internal.h>

namespace kolo::detail {
namespace {

// As many as the part's graph says, which the caller has sent.
constexpr std::size_t kMostFetches = 65536;

}  // namespace

// What this task gives for the part, on its way.
class PartCall::Sink final : public TensorSink {
 public:
  explicit Sink(std::shared_ptr<PartCall> call) : call_(std::move(call)) {}
  void put(std::size_t key, const Tensor& value, bool dead, std::function<void()> released) override {
    // All others are on their way: with this one this end is closed. Of two that come at once neither knows,
    // and the call's end closes it.
    const bool last = sent_ + 1 == call_->gives_;
    if (dead) {
      call_->send(Outgoing::dead(key), last);
      released();
    } else {
      call_->send(lent_tensor(key, value, call_->channel().limits().chunk_bytes, call_->streams_->threads(),
                              std::move(released)),
                  last);
    }
    ++sent_;
  }
  void end(std::exception_ptr /*error*/) override {}  // what ends the step ends the call

 private:
  const std::shared_ptr<PartCall> call_;
  std::atomic<std::size_t> sent_ = 0;
};

PartCall::PartCall(const BlockingCall::To& to, const RunPartRequest& request,
                   std::shared_ptr<StepStreams> streams, Done done)
    : ClientCall(to.channel, to.method, to.task, to.deadline),
      task_(to.task),
      streams_(std::move(streams)),
      gives_(streams_ != nullptr ? request.given.size() : 0),
      taken_(streams_ != nullptr && !request.taken.empty()
                 ? std::make_shared<IncomingValues>(request.taken, channel().address(), channel().limits())
                 : nullptr),
      name_{request.session, request.step, to.task},
      done_(std::move(done)),
      response_(true, kMostFetches, channel().limits()),
      reading_(taken_ == nullptr) {}

std::shared_ptr<PartCall> PartCall::start(const BlockingCall::To& to, const RunPartRequest& request,
                                          std::shared_ptr<StepStreams> streams, Done done) {
  auto call = std::make_shared<PartCall>(to, request, std::move(streams), std::move(done));
  call->send_request(request);
  // Its receiver comes with the part of this task, which is about to begin: nothing is read before that.
  if (call->takes())
    call->streams_->add(call->name_, {.values = call->taken_, .read = [call] { call->begin_reading(); }});
  if (request.only_ends && !call->takes() && call->gives_ == 0) call->start_unary();
  else call->ClientCall::start(!call->takes());
  if (call->gives_ > 0) call->give(request);
  return call;
}

void PartCall::send_request(const RunPartRequest& request) {
  def::RunGraphRequestDef message;
  message.set_session(request.session);
  message.set_part(request.part);
  message.set_step(request.step);
  message.set_request_id(request.request_id);
  message.set_trace_level(static_cast<std::uint32_t>(request.trace_level));
  message.set_metadata(request.metadata);
  for (const std::int64_t step : request.over) message.add_over(step);
  if (streams_ != nullptr) {
    put_strings(*message.mutable_taken(), request.taken);
    put_strings(*message.mutable_given(), request.given);
  }
  send(Outgoing::control(message), gives_ == 0);
}

void PartCall::give(const RunPartRequest& request) {
  const auto own = streams_->own();
  if (own == nullptr)
    return fail(std::make_exception_ptr(UnavailableError("{} is shutting down", channel().caller().name)));
  const auto giving =
      own->serve({.session = request.session, .step = request.step, .receiver = task_, .keys = request.given},
                 std::make_shared<Sink>(std::static_pointer_cast<PartCall>(shared_from_this())));
  {
    MutexLock lock(giving_mutex_);
    if (!over_) {
      giving_ = giving;
      return;
    }
  }
  giving->cancel();
}

void PartCall::begin_reading() {
  if (!reading_.exchange(true)) read_on();
}

// Perhaps nobody takes the values any more: the end of the call is to be read nevertheless.
void PartCall::cancel() {
  ClientCall::cancel();
  begin_reading();
}

Next PartCall::on_message(const MessagePieces& message) {
  if (takes() && !taken_->complete()) {
    taken_->read(message);
    return Next::read;
  }
  response_.read(message);
  return !std::exchange(response_begun_, true) && response_.is_only_control() ? Next::none : Next::read;
}

void PartCall::on_end(std::exception_ptr error) {
  if (takes()) streams_->remove(name_);
  std::shared_ptr<Call> giving;
  {
    MutexLock lock(giving_mutex_);
    over_ = true;
    giving = std::move(giving_);
  }
  if (giving != nullptr) giving->cancel();
  PartResult result;
  try {
    if (error == nullptr) {
      response_.check_complete();
      auto run = run_response(response_, kMostFetches);
      result = {.fetches = std::move(run.fetches), .metadata = std::move(run.metadata)};
    }
  } catch (...) {
    error = std::current_exception();
  }
  const bool failed = error != nullptr;
  std::exchange(done_, nullptr)(std::move(error), std::move(result));
  // Why is told already.
  if (takes())
    taken_->end(failed ? std::make_exception_ptr(ConsequenceError(Code::cancelled, "the step is over"))
                       : nullptr);
}

ReceiveCall::ReceiveCall(const BlockingCall::To& to, const TensorsRequest& request,
                         std::shared_ptr<TensorReceiver> receiver)
    : ClientCall(to.channel, to.method, to.task, to.deadline),
      values_(request.keys, channel().address(), channel().limits()) {
  values_.attach(request.keys, std::move(receiver));
  def::RecvTensorsRequestDef message;
  message.set_session(request.session);
  message.set_step(request.step);
  message.set_receiver(request.receiver);
  put_strings(*message.mutable_keys(), request.keys);
  send(Outgoing::control(message), true);
}

}  // namespace kolo::detail
