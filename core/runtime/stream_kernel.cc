#include <kolo/core/runtime/stream_kernel.h>

#include <utility>

#include <kolo/core/kernels/cpu/parallel.h>

namespace kolo {
namespace {

class StreamKernel final : public AsyncKernel {
 public:
  StreamKernel(std::unique_ptr<Kernel> kernel, Stream& stream, int threads)
      : kernel_(std::move(kernel)), stream_(stream), threads_(threads) {}

  void start(KernelContext& context, Completion done) override {
    context_ = &context;
    done_ = done;
    stream_.enqueue([this] { run(); });
  }

 private:
  void run() {
    set_intra_op_threads(threads_);
    std::exception_ptr error;
    try {
      kernel_->compute(*context_);
    } catch (...) {
      error = std::current_exception();
    }
    // A copy: once it is called, the next step may have started this kernel again.
    const Completion done = done_;
    done(std::move(error));
  }

  const std::unique_ptr<Kernel> kernel_;
  Stream& stream_;
  const int threads_;
  KernelContext* context_ = nullptr;
  Completion done_;
};

}  // namespace

std::unique_ptr<Kernel> on_stream(std::unique_ptr<Kernel> kernel, Stream& stream, int threads) {
  return std::make_unique<StreamKernel>(std::move(kernel), stream, threads);
}

bool runs_on_stream(const Kernel& kernel) { return dynamic_cast<const StreamKernel*>(&kernel) != nullptr; }

}  // namespace kolo
