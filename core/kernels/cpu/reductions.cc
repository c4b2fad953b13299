#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include <kolo/core/kernels/cpu/element_types.h>
#include <kolo/core/kernels/cpu/reduce.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/kernels/parallel.h>

namespace kolo {
namespace {

using Axes = std::vector<std::int64_t>;
using detail::FoldIndex;

// The axes of an op's attribute, as the shape function has checked them.
class AxisSet {
 public:
  explicit AxisSet(const KernelInit& init) : axes_(init.attr<Axes>("axes")) {}
  bool contains(int axis, int rank) const {
    if (axes_.empty()) return true;
    for (const std::int64_t own : axes_)
      if (own == axis || own == axis - rank) return true;
    return false;
  }

 private:
  Axes axes_;
};

FoldIndex fold_index(const Shape& x, const AxisSet& axes) {
  return FoldIndex(x, [&](int axis) { return axes.contains(axis, static_cast<int>(x.dims().size())); });
}

template <typename Fold, typename T>
class ReduceKernel final : public Kernel {
 public:
  explicit ReduceKernel(KernelInit& init) : axes_(init) {}
  void compute(KernelContext& context) override {
    const Tensor& x = context.input(0);
    T* y = context.output(0).data<T>();
    detail::fold<Fold>(fold_index(x.shape(), axes_), x.data<T>(),
                       [y](std::int64_t i, auto value) { y[i] = static_cast<T>(value); });
  }

 private:
  AxisSet axes_;
};

template <typename T>
class MeanKernel final : public Kernel {
 public:
  explicit MeanKernel(KernelInit& init) : axes_(init) {}
  void compute(KernelContext& context) override {
    const Tensor& x = context.input(0);
    T* y = context.output(0).data<T>();
    const FoldIndex index = fold_index(x.shape(), axes_);
    const auto count = static_cast<double>(index.folded.elements());
    detail::fold<detail::SumFold>(index, x.data<T>(),
                                  [=](std::int64_t i, double sum) { y[i] = static_cast<T>(sum / count); });
  }

 private:
  AxisSet axes_;
};

// Where each element of x stands in the folded tensor: a stride of 0 along folded dimensions.
detail::StridedIndex<1> unfold_index(const Shape& x, const AxisSet& axes) {
  const auto& dims = x.dims();
  const int rank = static_cast<int>(dims.size());
  std::int64_t stride = 1;
  for (int axis = 0; axis < rank; ++axis)
    if (!axes.contains(axis, rank)) stride *= dims[axis];
  detail::StridedIndex<1> index;
  for (int axis = 0; axis < rank; ++axis) {
    const bool folded = axes.contains(axis, rank);
    if (!folded && dims[axis] > 0) stride /= dims[axis];
    index.push(dims[axis], {folded ? 0 : stride});
  }
  return index;
}

template <typename T>
class SumGradKernel final : public Kernel {
 public:
  explicit SumGradKernel(KernelInit& init) : axes_(init), mean_(init.attr<bool>("mean")) {}
  void compute(KernelContext& context) override {
    const Tensor& dy = context.input(0);
    const Tensor& dx = context.output(0);
    if (dx.elements() == 0) return;
    const auto index = unfold_index(dx.shape(), axes_);
    const T* from = dy.data<T>();
    T* to = dx.data<T>();
    const std::int64_t folded = dx.elements() / dy.elements();
    const T count = mean_ ? static_cast<T>(folded) : T(1);
    const std::int64_t row = index.row_elements(), step = index.row_strides()[0];
    parallel_for(index.rows(), std::max<std::int64_t>(1, kElementGrain / row),
                 [&](std::int64_t begin, std::int64_t end) {
                   index.for_rows(begin, end, [&](std::int64_t at, const auto& offsets) {
                     T* out = to + at * row;
                     const T* in = from + offsets[0];
                     if (step == 0) std::fill_n(out, row, *in / count);
                     else
                       for (std::int64_t i = 0; i < row; ++i) out[i] = in[i] / count;
                   });
                 });
  }

