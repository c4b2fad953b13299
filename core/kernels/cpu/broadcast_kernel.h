// The kernel of every op that combines two tensors element by element with broadcasting.
#pragma once

#include <algorithm>

#include <kolo/core/kernels/cpu/loops/element_loops.h>
#include <kolo/core/kernels/cpu/strided_index.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/kernels/parallel.h>

namespace kolo::detail {

class BroadcastKernel final : public Kernel {
 public:
  explicit BroadcastKernel(BinaryLoop loop) : loop_(loop) {}

  void compute(KernelContext& context) override {
    const Tensor& a = context.input(0);
    const Tensor& b = context.input(1);
    const Tensor& out = context.output(0);
    const auto in_size = static_cast<std::int64_t>(size_of(a.dtype()));
    const auto out_size = static_cast<std::int64_t>(size_of(out.dtype()));
    const auto index = broadcast_index(a.shape(), b.shape(), out.shape());
    const std::int64_t row = index.row_elements();
    const auto [a_step, b_step] = index.row_strides();
    if (index.rank() <= 1) {
      parallel_for(index.elements(), kElementGrain,
                   [&, a_step = a_step, b_step = b_step](std::int64_t begin, std::int64_t end) {
                     loop_(a.raw() + begin * a_step * in_size, a_step, b.raw() + begin * b_step * in_size,
                           b_step, out.raw() + begin * out_size, end - begin);
                   });
      return;
    }
    const std::int64_t grain = std::max<std::int64_t>(1, kElementGrain / std::max<std::int64_t>(1, row));
    parallel_for(index.rows(), grain,
                 [&, a_step = a_step, b_step = b_step](std::int64_t begin, std::int64_t end) {
                   index.for_rows(begin, end, [&](std::int64_t at, const auto& offsets) {
                     loop_(a.raw() + offsets[0] * in_size, a_step, b.raw() + offsets[1] * in_size, b_step,
                           out.raw() + at * row * out_size, row);
                   });
                 });
  }

 private:
  BinaryLoop loop_;
};

}  // namespace kolo::detail
