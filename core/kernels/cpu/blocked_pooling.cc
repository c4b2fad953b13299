// Max pooling in blocked order, of f32.
#include <cstdint>
#include <memory>
#include <utility>

#include <kolo/core/kernels/cpu/loops/pooling_loops.h>
#include <kolo/core/kernels/cpu/pooling_windows.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/kernels/parallel.h>
#include <kolo/core/ops/blocked.h>

namespace kolo {
namespace {

using detail::Pooling;

// Each thread takes whole planes.
class BlockedMaxPool : public Kernel {
 public:
  BlockedMaxPool(Pooling pooling, std::int64_t block)
      : pool_(std::move(pooling)),
        loops_(detail::max_pool_loops(block)),
        planes_(pool_.images.elements() / (pool_.rows.size * pool_.cols.size * block)),
        image_plane_(pool_.rows.size * pool_.cols.size * block),
        result_plane_(pool_.rows.outputs * pool_.cols.outputs * block) {}

  void compute(KernelContext& context) override {
    const float* x = context.input(0).data<float>();
    float* y = context.output(0).data<float>();
    auto* cells = context.output(1).data<std::uint8_t>();
    parallel_for(planes_, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t p = begin; p < end; ++p)
        loops_.forward(x + p * image_plane_, pool_.rows, pool_.cols, y + p * result_plane_,
                       cells + p * result_plane_);
    });
  }

 protected:
  Pooling pool_;
  const detail::MaxPoolLoops& loops_;
  std::int64_t planes_;  // of a block of channels each
  std::int64_t image_plane_, result_plane_;
};

class BlockedMaxPoolGrad final : public BlockedMaxPool {
 public:
  using BlockedMaxPool::BlockedMaxPool;

  void compute(KernelContext& context) override {
    const auto* cells = context.input(0).data<std::uint8_t>();
    const float* dy = context.input(1).data<float>();
    float* dx = context.output(0).data<float>();
    parallel_for(planes_, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t p = begin; p < end; ++p)
        loops_.backward(cells + p * result_plane_, dy + p * result_plane_, pool_.rows, pool_.cols,
                        dx + p * image_plane_);
    });
  }
};

const char* const kNoBlocks = "channels last: oneDNN's";

std::unique_ptr<Kernel> make_forward(KernelInit& init) {
  const auto block = init.attr<std::int64_t>("block");
  if (block <= 0) return init.decline(kNoBlocks);
  return std::make_unique<BlockedMaxPool>(Pooling::of(init, init.output_shape(0)), block);
}

std::unique_ptr<Kernel> make_backward(KernelInit& init) {
  const auto block = init.attr<std::int64_t>("block");
  if (block <= 0) return init.decline(kNoBlocks);
  return std::make_unique<BlockedMaxPoolGrad>(Pooling::of(init, init.output_shape(0), init.input_shape(1)),
                                              block);
}

const RegisterKernel max_pool(kBlockedMaxPoolOp, "CPU", {DType::f32}, make_forward, 1);
const RegisterKernel max_pool_grad(kBlockedMaxPoolGradOp, "CPU", {DType::u8}, make_backward, 1);

}  // namespace
}  // namespace kolo