 private:
  AxisSet axes_;
  bool mean_;
};

// dy · the product of all other elements, without dividing by 0: where one is 0 it alone has such a product
// other than 0, where several are none has.
template <typename T>
class ProductGradKernel final : public Kernel {
 public:
  explicit ProductGradKernel(KernelInit& init) : axes_(init) {}
  void compute(KernelContext& context) override {
    const T* dy = context.input(0).data<T>();
    const T* x = context.input(1).data<T>();
    T* dx = context.output(0).data<T>();
    const FoldIndex index = fold_index(context.input(1).shape(), axes_);
    const std::int64_t row = index.kept.row_elements(), step = index.kept.row_strides()[0];
    const std::int64_t work = std::max<std::int64_t>(1, index.folded.elements());
    parallel_for(index.kept.elements(), std::max<std::int64_t>(1, kElementGrain / work),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t i = begin; i < end; ++i)
                     index.kept.for_rows(i / row, i / row + 1, [&](std::int64_t, const auto& at) {
                       const std::int64_t base = at[0] + i % row * step;
                       differentiate(index.folded, dy[i], x + base, dx + base);
                     });
                 });
  }

 private:
  static void differentiate(const detail::StridedIndex<1>& folded, double dy, const T* x, T* dx) {
    double product = dy;
    std::int64_t zeros = 0;
    for_elements(folded, [&](std::int64_t at) {
      if (x[at] == 0) ++zeros;
      else product *= x[at];
    });
    for_elements(folded, [&](std::int64_t at) {
      if (zeros == 0) dx[at] = static_cast<T>(product / x[at]);
      else dx[at] = zeros == 1 && x[at] == 0 ? static_cast<T>(product) : T(0);
    });
  }
  template <typename Body>
  static void for_elements(const detail::StridedIndex<1>& index, const Body& body) {
    const std::int64_t row = index.row_elements(), step = index.row_strides()[0];
    index.for_rows(0, index.rows(), [&](std::int64_t, const auto& offsets) {
      for (std::int64_t i = 0; i < row; ++i) body(offsets[0] + i * step);
    });
  }
  AxisSet axes_;
};

// dy to the elements that equal the result, in equal shares.
template <typename T>
class ExtremumGradKernel final : public Kernel {
 public:
  explicit ExtremumGradKernel(KernelInit& init) : axes_(init) {
    init.request_scratch(static_cast<std::size_t>(init.input_shape(0).elements()) * sizeof(std::int64_t));
  }
  void compute(KernelContext& context) override {
    const T* dy = context.input(0).data<T>();
    const T* y = context.input(1).data<T>();
    const T* x = context.input(2).data<T>();
    T* dx = context.output(0).data<T>();
    auto* counts = reinterpret_cast<std::int64_t*>(context.scratch());
    std::fill_n(counts, context.input(0).elements(), 0);
    const auto index = unfold_index(context.output(0).shape(), axes_);
    for_elements(index, [&](std::int64_t i, std::int64_t of) { counts[of] += x[i] == y[of] ? 1 : 0; });
    for_elements(index, [&](std::int64_t i, std::int64_t of) {
      dx[i] = x[i] == y[of] ? dy[of] / static_cast<T>(counts[of]) : T(0);
    });
  }

 private:
  template <typename Body>
  static void for_elements(const detail::StridedIndex<1>& index, const Body& body) {
    const std::int64_t row = index.row_elements(), step = index.row_strides()[0];
    index.for_rows(0, index.rows(), [&](std::int64_t at, const auto& offsets) {
      for (std::int64_t i = 0; i < row; ++i) body(at * row + i, offsets[0] + i * step);
    });
  }
  AxisSet axes_;
};

template <typename T>
void sum_like(KernelContext& context) {
  const Tensor& dy = context.input(0);
  const Tensor& dx = context.output(0);
  if (dy.shape() == dx.shape()) {
    if (dy.raw() != dx.raw()) dx.copy_from(dy);
    return;
  }
  const auto& from = dy.shape().dims();
  const auto& to = dx.shape().dims();
  const int missing = static_cast<int>(from.size()) - static_cast<int>(to.size());
  const FoldIndex index(dy.shape(),
                        [&](int axis) { return axis < missing || to[axis - missing] != from[axis]; });
  T* sums = dx.data<T>();
  detail::fold<detail::SumFold>(index, dy.data<T>(),
                                [sums](std::int64_t i, auto sum) { sums[i] = static_cast<T>(sum); });
}

