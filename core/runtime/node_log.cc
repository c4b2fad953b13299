#include <kolo/core/runtime/node_log.h>

#include <fmt/format.h>

#include <utility>

#include <kolo/core/kernels/cancellable.h>

namespace kolo {
namespace {

OrderLog::Range range_of(const Tensor& tensor) { return {tensor.raw(), tensor.bytes()}; }

class LoggedKernel final : public Kernel {
 public:
  LoggedKernel(std::unique_ptr<Kernel> kernel, NodeLog log)
      : kernel_(std::move(kernel)), log_(std::move(log)) {}

  void compute(KernelContext& context) override {
    log_.begin();
    kernel_->compute(context);
    log_.use(OrderLog::this_thread(), context);
    log_.end();
  }

 private:
  const std::unique_ptr<Kernel> kernel_;
  const NodeLog log_;
};

class LoggedAsyncKernel final : public AsyncKernel, public Cancellable {
 public:
  LoggedAsyncKernel(std::unique_ptr<Kernel> kernel, NodeLog log)
      : kernel_(std::move(kernel)), log_(std::move(log)) {}

  void start(KernelContext& context, Completion done) override {
    context_ = &context;
    done_ = done;
    log_.begin_asynchronous();
    static_cast<AsyncKernel&>(*kernel_).start(context, {&LoggedAsyncKernel::end, this, 0});
  }
  void cancel() override {
    if (auto* const kernel = dynamic_cast<Cancellable*>(kernel_.get())) kernel->cancel();
  }

 private:
  static void end(void* kernel, int /*node*/, std::exception_ptr error) {
    const auto& [log, done, context] = static_cast<LoggedAsyncKernel*>(kernel)->parts();
    log.end_asynchronous(*context);
    done(std::move(error));
  }
  struct Parts {
    const NodeLog& log;
    Completion done;  // a copy: once it is called, the next step may have started this kernel again
    const KernelContext* context;
  };
  Parts parts() const { return {log_, done_, context_}; }

  const std::unique_ptr<Kernel> kernel_;
  const NodeLog log_;
  const KernelContext* context_ = nullptr;
  Completion done_;
};

}  // namespace

std::string node_token(const Frame& frame, int position) {
  return fmt::format("node:{}:{}", fmt::ptr(&frame), position);
}

void log_begin(const Frame& frame) {
  if (OrderLog* const log = OrderLog::active()) log->record(OrderLog::this_thread(), node_token(frame, -1));
}

void log_end(const Frame& frame, int nodes, const std::vector<int>& fetches, const Tensor* values) {
  OrderLog* const log = OrderLog::active();
  if (log == nullptr) return;
  std::string tokens;
  for (int i = -1; i < nodes; ++i) tokens.append(node_token(frame, i)).append(" ");
  log->wait(OrderLog::this_thread(), tokens);
  std::vector<OrderLog::Range> read;
  for (const int value : fetches)
    if (value >= 0) read.push_back(range_of(values[value]));
  log->use(OrderLog::this_thread(), "the caller", read, {});
}

void NodeLog::use(const std::string& actor, const KernelContext& context) const {
  std::vector<OrderLog::Range> reads = controls, writes = {mark};
  for (std::size_t i = 0; i < context.inputs.size(); ++i) {
    reads.push_back(range_of(*context.inputs[i]));
    if (node.schema->input_spec(static_cast<int>(i)).updated) writes.push_back(reads.back());
  }
  for (const Tensor& output : context.outputs) writes.push_back(range_of(output));
  writes.push_back({context.scratch_memory, scratch_bytes});
  log.use(actor, node.name, reads, writes);
}

void NodeLog::begin_asynchronous() const {
  begin();
  log.record(OrderLog::this_thread(), token + "/start");
}

void NodeLog::end_asynchronous(const KernelContext& context) const {
  log.wait(OrderLog::this_thread(), token + "/start");
  use(OrderLog::this_thread(), context);
  end();
}

std::unique_ptr<Kernel> logged(std::unique_ptr<Kernel> kernel, NodeLog log) {
  if (dynamic_cast<AsyncKernel*>(kernel.get()) != nullptr)
    return std::make_unique<LoggedAsyncKernel>(std::move(kernel), std::move(log));
  return std::make_unique<LoggedKernel>(std::move(kernel), std::move(log));
}

}  // namespace kolo
