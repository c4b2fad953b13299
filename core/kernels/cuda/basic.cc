// Values that are there already: copies, views, shapes; and tensors of one number.
#include <cstring>
#include <memory>
#include <utility>

#include <kolo/core/kernels/cpu/element_types.h>
#include <kolo/core/kernels/cuda/cuda_kernel.h>
#include <kolo/core/kernels/host_kernels.h>
#include <kolo/core/kernels/nothing.h>

namespace kolo::cuda {
namespace {

std::uint64_t first_bits(const Tensor& value) {
  std::uint64_t bits = 0;  // little endian, as all hosts of NVIDIA's GPUs are
  std::memcpy(&bits, value.raw(), size_of(value.dtype()));
  return bits;
}

void fill(const KernelContext& context, const Tensor& target, std::uint64_t bits) {
  check_cuda(launch_fill(stream_of(context), {.target = target.raw(),
                                              .value_bits = bits,
                                              .bytes_per_element = static_cast<int>(size_of(target.dtype())),
                                              .elements = target.elements()}),
             "fill");
}

class FillKernel final : public Kernel {
 public:
  FillKernel(DType dtype, double value) {
    const Tensor one(dtype, Shape());
    detail::with_type(dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      *one.data<T>() = static_cast<T>(static_cast<detail::Computed<T>>(value));
    });
    bits_ = first_bits(one);
  }
  void compute(KernelContext& context) override { fill(context, context.output(0), bits_); }

 private:
  std::uint64_t bits_ = 0;
};

class CopyKernel final : public Kernel {
 public:
  explicit CopyKernel(KernelInit& init) : api_(gpu_of(init).api) {}
  void compute(KernelContext& context) override {
    copy_within(api_, context, context.input(0), context.output(0));
  }

 private:
  const CudaApi& api_;
};

// The condition is a host input.
class GuardKernel final : public Kernel {
 public:
  explicit GuardKernel(KernelInit& init) : taken_(init.attr<bool>("taken")) {}
  void compute(KernelContext& context) override {
    context.skipped = context.input(0).value<bool>() != taken_;
  }

 private:
  bool taken_;
};

// The one of two branches that happened, which the host knows when it puts the copy on the stream.
class JoinKernel : public Kernel {
 public:
  explicit JoinKernel(KernelInit& init)
      : gpu_(gpu_of(init)), is_planned_(init.output_shape(0).is_fully_known()) {}
  void compute(KernelContext& context) override {
    pass_on(context, context.input(context.happened[0] ? 0 : 1));
  }

 protected:
  void make_output(const KernelContext& context, const Tensor& like) const {
    if (!is_planned_) context.set_output(0, Tensor(like.dtype(), like.shape(), gpu_.allocator));
  }
  void pass_on(const KernelContext& context, const Tensor& value) const {
    make_output(context, value);
    copy_within(gpu_.api, context, value, context.output(0));
  }

 private:
  PhysicalGpu& gpu_;
  bool is_planned_;  // the output's memory
};

class TakenOrZerosKernel final : public JoinKernel {
 public:
  using JoinKernel::JoinKernel;
  void compute(KernelContext& context) override {
    if (context.happened[0]) return pass_on(context, context.input(0));
    make_output(context, context.input(1));
    fill(context, context.output(0), 0);
  }
};

template <int kValue>
std::unique_ptr<Kernel> make_like(KernelInit& init) {
  return std::make_unique<FillKernel>(init.output_dtype(0), kValue);
}

const RegisterGpuKernel basic_kernels[] = {
    {"Placeholder", kAllButStrings, make_kernel<PlaceholderKernel>},
    {"Const", kAllButStrings, nothing},  // the plan has copied it
    {"Fill", kAllButStrings,
     [](KernelInit& init) -> std::unique_ptr<Kernel> {
       return std::make_unique<FillKernel>(init.output_dtype(0), init.attr<double>("value"));
     }},
    {"ZerosLike", kAllButStrings, make_like<0>},
    {"OnesLike", kAllButStrings, make_like<1>},
    {"Copy", kAllButStrings, make_kernel<CopyKernel>},
    {"BranchGuard", {}, make_kernel<GuardKernel>},
    {"BranchJoin", kAllButStrings, make_kernel<JoinKernel>},
    {"TakenOrZeros", kAllButStrings, make_kernel<TakenOrZerosKernel>},
    {"NoOp", {}, nothing},
    {"Identity", kAllButStrings, nothing},
    {"StopGradient", kAllButStrings, nothing},
    {"Reshape", kAllButStrings, nothing},
    {"ReshapeLike", kAllButStrings, nothing},
    {"ExpandDims", kAllButStrings, nothing},
    {"Squeeze", kAllButStrings, nothing},
    {"Shape", kAllButStrings, shape_kernel},
    {"Size", kAllButStrings, size_kernel},
    {"Rank", kAllButStrings, rank_kernel},
};

}  // namespace
}  // namespace kolo::cuda
