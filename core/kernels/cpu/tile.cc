#include <memory>
#include <vector>

#include <kolo/core/kernels/cpu/reduce.h>
#include <kolo/core/kernels/cpu/strided_copy.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo {
namespace {

const std::vector<DType> kNumeric = {DType::f32, DType::f64, DType::i32, DType::i64, DType::boolean,
                                     DType::u8,  DType::i8,  DType::f16, DType::bf16};

class TileKernel final : public Kernel {
 public:
  explicit TileKernel(KernelInit& init) : multiples_(init.attr<std::vector<std::int64_t>>("multiples")) {}
  void compute(KernelContext& context) override {
    const Tensor& x = context.input(0);
    const auto& dims = x.shape().dims();
    std::int64_t stride = x.elements();
    detail::StridedIndex<1> index;
    for (std::size_t axis = 0; axis < dims.size(); ++axis) {
      stride = dims[axis] == 0 ? 0 : stride / dims[axis];
      index.push(multiples_[axis], {0});
      index.push(dims[axis], {stride});
    }
    detail::gather_strided(index, size_of(x.dtype()), x.raw(), context.output(0).raw());
  }

 private:
  std::vector<std::int64_t> multiples_;
};

template <typename T>
class TileGradKernel final : public Kernel {
 public:
  explicit TileGradKernel(KernelInit& init) : multiples_(init.attr<std::vector<std::int64_t>>("multiples")) {}
  void compute(KernelContext& context) override {
    const auto& dims = context.output(0).shape().dims();
    // dy with each dimension as (repetition, own): the repetitions are summed away.
    std::vector<std::int64_t> pairs;
    for (std::size_t axis = 0; axis < dims.size(); ++axis) {
      pairs.push_back(multiples_[axis]);
      pairs.push_back(dims[axis]);
    }
    const detail::FoldIndex index(Shape(std::move(pairs)), [](int axis) { return axis % 2 == 0; });
    T* dx = context.output(0).data<T>();
    detail::fold<detail::SumFold>(index, context.input(0).data<T>(),
                                  [dx](std::int64_t i, auto sum) { dx[i] = static_cast<T>(sum); });
  }

 private:
  std::vector<std::int64_t> multiples_;
};

void broadcast_to(KernelContext& context) {
  const Tensor& x = context.input(0);
  const Tensor& y = context.output(0);
  detail::gather_strided(detail::broadcast_index_to(y.shape(), x.shape()), size_of(x.dtype()), x.raw(),
                         y.raw());
}

template <typename K>
RegisterKernel kernel(const char* op, const std::vector<DType>& types) {
  return RegisterKernel(op, "CPU", types, [](KernelInit& init) -> std::unique_ptr<Kernel> {
    return std::make_unique<K>(init);
  });
}

const RegisterKernel kernels[] = {
    kernel<TileKernel>("Tile", kNumeric),
    kernel<TileGradKernel<float>>("TileGrad", {DType::f32}),
    kernel<TileGradKernel<double>>("TileGrad", {DType::f64}),
    RegisterKernel("BroadcastTo", "CPU", kNumeric, broadcast_to),
};

}  // namespace
}  // namespace kolo
