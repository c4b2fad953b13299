#include <algorithm>
#include <cstring>
#include <memory>

#include <kolo/core/kernels/cpu/parallel.h>
#include <kolo/core/kernels/cpu/row_numbers.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo {
namespace {

// params as [outer, rows, inner] around the axis.
struct Blocks {
  std::int64_t outer = 1, rows = 1, inner = 1;
  Blocks(const Shape& params, int wished) {
    const int axis = wished < 0 ? wished + params.rank() : wished;
    for (int i = 0; i < params.rank(); ++i) (i < axis ? outer : i == axis ? rows : inner) *= params.dims()[i];
  }
};

class GatherKernel final : public Kernel {
 public:
  explicit GatherKernel(KernelInit& init) : axis_(init.attr<int>("axis")) {}
  void compute(KernelContext& context) override {
    const Tensor &params = context.input(0), &indices = context.input(1);
    const Blocks blocks(params.shape(), axis_);
    const auto bytes = blocks.inner * static_cast<std::int64_t>(size_of(params.dtype()));
    const std::int64_t count = indices.elements();
    std::byte* y = context.output(0).raw();
    detail::with_row_numbers(indices, blocks.rows, [&](const auto* numbers) {
      if (bytes == 0) return;
      const std::int64_t grain = std::max<std::int64_t>(1, 4 * kElementGrain / bytes);
      parallel_for(blocks.outer * count, grain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i)
          std::memcpy(y + i * bytes, params.raw() + (i / count * blocks.rows + numbers[i % count]) * bytes,
                      static_cast<std::size_t>(bytes));
      });
    });
  }

 private:
  int axis_;
};

class GatherGradKernel final : public Kernel {
 public:
  explicit GatherGradKernel(KernelInit& init) : axis_(init.attr<int>("axis")) {}
  void compute(KernelContext& context) override {
    if (context.input(0).dtype() == DType::f32) add_up<float>(context);
    else add_up<double>(context);
  }

 private:
  template <typename T>
  void add_up(const KernelContext& context) const {
    const Tensor &indices = context.input(1), &dx = context.output(0);
    const Blocks blocks(dx.shape(), axis_);
    const std::int64_t count = indices.elements();
    detail::with_row_numbers(indices, blocks.rows, [&](const auto* numbers) {
      const std::int64_t block = blocks.rows * blocks.inner;
      const std::int64_t work = std::max<std::int64_t>(1, block + count * blocks.inner);
      parallel_for(blocks.outer, kElementGrain / work + 1, [&](std::int64_t begin, std::int64_t end) {
        T* to = dx.data<T>() + begin * block;
        const T* from = context.input(0).data<T>() + begin * count * blocks.inner;
        std::fill_n(to, (end - begin) * block, T(0));
        for (std::int64_t o = begin; o < end; ++o, to += block)
          for (std::int64_t i = 0; i < count; ++i, from += blocks.inner)
            for (std::int64_t k = 0; k < blocks.inner; ++k) to[numbers[i] * blocks.inner + k] += from[k];
      });
    });
  }

  int axis_;
};

template <typename K>
KernelFactory factory() {
  return [](KernelInit& init) -> std::unique_ptr<Kernel> { return std::make_unique<K>(init); };
}

const RegisterKernel kernels[] = {
    {"Gather", "CPU", {}, factory<GatherKernel>()},
    {"GatherGrad", "CPU", {DType::f32, DType::f64}, factory<GatherGradKernel>()},
};

}  // namespace
}  // namespace kolo