template <typename T, typename Better>
class PositionKernel final : public Kernel {
 public:
  explicit PositionKernel(KernelInit& init) : axis_(init.attr<int>("axis")) {}
  void compute(KernelContext& context) override {
    const Tensor& x = context.input(0);
    const T* from = x.data<T>();
    std::int64_t* to = context.output(0).data<std::int64_t>();
    const int rank = x.shape().rank(), axis = axis_ < 0 ? axis_ + rank : axis_;
    std::int64_t inner = 1;
    for (int i = axis + 1; i < rank; ++i) inner *= x.shape().dim(i);
    const std::int64_t count = x.shape().dim(axis);
    parallel_for(context.output(0).elements(), std::max<std::int64_t>(1, kElementGrain / count),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t i = begin; i < end; ++i)
                     to[i] = first_best(from + i / inner * inner * count + i % inner, count, inner);
                 });
  }

 private:
  static std::int64_t first_best(const T* x, std::int64_t count, std::int64_t step) {
    std::int64_t best = 0;
    for (std::int64_t i = 1; i < count; ++i)
      if (Better()(x[i * step], x[best * step])) best = i;
    return best;
  }
  int axis_;
};

template <typename T>
void register_kernels_of() {
  const std::vector<DType> type = {dtype_of<T>()};
  RegisterKernel("ReduceSum", "CPU", type, make_kernel<ReduceKernel<detail::SumFold, T>>);
  RegisterKernel("ReduceProd", "CPU", type, make_kernel<ReduceKernel<detail::ProductFold, T>>);
  RegisterKernel("ReduceMax", "CPU", type, make_kernel<ReduceKernel<detail::MaxFold, T>>);
  RegisterKernel("ReduceMin", "CPU", type, make_kernel<ReduceKernel<detail::MinFold, T>>);
  RegisterKernel("ArgMax", "CPU", type, make_kernel<PositionKernel<T, std::greater<T>>>);
  RegisterKernel("ArgMin", "CPU", type, make_kernel<PositionKernel<T, std::less<T>>>);
  RegisterKernel("SumLike", "CPU", type, sum_like<T>);
  if constexpr (std::is_floating_point_v<T>) {
    RegisterKernel("ReduceMean", "CPU", type, make_kernel<MeanKernel<T>>);
    RegisterKernel("ReduceSumGrad", "CPU", type, make_kernel<SumGradKernel<T>>);
    RegisterKernel("ReduceProdGrad", "CPU", type, make_kernel<ProductGradKernel<T>>);
    RegisterKernel("ReduceExtremumGrad", "CPU", type, make_kernel<ExtremumGradKernel<T>>);
  }
}

const bool registered = [] {
  register_kernels_of<float>();
  register_kernels_of<double>();
  register_kernels_of<std::int32_t>();
  register_kernels_of<std::int64_t>();
  const std::vector<DType> logical = {DType::boolean};
  RegisterKernel("ReduceAny", "CPU", logical, make_kernel<ReduceKernel<detail::AnyFold, bool>>);
  RegisterKernel("ReduceAll", "CPU", logical, make_kernel<ReduceKernel<detail::AllFold, bool>>);
  return true;
}();

// x is [outer, count, inner], summed along count; neighbours of `inner` together, so that memory is read in
// its order.
template <typename T>
class CumsumKernel final : public Kernel {
 public:
  explicit CumsumKernel(KernelInit& init)
      : axis_(init.attr<int>("axis")),
        exclusive_(init.attr<bool>("exclusive")),
        reverse_(init.attr<bool>("reverse")) {}

  void compute(KernelContext& context) override {
    const Tensor& x = context.input(0);
    if (x.elements() == 0) return;
    const auto& dims = x.shape().dims();
    const auto axis = static_cast<std::size_t>(axis_ < 0 ? axis_ + static_cast<int>(dims.size()) : axis_);
    const std::int64_t count = dims[axis];
    std::int64_t inner = 1;
    for (std::size_t i = axis + 1; i < dims.size(); ++i) inner *= dims[i];
    const std::int64_t outer = x.elements() / (count * inner), blocks = (inner + kBlock - 1) / kBlock;
    const T* from = x.data<T>();
    T* to = context.output(0).data<T>();
    parallel_for(outer * blocks, std::max<std::int64_t>(1, kElementGrain / (count * std::min(kBlock, inner))),
                 [=, this](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t i = begin; i < end; ++i) {
                     const std::int64_t column = i % blocks * kBlock,
                                        at = i / blocks * count * inner + column;
                     sum_columns(from + at, to + at, count, inner, std::min(kBlock, inner - column));
                   }
                 });
  }

 private:
  static constexpr std::int64_t kBlock = 64;

  void sum_columns(const T* x, T* y, std::int64_t count, std::int64_t step, std::int64_t columns) const {
    std::array<detail::Wide<T>, kBlock> sums{};
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t at = (reverse_ ? count - 1 - i : i) * step;
      for (std::int64_t column = 0; column < columns; ++column) {
        // Read first: y may be x.
        const auto element = static_cast<detail::Wide<T>>(x[at + column]);
        if (exclusive_) y[at + column] = static_cast<T>(sums[column]);
        sums[column] += element;
        if (!exclusive_) y[at + column] = static_cast<T>(sums[column]);
      }
    }
  }

  int axis_;
  bool exclusive_;
  bool reverse_;
};

