#include <kolo/core/kernels/cuda/cuda_kernel.h>

#include <new>

#include <kolo/core/base/autotune.h>
#include <kolo/core/base/env.h>
#include <kolo/core/base/error.h>
#include <kolo/core/device/cuda/handles.h>
#include <kolo/core/ops/bf16.h>

namespace kolo::cuda {
namespace {

std::vector<std::function<void()>>& list() {
  static std::vector<std::function<void()>> kernels;
  return kernels;
}

}  // namespace

RegisterGpuKernel::RegisterGpuKernel(std::string op, std::vector<DType> types, KernelFactory make,
                                     int priority, SourceLine place) {
  list().push_back([=] { RegisterKernel(op, "GPU", types, make, priority, place); });
}

RegisterGpuKernel::RegisterGpuKernel(std::string op, std::vector<DType> types,
                                     void (*compute)(KernelContext&), int priority, SourceLine place) {
  list().push_back([=] { RegisterKernel(op, "GPU", types, compute, priority, place); });
}

RegisterWithKernels::RegisterWithKernels(void (*work)()) { list().emplace_back(work); }

const std::vector<std::function<void()>>& registered_kernels() { return list(); }

void copy_within(const CudaApi& api, const KernelContext& context, const Tensor& source,
                 const Tensor& target) {
  if (target.raw() != source.raw() && source.bytes() > 0)
    check_cuda(api.memcpy_async(target.raw(), source.raw(), source.bytes(), cudaMemcpyDeviceToDevice,
                                stream_of(context)),
               "cudaMemcpyAsync");
}

bool allows_tf32(const KernelInit& init) {
  static const bool is_forbidden = env_string("NVIDIA_TF32_OVERRIDE").value_or("") == "0";
  return init.is_marked(kInTf32) && !is_forbidden;
}

bool chooses_by_time() {
  static const bool chooses = autotune_of_environment().by_time;
  return chooses;
}

BadValueWord::BadValueWord(const KernelInit& init)
    : memory_(gpu_of(init).pinned),
      word_(new (memory_.allocate_pinned(sizeof(elements::BadValue))) elements::BadValue) {}

BadValueWord::~BadValueWord() { memory_.deallocate(word_, sizeof(elements::BadValue)); }

std::optional<elements::BadValue> BadValueWord::take() {
  const auto load = [](const std::uint64_t& half) { return __atomic_load_n(&half, __ATOMIC_RELAXED); };
  elements::BadValue found;
  found.low = load(word_->low), found.high = load(word_->high);
  if (!found.is_found()) return std::nullopt;
  *word_ = {};
  return found;
}

void count_launch() { ++launch_count(); }

ElementType element_type(DType dtype) {
  switch (dtype) {
    case DType::f32: return ElementType::f32;
    case DType::f64: return ElementType::f64;
    case DType::i32: return ElementType::i32;
    case DType::i64: return ElementType::i64;
    case DType::boolean: return ElementType::boolean;
    case DType::u8: return ElementType::u8;
    case DType::i8: return ElementType::i8;
    case DType::f16: return ElementType::f16;
    case DType::bf16: return ElementType::bf16;
    case DType::string: break;
  }
  throw InternalError("a kernel for GPUs was given a tensor of {}", dtype);
}

template <int Operands>
Walk<Operands> walk_of(const detail::StridedIndex<Operands>& index) {
  if (index.rank() > kMaxDims)
    throw TooManyDimensions(
        "a tensor has {} dimensions that cannot be seen as fewer; GPU kernels take at most {}", index.rank(),
        kMaxDims);
  Walk<Operands> walk;
  walk.rank = index.rank();
  for (int axis = 0; axis < index.rank(); ++axis) {
    walk.dims[axis] = index.dim(axis);
    for (int k = 0; k < Operands; ++k) walk.strides[k][axis] = index.strides(axis)[k];
  }
  return walk;
}
template Walk<1> walk_of(const detail::StridedIndex<1>& index);
template Walk<2> walk_of(const detail::StridedIndex<2>& index);
template Walk<3> walk_of(const detail::StridedIndex<3>& index);

}  // namespace kolo::cuda
