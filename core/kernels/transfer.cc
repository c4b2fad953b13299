#include <kolo/core/kernels/transfer.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include <kolo/core/kernels/cancellable.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo {
namespace {

// In its turn of the stream of copies between the two devices.
class RecvKernel final : public Kernel {
 public:
  explicit RecvKernel(KernelInit& init)
      : ends_(init.resource<TransferEnds>()), has_shape_(init.output_shape(0).is_fully_known()) {}

  void compute(KernelContext& context) override {
    if (!has_shape_) {
      const Tensor& sent = context.input(0);
      Allocator& memory = ends_->to.has_host_memory() ? ends_->from.host_allocator() : ends_->to.allocator();
      context.set_output(0, Tensor(sent.dtype(), sent.shape(), memory));
    }
    ends_->to.copy_from(ends_->from, context.input(0), context.output(0));
  }

 private:
  std::shared_ptr<TransferEnds> ends_;
  bool has_shape_;
};

class FenceKernel final : public AsyncKernel, public Cancellable {
 public:
  explicit FenceKernel(KernelInit& init) : stream_(*init.resource<Stream>()) {}
  // A device that has failed may answer late what nobody waits for any more.
  ~FenceKernel() override {
    if (wait_->unanswered.load() > 0) static_cast<void>(wait_.release());
  }
  FenceKernel(const FenceKernel&) = delete;
  FenceKernel& operator=(const FenceKernel&) = delete;

  void start(KernelContext&, Completion done) override {
    const std::uint64_t number = ++started_;
    wait_->done = done;
    wait_->number.store(number);
    ++wait_->unanswered;
    try {
      stream_.when_done([wait = wait_.get(), number](std::exception_ptr error) {
        wait->end(number, std::move(error));
        --wait->unanswered;
      });
    } catch (...) {
      --wait_->unanswered;
      throw;
    }
  }
  // A GPU may have ceased to answer. The end of the step waits for its streams, for a while.
  void cancel() override { wait_->end(started_, nullptr); }

 private:
  // Not in the closure, which would be allocated at each step.
  struct Wait {
    std::atomic<int> unanswered{0};
    std::atomic<std::uint64_t> number{0};  // of the start that has not ended; 0: none
    Completion done;

    void end(std::uint64_t of, std::exception_ptr error) {
      if (!number.compare_exchange_strong(of, 0)) return;
      // A copy: once it is called, the next step may have started this kernel again.
      const Completion completion = done;
      completion(std::move(error));
    }
  };

  Stream& stream_;
  std::uint64_t started_ = 0;
  std::unique_ptr<Wait> wait_ = std::make_unique<Wait>();
};

// Views have a kernel where their shape depends on values alone: it passes on what the input's kernel made.
void pass_on(KernelContext& context) { context.set_output(0, context.input(0)); }

std::unique_ptr<Kernel> make_recv(KernelInit& init) { return std::make_unique<RecvKernel>(init); }
std::unique_ptr<Kernel> make_fence(KernelInit& init) { return std::make_unique<FenceKernel>(init); }

const RegisterKernel transfer_kernels[] = {
    {"_Send", "CPU", {}, pass_on},
    {"_Send", "GPU", {}, pass_on},
    {"_HostRecv", "CPU", {}, pass_on},
    {"_Recv", "CPU", {}, KernelFactory(make_recv)},
    {"_Recv", "GPU", {}, KernelFactory(make_recv)},
    {"_Fence", "CPU", {}, KernelFactory(make_fence)},
    {"_Fence", "GPU", {}, KernelFactory(make_fence)},  // of a session without a CPU
};

}  // namespace
}  // namespace kolo