template <typename T>
RegisterKernel cumsum_kernel() {
  return RegisterKernel("Cumsum", "CPU", {dtype_of<T>()}, make_kernel<CumsumKernel<T>>);
}

const RegisterKernel cumsum_kernels[] = {cumsum_kernel<float>(), cumsum_kernel<double>(),
                                         cumsum_kernel<std::int32_t>(), cumsum_kernel<std::int64_t>()};

// Elements that one thread sums at a time: what is summed with what follows from the sizes alone.
constexpr std::int64_t kBlock = 4096;
constexpr int kLanes = 8;

template <typename T>
double sum_of_squares(const T* x, std::int64_t count) {
  std::array<double, kLanes> sums{};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) {
      const auto value = static_cast<double>(x[i + lane]);
      sums[lane] += value * value;
    }
  double sum = 0;
  for (; i < count; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  for (const double lane : sums) sum += lane;
  return sum;
}

template <typename T>
class GlobalNormKernel final : public Kernel {
 public:
  explicit GlobalNormKernel(KernelInit&) {}
  void compute(KernelContext& context) override {
    double total = 0;
    for (int i = 0; i < context.num_inputs(); ++i) total += of(context.input(i));
    *context.output(0).template data<T>() = static_cast<T>(std::sqrt(total));
  }

 private:
  double of(const Tensor& x) {
    const std::int64_t count = x.elements(), blocks = (count + kBlock - 1) / kBlock;
    sums_.resize(std::max(sums_.size(), static_cast<std::size_t>(blocks)));
    parallel_for(blocks, kElementGrain / kBlock, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t block = begin; block < end; ++block)
        sums_[block] = sum_of_squares(x.data<T>() + block * kBlock, std::min(kBlock, count - block * kBlock));
    });
    double sum = 0;
    for (std::int64_t block = 0; block < blocks; ++block) sum += sums_[block];
    return sum;
  }

  std::vector<double> sums_;  // of blocks; keeps its capacity from step to step
};

const RegisterKernel global_norm_f32("GlobalNorm", "CPU", {DType::f32}, make_kernel<GlobalNormKernel<float>>);
const RegisterKernel global_norm_f64("GlobalNorm", "CPU", {DType::f64},
                                     make_kernel<GlobalNormKernel<double>>);

// x · 0 is 0 exactly where x is finite, else NaN: one sum tells.
template <typename T>
bool is_finite(const T* x, std::int64_t begin, std::int64_t end) {
  using Number = detail::Computed<T>;
  Number sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = begin; i < end; ++i) sum += static_cast<Number>(x[i]) * Number(0);
  return sum == 0;
}

template <typename T>
bool is_finite(const Tensor& x) {
  std::atomic<bool> finite{true};
  parallel_for(x.elements(), kElementGrain, [&](std::int64_t begin, std::int64_t end) {
    if (!is_finite(x.data<T>(), begin, end)) finite.store(false);
  });
  return finite.load();
}

bool is_finite(const Tensor& x) {
  switch (x.dtype()) {
    case DType::f32: return is_finite<float>(x);
    case DType::f64: return is_finite<double>(x);
    case DType::f16: return is_finite<Half>(x);
    default: return is_finite<BFloat16>(x);
  }
}

void all_finite(KernelContext& context) {
  bool finite = true;
  for (int i = 0; finite && i < context.num_inputs(); ++i) finite = is_finite(context.input(i));
  *context.output(0).data<bool>() = finite;
}

const RegisterKernel all_finite_kernel("AllFinite", "CPU", {DType::f32, DType::f64, DType::f16, DType::bf16},
                                       all_finite);

}  // namespace

}  // namespace kolo
