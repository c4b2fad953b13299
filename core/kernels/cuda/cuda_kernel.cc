#include <kolo/core/kernels/cuda/cuda_kernel.h>

#include <kolo/core/base/error.h>

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

ElementType element_type(DType dtype) {
  switch (dtype) {
    case DType::f32: return ElementType::f32;
    case DType::f64: return ElementType::f64;
    case DType::i32: return ElementType::i32;
    case DType::i64: return ElementType::i64;
    case DType::u8: return ElementType::u8;
    case DType::boolean: return ElementType::boolean;
    default: throw InternalError("a kernel for GPUs was given a tensor of {}", dtype);
  }
}

template <int Operands>
Walk<Operands> walk_of(const detail::StridedIndex<Operands>& index) {
  if (index.rank() > kMaxDims)
    throw InvalidArgumentError(
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
