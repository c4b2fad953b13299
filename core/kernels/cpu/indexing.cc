#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <type_traits>
#include <utility>

#include <kolo/core/kernels/cpu/element_bits.h>
#include <kolo/core/kernels/cpu/element_types.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/kernels/parallel.h>
#include <kolo/core/kernels/row_numbers.h>
#include <kolo/core/ops/indexing.h>

namespace kolo {
namespace {

// params as [outer, rows, inner] around the axis.
struct RowBlocks {
  std::int64_t outer = 1, rows = 1, inner = 1;
  RowBlocks(const Shape& params, int wished) {
    const int axis = wished < 0 ? wished + params.rank() : wished;
    for (int i = 0; i < params.rank(); ++i) (i < axis ? outer : i == axis ? rows : inner) *= params.dims()[i];
  }
};

class GatherKernel final : public Kernel {
 public:
  explicit GatherKernel(KernelInit& init) : axis_(init.attr<int>("axis")) {}
  void compute(KernelContext& context) override {
    const Tensor &params = context.input(0), &indices = context.input(1);
    const RowBlocks blocks(params.shape(), axis_);
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
    const RowBlocks blocks(dx.shape(), axis_);
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
  return make_kernel<K>;
}

const RegisterKernel gather_kernels[] = {
    {"Gather", "CPU", {}, factory<GatherKernel>()},
    {"GatherGrad", "CPU", {DType::f32, DType::f64}, factory<GatherGradKernel>()},
};

template <typename Index>
class OneHotKernel final : public Kernel {
 public:
  explicit OneHotKernel(KernelInit& init)
      : depth_(init.attr<std::int64_t>("depth")),
        axis_(init.attr<int>("axis")),
        on_(init.attr<double>("on")),
        off_(init.attr<double>("off")) {}

  void compute(KernelContext& context) override {
    const Tensor& y = context.output(0);
    detail::with_bits(size_of(y.dtype()), [&](auto tag) {
      using Bits = typename decltype(tag)::type;
      fill(context.input(0), detail::bits_of<Bits>(on_, y.dtype()), detail::bits_of<Bits>(off_, y.dtype()),
           reinterpret_cast<Bits*>(y.raw()));
    });
  }

 private:
  // y is [outer, depth, inner] where the indices are [outer, inner].
  template <typename Bits>
  void fill(const Tensor& indices, Bits on, Bits off, Bits* y) const {
    const auto& dims = indices.shape().dims();
    std::int64_t outer = 1;
    for (std::size_t axis = 0; axis < (axis_ < 0 ? dims.size() : static_cast<std::size_t>(axis_)); ++axis)
      outer *= dims[axis];
    if (indices.elements() == 0) return;
    const std::int64_t inner = indices.elements() / outer, block = depth_ * inner;
    const Index* index = indices.data<Index>();
    parallel_for(outer, std::max<std::int64_t>(1, kElementGrain / std::max<std::int64_t>(1, block)),
                 [=, this](std::int64_t begin, std::int64_t end) {
                   std::fill(y + begin * block, y + end * block, off);
                   for (std::int64_t o = begin; o < end; ++o)
                     for (std::int64_t i = 0; i < inner; ++i) {
                       const auto at = static_cast<std::int64_t>(index[o * inner + i]);
                       if (at >= 0 && at < depth_) y[o * block + at * inner + i] = on;
                     }
                 });
  }

