// What the plug-in's kernels share: how they are registered, and where they find their GPU and its stream.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/device/cuda/cuda_device.h>
#include <kolo/core/kernels/cpu/strided_index.h>
#include <kolo/core/kernels/cuda/launch.h>
#include <kolo/core/kernels/deferred_check.h>
#include <kolo/core/kernels/elements/bad_value.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo::cuda {

/// As RegisterKernel for "GPU", but noted in a list of the plug-in's own: it reaches kolo's table once
/// libkolo has accepted the plug-in. A namespace-scope constant of a kernel's file.
struct RegisterGpuKernel {
  RegisterGpuKernel(std::string op, std::vector<DType> types, KernelFactory make, int priority = 0,
                    SourceLine place = SourceLine::here());
  /// A kernel without state of its own.
  RegisterGpuKernel(std::string op, std::vector<DType> types, void (*compute)(KernelContext&),
                    int priority = 0, SourceLine place = SourceLine::here());
};
/// What else is to be done then.
struct RegisterWithKernels {
  explicit RegisterWithKernels(void (*work)());
};
/// Of all files of the plug-in.
const std::vector<std::function<void()>>& registered_kernels();

/// The types that kernels compute in.
inline const std::vector<DType> kReal = {DType::f32};

/// compute() is called under the GPU's lock, with the GPU current, and enqueues on this stream alone.
inline cudaStream_t stream_of(const KernelContext& context) {
  return static_cast<cudaStream_t>(context.native_stream);
}

/// All of `source`, which has as many bytes, where it is not the same memory.
void copy_within(const CudaApi& api, const KernelContext& context, const Tensor& source,
                 const Tensor& target);

/// The GPU that a kernel is made for; it outlives the kernel.
inline PhysicalGpu& gpu_of(const KernelInit& init) {
  return static_cast<CudaDevice&>(init.device()).physical();
}

/// What the node multiplies in; NVIDIA_TF32_OVERRIDE=0, which NVIDIA's libraries obey, is obeyed.
bool allows_tf32(const KernelInit& init);

/// KOLO_AUTOTUNE=1: the fastest of what a library offers is taken. Another process may then take another, and
/// its last bits differ, unless a file keeps the choice (engine_book.h).
bool chooses_by_time();

/// Where a kernel's work notes a bad value: pinned memory of the host that the GPU writes to.
class BadValueWord {
 public:
  /// Throws as check_cuda.
  explicit BadValueWord(const KernelInit& init);
  ~BadValueWord();
  BadValueWord(const BadValueWord&) = delete;
  BadValueWord& operator=(const BadValueWord&) = delete;

  elements::BadValue* get() const { return word_; }
  /// The one noted since it was last asked; nothing where there is none.
  std::optional<elements::BadValue> take();

 private:
  PinnedAllocator& memory_;
  elements::BadValue* word_;
};

/// All that a GPU's memory can hold.
inline const std::vector<DType> kAllButStrings = {DType::f32, DType::f64,     DType::i32,
                                                  DType::i64, DType::boolean, DType::u8,
                                                  DType::i8,  DType::f16,     DType::bf16};

/// Throws InternalError for a type that kernels do not know.
ElementType element_type(DType dtype);

/// More than kMaxDims dimensions that cannot be seen as fewer: kernels made by planned() are declined then.
struct TooManyDimensions : InvalidArgumentError {
  using CodedError::CodedError;
};
/// Throws TooManyDimensions.
template <int Operands>
Walk<Operands> walk_of(const detail::StridedIndex<Operands>& index);

/// The factory of a kernel that knows its whole work when it is made: declines shapes that depend on the
/// values of a step.
template <typename K, typename... Arguments>
KernelFactory planned(Arguments... arguments) {
  return [arguments...](KernelInit& init) -> std::unique_ptr<Kernel> {
    const auto is_known = [](const Shape& shape) { return shape.is_fully_known(); };
    bool known = true;
    for (int i = 0; i < init.num_inputs(); ++i) known &= is_known(init.input_shape(i));
    for (int i = 0; i < init.num_outputs(); ++i) known &= is_known(init.output_shape(i));
    if (!known) return init.decline("a shape depends on the values of the step");
    try {
      return std::make_unique<K>(init, arguments...);
    } catch (const TooManyDimensions& error) {
      return init.decline(error.what());
    }
  };
}

}  // namespace kolo::cuda
