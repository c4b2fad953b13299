#include <algorithm>
#include <memory>
#include <vector>

#include <kolo/core/kernels/cpu/strided_copy.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/ops/slice_spec.h>

namespace kolo {
namespace {

const std::vector<DType> kNumeric = {DType::f32, DType::f64, DType::i32, DType::i64, DType::boolean,
                                     DType::u8,  DType::i8,  DType::f16, DType::bf16};

// Where the elements of a slice lie in the whole tensor.
struct Places {
  detail::StridedIndex<1> index;
  std::int64_t start_bytes = 0;

  Places(const detail::SliceSpec& spec, const Tensor& whole) {
    const detail::ResolvedSlice slice = detail::resolve_slice(spec, whole.shape());
    const auto& dims = whole.shape().dims();
    std::int64_t stride = whole.elements(), start = 0;
    for (std::size_t axis = 0; axis < dims.size(); ++axis) {
      stride = dims[axis] == 0 ? 0 : stride / dims[axis];
      start += slice.begin[axis] * stride;
      index.push(slice.count[axis], {stride * slice.stride[axis]});
    }
    start_bytes = start * static_cast<std::int64_t>(size_of(whole.dtype()));
  }
};

class StridedSliceKernel final : public Kernel {
 public:
  explicit StridedSliceKernel(KernelInit& init) : spec_(detail::slice_spec(init)) {}
  void compute(KernelContext& context) override {
    const Tensor& x = context.input(0);
    const Places places(spec_, x);
    detail::gather_strided(places.index, size_of(x.dtype()), x.raw() + places.start_bytes,
                           context.output(0).raw());
  }

 private:
  detail::SliceSpec spec_;
};

class StridedSliceGradKernel final : public Kernel {
 public:
  explicit StridedSliceGradKernel(KernelInit& init) : spec_(detail::slice_spec(init)) {}
  void compute(KernelContext& context) override {
    const Tensor& dx = context.output(0);
    std::fill_n(dx.raw(), dx.bytes(), std::byte{0});
    const Places places(spec_, dx);
    detail::scatter_strided(places.index, size_of(dx.dtype()), context.input(0).raw(),
                            dx.raw() + places.start_bytes);
  }

 private:
  detail::SliceSpec spec_;
};

class ReverseKernel final : public Kernel {
 public:
  explicit ReverseKernel(KernelInit& init) : axes_(init.attr<std::vector<std::int64_t>>("axes")) {}
  void compute(KernelContext& context) override {
    const Tensor& x = context.input(0);
    if (x.elements() == 0) return;
    const auto& dims = x.shape().dims();
    const auto rank = static_cast<std::int64_t>(dims.size());
    std::int64_t stride = x.elements(), start = 0;
    detail::StridedIndex<1> index;
    for (std::int64_t axis = 0; axis < rank; ++axis) {
      stride /= dims[axis];
      const bool reversed = std::any_of(axes_.begin(), axes_.end(),
                                        [&](std::int64_t own) { return own == axis || own == axis - rank; });
      if (reversed) start += (dims[axis] - 1) * stride;
      index.push(dims[axis], {reversed ? -stride : stride});
    }
    const std::size_t size = size_of(x.dtype());
    detail::gather_strided(index, size, x.raw() + start * static_cast<std::int64_t>(size),
                           context.output(0).raw());
  }

 private:
  std::vector<std::int64_t> axes_;
};

template <typename K>
RegisterKernel kernel(const char* op) {
  return RegisterKernel(op, "CPU", kNumeric, [](KernelInit& init) -> std::unique_ptr<Kernel> {
    return std::make_unique<K>(init);
  });
}

const RegisterKernel kernels[] = {
    kernel<StridedSliceKernel>("StridedSlice"),
    kernel<StridedSliceGradKernel>("StridedSliceGrad"),
    kernel<ReverseKernel>("Reverse"),
};

}  // namespace
}  // namespace kolo