  std::int64_t depth_;
  int axis_;
  double on_;
  double off_;
};

template <typename Index>
RegisterKernel kernel() {
  return RegisterKernel("OneHot", "CPU", {dtype_of<Index>()}, make_kernel<OneHotKernel<Index>>);
}

const RegisterKernel one_hot_kernels[] = {kernel<std::int32_t>(), kernel<std::int64_t>(),
                                          kernel<std::uint8_t>()};

// Rows that are worth a thread of their own.
std::int64_t row_grain(std::int64_t columns) {
  return std::max<std::int64_t>(1, kElementGrain / std::max<std::int64_t>(1, columns));
}

template <typename T>
bool is_larger(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && !std::isnan(b);
  return a > b;
}

// The best so far are a heap with the worst of them in front; it lies in the output, so that no other memory
// is needed.
template <typename T>
void top_of_row(const T* x, std::int64_t columns, std::int64_t k, T* values, std::int32_t* indices) {
  const auto better = [x](std::int32_t a, std::int32_t b) {
    return is_larger(x[a], x[b]) || (!is_larger(x[b], x[a]) && a < b);
  };
  std::int32_t* end = indices + k;
  std::iota(indices, end, 0);
  std::make_heap(indices, end, better);
  for (std::int64_t i = k; i < columns; ++i) {
    const auto candidate = static_cast<std::int32_t>(i);
    if (!better(candidate, indices[0])) continue;
    std::pop_heap(indices, end, better);
    end[-1] = candidate;
    std::push_heap(indices, end, better);
  }
  std::sort_heap(indices, end, better);
  for (std::int64_t i = 0; i < k; ++i) values[i] = x[indices[i]];
}

template <typename T>
void top_k(KernelContext& context) {
  const Tensor& x = context.input(0);
  const std::int64_t k = context.output(0).shape().dims().back(), columns = x.shape().dims().back();
  if (k == 0 || x.elements() == 0) return;
  const T* from = x.data<T>();
  T* values = context.output(0).data<T>();
  std::int32_t* indices = context.output(1).data<std::int32_t>();
  parallel_for(x.elements() / columns, row_grain(columns), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row)
      top_of_row(from + row * columns, columns, k, values + row * k, indices + row * k);
  });
}

template <typename T>
void top_k_grad(KernelContext& context) {
  const Tensor& dx = context.output(0);
  const std::int64_t k = context.input(0).shape().dims().back(), columns = dx.shape().dims().back();
  if (dx.elements() == 0) return;
  detail::with_row_numbers(context.input(1), columns, [](const auto*) {});
  const T* dy = context.input(0).data<T>();
  const std::int32_t* indices = context.input(1).data<std::int32_t>();
  T* to = dx.data<T>();
  parallel_for(dx.elements() / columns, row_grain(columns), [=](std::int64_t begin, std::int64_t end) {
    std::fill(to + begin * columns, to + end * columns, T(0));
    for (std::int64_t row = begin; row < end; ++row)
      for (std::int64_t i = row * k; i < (row + 1) * k; ++i) to[row * columns + indices[i]] = dy[i];
  });
}

class InTopKKernel final : public Kernel {
 public:
  explicit InTopKKernel(KernelInit& init) : k_(init.attr<std::int64_t>("k")) {}

  void compute(KernelContext& context) override {
    const bool narrow = context.input(1).dtype() == DType::i32;
    if (context.input(0).dtype() == DType::f32)
      return narrow ? run<float, std::int32_t>(context) : run<float, std::int64_t>(context);
    return narrow ? run<double, std::int32_t>(context) : run<double, std::int64_t>(context);
  }

 private:
  template <typename T, typename Index>
  void run(const KernelContext& context) const {
    const Tensor& predictions = context.input(0);
    const std::int64_t classes = predictions.shape().dims()[1];
    const T* x = predictions.data<T>();
    const Index* targets = context.input(1).data<Index>();
    bool* y = context.output(0).data<bool>();
    parallel_for(predictions.shape().dims()[0], row_grain(classes),
                 [=, this](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t row = begin; row < end; ++row)
                     y[row] = is_among_top(x + row * classes, classes, targets[row]);
                 });
  }

  template <typename T>
  bool is_among_top(const T* x, std::int64_t classes, std::int64_t target) const {
    if (target < 0 || target >= classes) return false;
    std::int64_t larger = 0;
    for (std::int64_t i = 0; i < classes; ++i) {
      if (!std::isfinite(x[i])) return false;
      larger += x[i] > x[target] ? 1 : 0;
    }
    return larger < k_;
  }

  std::int64_t k_;
};

const RegisterKernel top_k_kernels[] = {
    {"TopK", "CPU", {DType::f32}, top_k<float>},
    {"TopK", "CPU", {DType::f64}, top_k<double>},
    {"TopK", "CPU", {DType::i32}, top_k<std::int32_t>},
    {"TopK", "CPU", {DType::i64}, top_k<std::int64_t>},
    {"TopKGrad", "CPU", {DType::f32}, top_k_grad<float>},
    {"TopKGrad", "CPU", {DType::f64}, top_k_grad<double>},
    {"InTopK", "CPU", {DType::f32, DType::f64}, make_kernel<InTopKKernel>},
};

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

