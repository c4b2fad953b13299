#include <algorithm>

#include <kolo/core/kernels/cpu/parallel.h>
#include <kolo/core/kernels/cpu/row_numbers.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo {
namespace {

// Each thread makes its own rows of the result and goes through all of the input for them: rows are added in
// their order, and memory that nobody names is written once.
template <typename T, typename Index>
void add_rows(const Tensor& from, const Index* numbers, std::int64_t count, const Tensor& to) {
  const std::int64_t rows = to.shape().dim(0);
  if (to.elements() == 0) return;
  const std::int64_t width = to.elements() / rows;
  const std::int64_t work = std::max<std::int64_t>(1, width + count * width / rows);
  parallel_for(rows, kElementGrain / work + 1, [&](std::int64_t begin, std::int64_t end) {
    T* sums = to.data<T>();
    std::fill(sums + begin * width, sums + end * width, T(0));
    for (std::int64_t i = 0; i < count; ++i) {
      if (numbers[i] < begin || numbers[i] >= end) continue;
      T* sum = sums + numbers[i] * width;
      const T* row = from.data<T>() + i * width;
      for (std::int64_t k = 0; k < width; ++k) sum[k] += row[k];
    }
  });
}

template <typename T>
void segment_sum(KernelContext& context) {
  const Tensor &rows = context.input(0), &numbers = context.input(1), &sums = context.output(0);
  detail::with_row_numbers(numbers, sums.shape().dim(0), [&](const auto* checked) {
    add_rows<T>(rows, checked, numbers.elements(), sums);
  });
}

const RegisterKernel kernels[] = {
    {"UnsortedSegmentSum", "CPU", {DType::f32}, segment_sum<float>},
    {"UnsortedSegmentSum", "CPU", {DType::f64}, segment_sum<double>},
    {"UnsortedSegmentSum", "CPU", {DType::i32}, segment_sum<std::int32_t>},
    {"UnsortedSegmentSum", "CPU", {DType::i64}, segment_sum<std::int64_t>},
    {"SlicesToDense", "CPU", {DType::f32}, segment_sum<float>},
    {"SlicesToDense", "CPU", {DType::f64}, segment_sum<double>},
    {"SlicesToDense", "CPU", {DType::i32}, segment_sum<std::int32_t>},
    {"SlicesToDense", "CPU", {DType::i64}, segment_sum<std::int64_t>},
};

}  // namespace
}  // namespace kolo
