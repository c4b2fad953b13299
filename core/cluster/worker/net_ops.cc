#include <kolo/core/cluster/worker/net_ops.h>

#include <fmt/format.h>

#include <memory>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/mutex.h>
#include <kolo/core/cluster/call.h>
#include <kolo/core/cluster/worker/step_exchange.h>
#include <kolo/core/graph/op_schema.h>
#include <kolo/core/kernels/cancellable.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo::detail {
namespace {

OpSchema receiving(const char* op) {
  return OpSchema(op)
      .required_attr("key", "")
      .required_attr("dtype", DType::f32)
      .required_attr("shape", Shape())
      .output("tensor", "dtype")
      .shape([](ShapeContext& c) { c.set_output(0, c.attr<Shape>("shape")); })
      .stateful()
      .cpu_only()
      .owns_outputs()
      .joins_tasks()
      .no_gradient();
}

const RegisterOp send_op(OpSchema(kNetSendOp)
                             .input("tensor")
                             .variadic("always", {}, /*mixed=*/true)
                             .required_attr("key", "")
                             .shape([](ShapeContext&) {})
                             .stateful()
                             .cpu_only()
                             .joins_branches()
                             .joins_tasks()
                             .no_gradient());
const RegisterOp recv_op(receiving(kNetRecvOp));
const RegisterOp recv_if_op(receiving(kNetRecvIfOp).guards_branch());

std::exception_ptr step_is_over() {
  return std::make_exception_ptr(ConsequenceError(Code::cancelled, "the step was cancelled"));
}

class NetSend final : public AsyncKernel, public Cancellable, public NetSender {
 public:
  explicit NetSend(const KernelInit& init) : key_(init.attr<std::string>("key")) {}

  void bind(StepExchange& exchange) override { exchange_ = &exchange; }

  void start(KernelContext& context, Completion done) override {
    done_ = done;
    const bool dead = !context.happened[0];
    exchange_->put(key_, dead ? Tensor() : context.input(0), dead, [this] { finish(nullptr); });
  }

  // What has been handed out is released when the step ends, which ends all that it was handed to.
  void cancel() override {
    if (exchange_->withdraw(key_)) finish(step_is_over());
  }

  std::string waits_for(const std::vector<std::string>&) override {
    return exchange_ != nullptr ? exchange_->state_of(key_) : "";
  }

 private:
  void finish(std::exception_ptr error) const {
    const Completion done = done_;  // the kernel may be in its next step when this returns
    done(std::move(error));
  }

  const std::string key_;
  StepExchange* exchange_ = nullptr;
  Completion done_;
};

class NetRecv final : public AsyncKernel, public Cancellable, public NetReceiver {
 public:
  explicit NetRecv(const KernelInit& init)
      : key_(init.attr<std::string>("key")),
        dtype_(init.output_dtype(0)),
        shape_(init.attr<Shape>("shape")) {}

  const std::string& key() const override { return key_; }

  void prepare() override {
    MutexLock lock(mutex_);
    state_ = State::idle;
    has_arrived_ = false;
  }

  Tensor memory_for(DType dtype, const Shape& shape) override {
    if (dtype != dtype_ || !shape.is_fully_known() || !shape.is_compatible_with(shape_))
      throw InvalidArgumentError("{} sends {} {}; the graph has {} {}", key_, tf_name(dtype), shape,
                                 tf_name(dtype_), shape_);
    MutexLock lock(mutex_);
    if (!memory_ || memory_.shape() != shape || dtype == DType::string) memory_ = Tensor(dtype, shape);
    return memory_;
  }

  void arrived(Tensor value, bool dead) override {
    {
      MutexLock lock(mutex_);
      if (has_arrived_ || state_ == State::done) return;
      has_arrived_ = true;
      value_ = std::move(value);
      dead_ = dead;
      if (state_ != State::started) return;
      state_ = State::done;
    }
    deliver();
  }

  void start(KernelContext& context, Completion done) override {
    {
      MutexLock lock(mutex_);
      context_ = &context;
      done_ = done;
      state_ = has_arrived_ ? State::done : State::started;
      if (!has_arrived_) return;
    }
    deliver();
  }

  void cancel() override {
    {
      MutexLock lock(mutex_);
      if (std::exchange(state_, State::done) != State::started) return;
    }
    const Completion done = done_;
    done(step_is_over());
  }

  std::string waits_for(const std::vector<std::string>&) override {
    MutexLock lock(mutex_);
    return state_ == State::started ? key_ : "";
  }

  void give_up_memory() override {
    MutexLock lock(mutex_);
    memory_ = Tensor();
    value_ = Tensor();
  }

 private:
  enum class State { idle, started, done };

  // By the one thread that has made it done.
  void deliver() {
    const Completion done = done_;
    context_->skipped = dead_;
    if (!dead_) context_->set_output(0, value_);
    done();
  }

  const std::string key_;
  const DType dtype_;
  const Shape shape_;  // unknown in part, perhaps
  Mutex mutex_;
  State state_ KOLO_GUARDED_BY(mutex_) = State::idle;
  bool has_arrived_ KOLO_GUARDED_BY(mutex_) = false;
  Tensor memory_ KOLO_GUARDED_BY(mutex_);
  // Written before the state that lets others read them.
  Tensor value_;
  bool dead_ = false;
  KernelContext* context_ = nullptr;
  Completion done_;
};

const RegisterKernel send("_NetSend", "CPU", {}, make_kernel<NetSend>);
const RegisterKernel recv("_NetRecv", "CPU", {}, make_kernel<NetRecv>);
const RegisterKernel recv_if("_NetRecvIf", "CPU", {}, make_kernel<NetRecv>);

}  // namespace
}  // namespace kolo::detail