const RegisterKernel segment_kernels[] = {
    {"UnsortedSegmentSum", "CPU", {DType::f32}, segment_sum<float>},
    {"UnsortedSegmentSum", "CPU", {DType::f64}, segment_sum<double>},
    {"UnsortedSegmentSum", "CPU", {DType::i32}, segment_sum<std::int32_t>},
    {"UnsortedSegmentSum", "CPU", {DType::i64}, segment_sum<std::int64_t>},
    {"SlicesToDense", "CPU", {DType::f32}, segment_sum<float>},
    {"SlicesToDense", "CPU", {DType::f64}, segment_sum<double>},
    {"SlicesToDense", "CPU", {DType::i32}, segment_sum<std::int32_t>},
    {"SlicesToDense", "CPU", {DType::i64}, segment_sum<std::int64_t>},
};

// The bits of SlicesToDense and of the sum behind it, but that rows which nobody names keep a −0.
template <typename T>
class AddRowsKernel final : public Kernel {
 public:
  explicit AddRowsKernel(KernelInit& init) {
    const std::int64_t numbers = init.input_shape(0).dim(0) + init.input_shape(1).elements();
    init.request_scratch(static_cast<std::size_t>(numbers) * sizeof(std::int64_t));
  }

  void compute(KernelContext& context) override {
    const Tensor &dense = context.input(0), &numbers = context.input(1), &sum = context.output(0);
    if (sum.raw() != dense.raw()) sum.copy_from(dense);
    const std::int64_t rows = sum.shape().dim(0), count = numbers.elements();
    auto* const first = reinterpret_cast<std::int64_t*>(context.scratch());
    auto* const next = first + rows;
    detail::with_row_numbers(numbers, rows, [&](const auto* checked) {
      // The places of each row as a list, in their order.
      std::fill(first, next, std::int64_t{-1});
      for (std::int64_t i = count; i-- > 0;) next[i] = std::exchange(first[checked[i]], i);
    });
    if (sum.elements() == 0 || count == 0) return;
    const std::int64_t width = sum.elements() / rows;
    parallel_for(rows, kElementGrain / std::max<std::int64_t>(1, count * width / rows) + 1,
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t row = begin; row < end; ++row)
                     if (first[row] >= 0)
                       add(context.input(2).template data<T>(), sum.data<T>() + row * width, width,
                           first[row], next);
                 });
  }

 private:
  static constexpr std::int64_t kPiece = 64;
  static void add(const T* values, T* row, std::int64_t width, std::int64_t first, const std::int64_t* next) {
    for (std::int64_t column = 0; column < width; column += kPiece) {
      const std::int64_t end = std::min(kPiece, width - column);
      T sum[kPiece] = {};
      for (std::int64_t i = first; i >= 0; i = next[i])
        for (std::int64_t k = 0; k < end; ++k) sum[k] += values[i * width + column + k];
      for (std::int64_t k = 0; k < end; ++k) row[column + k] += sum[k];
    }
  }
};

const RegisterKernel add_rows_f32(detail::kAddRowsOp, "CPU", {DType::f32}, make_kernel<AddRowsKernel<float>>);
const RegisterKernel add_rows_f64(detail::kAddRowsOp, "CPU", {DType::f64},
                                  make_kernel<AddRowsKernel<double>>);

class RangeKernel final : public Kernel {
 public:
  explicit RangeKernel(KernelInit& init)
      : start_(init.attr<double>("start")), delta_(init.attr<double>("delta")) {}

  void compute(KernelContext& context) override {
    const Tensor& y = context.output(0);
    detail::with_type(y.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_arithmetic_v<T>) fill(y.data<T>(), y.elements());
    });
  }

 private:
  // Each number from its position: a sum of deltas would gather their rounding. Whole numbers are exact in
  // double.
  template <typename T>
  void fill(T* y, std::int64_t count) const {
    parallel_for(count, kElementGrain, [=, this](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        y[i] = static_cast<T>(start_ + static_cast<double>(i) * delta_);
    });
  }
  double start_;
  double delta_;
};

const RegisterKernel range("Range", "CPU", {DType::f32, DType::f64, DType::i32, DType::i64},
                           make_kernel<RangeKernel>);

}  // namespace

}  // namespace kolo
