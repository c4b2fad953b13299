#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/kernels/cpu/gemm/packed_gemm.h>
#include <kolo/core/kernels/cpu/gemm/streamed_gemm.h>
#include <kolo/core/kernels/cpu/loops/column_sums.h>
#include <kolo/core/kernels/cpu/onednn/gemm.h>
#include <kolo/core/kernels/cpu/onednn/onednn.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/kernels/own_kernels.h>
#include <kolo/core/kernels/parallel.h>
#include <kolo/core/ops/bf16.h>

namespace kolo {
namespace {

detail::GemmShape gemm_shape(const Shape& a, const Shape& product, bool transpose_a, bool transpose_b) {
  return {product.dim(-2), a.dim(transpose_a ? -2 : -1), product.dim(-1), transpose_a, transpose_b};
}

// How many products: 1 for matrices.
std::int64_t batch_of(const Shape& product) {
  std::int64_t batch = 1;
  for (int axis = 0; axis + 2 < product.rank(); ++axis) batch *= product.dim(axis);
  return batch;
}

std::unique_ptr<Kernel> make_onednn_matmul(KernelInit& init) {
  return detail::make_onednn_kernel(init, {0, 1}, [](const KernelInit& in) {
    auto shape = gemm_shape(in.input_shape(0), in.output_shape(0), in.attr<bool>("transpose_a"),
                            in.attr<bool>("transpose_b"));
    shape.in_bf16 = in.is_marked(kInBf16);
    shape.a = in.input_dtype(0), shape.b = in.input_dtype(1);
    return detail::plan_gemm(shape, batch_of(in.output_shape(0)));
  });
}

// Product: PackedGemm or StreamedGemm.
template <typename Product>
class OwnMatmul final : public Kernel {
 public:
  explicit OwnMatmul(const Product& product) : product_(product) {}

  void compute(KernelContext& context) override {
    product_.run(context.input(0).data<float>(), context.input(1).data<float>(),
                 context.output(0).data<float>(), reinterpret_cast<float*>(context.scratch()));
  }

 private:
  Product product_;
};

template <typename Product>
std::unique_ptr<Kernel> make_own_matmul(KernelInit& init, const Product& product) {
  init.request_scratch(product.scratch_bytes());
  return std::make_unique<OwnMatmul<Product>>(product);
}

// Where a product's operands come from memory, as they do in a step, these are faster than oneDNN's kernels,
// which do not ask for what comes: GFLOP/s on one core that can do 236 (Xeon, family 6 model 167; rows ×
// inner × cols, oneDNN's classic GEMM → packed, the best of 15 by processor time): 2048 × 256 × 768: 154 →
// 177; 2048 × 256 × 256: 155 → 169; 2048 × 256 × 1024: 157 → 174; 2048 × 1024 × 256: 169 → 171; a · bᵀ: 2048
// × 768 × 256: 152 → 167; 2048 × 256 × 256: 149 → 169; 2048 × 1024 × 256: 154 → 162; 2048 × 256 × 1024: 161 →
// 176. All products of gpt's step, three runs in turns with oneDNN's as gemm.cc chooses it: 270, 263, 257 ms
// → 256, 249, 245. With operands in cache it is no faster.
// Likewise those of few rows or few terms, medians with operands from memory: 64 × 3136 × 1024: 91 → 126; 128
// × 784 × 1024: 123 → 147; 128 × 1024 × 1024: 127 → 153; a · bᵀ 64 × 1024 × 3136: 115 → 142; aᵀ · b 3136 × 64
// × 1024: 95 → 150; 1024 × 64 × 1024: 90 → 140; 256 × 2048 × 1024: 144 → 155; 256 × 2048 × 768: 147 → 159;
// 256 × 2048 × 256: 128 → 153; 1024 × 2048 × 256: 142 → 157. Medians in steps: the three of lenet's dense
// layer 11.3 → 8.8 ms; gpt's weight gradients 7.2 → 7.0, 5.4 → 5.0 and 2.05 → 1.8; forward in mlp 1.43 → 1.35
// and 1.74 → 1.63, of which oneDNN's products between them lose 0.1.
std::unique_ptr<Kernel> make_packed_matmul(KernelInit& init) {
  if (init.is_marked(kInBf16)) return init.decline("the packed product computes in f32");
  if (init.threads() > 1) return init.decline("the packed product runs on one thread");
  if (!detail::has_fast_packed_gemm()) return init.decline("the packed product needs AVX-512");
  if (!detail::has_elements(init))
    return init.decline("the packed product needs shapes that are known before the step");
  const auto shape = gemm_shape(init.input_shape(0), init.output_shape(0), init.attr<bool>("transpose_a"),
                                init.attr<bool>("transpose_b"));
  const detail::StreamedGemm streamed{shape.rows, shape.inner, shape.cols, shape.transpose_a,
                                      shape.transpose_b};
  const bool streams = streamed.fits();
  const detail::PackedGemm packed{shape.rows, shape.inner, shape.cols, shape.transpose_b};
  if (!streams && (shape.transpose_a || !packed.fits()))
    return init.decline("neither of the packed products takes this shape (packed_gemm.h, streamed_gemm.cc)");
  const detail::OwnKernel own = !streams                  ? detail::OwnKernel::packed_product
                                : streamed.adds_up_rows() ? detail::OwnKernel::summed_product
                                                          : detail::OwnKernel::streamed_product;
  if (!detail::prefers_own(own)) return init.decline(detail::why_not_own(own));
  return streams ? make_own_matmul(init, streamed) : make_own_matmul(init, packed);
}

// Of elements in whatever order.
std::unique_ptr<Kernel> make_conversion(KernelInit& init) {
  return detail::make_onednn_kernel(init, {0}, [](const KernelInit& in) -> std::optional<detail::OneDnnCall> {
    const auto x = detail::row_major(in.input_dtype(0), in.input_shape(0)),
               y = detail::row_major(in.output_dtype(0), in.output_shape(0));
    const dnnl::reorder::primitive_desc chosen(detail::onednn_engine(), x, detail::onednn_engine(), y,
                                               detail::own_scratch());
    return detail::OneDnnCall(dnnl::reorder(chosen), chosen.scratchpad_desc(), {{DNNL_ARG_FROM, x, x}},
                              {{DNNL_ARG_TO, y, y}});
  });
}

// The plain loop: any type, any strides; for gradient checks in f64 and for matrices without elements.
template <typename T>
class PlainMatmul final : public Kernel {
 public:
  explicit PlainMatmul(const KernelInit& init)
      : transpose_a_(init.attr<bool>("transpose_a")), transpose_b_(init.attr<bool>("transpose_b")) {}

  void compute(KernelContext& context) override {
    const auto shape =
        gemm_shape(context.input(0).shape(), context.output(0).shape(), transpose_a_, transpose_b_);
    const T *a = context.input(0).data<T>(), *b = context.input(1).data<T>();
    T* c = context.output(0).data<T>();
    // Row r of all products is row r % rows of product r / rows.
    parallel_for(batch_of(context.output(0).shape()) * shape.rows, 1,
                 [&](std::int64_t begin, std::int64_t end) {
                   while (begin < end) {
                     const std::int64_t i = begin / shape.rows, first = begin % shape.rows;
                     const std::int64_t last = std::min(shape.rows, first + end - begin);
                     multiply_rows(shape, a + i * shape.rows * shape.inner, b + i * shape.inner * shape.cols,
                                   c + i * shape.rows * shape.cols, first, last);
                     begin += last - first;
                   }
                 });
  }

 private:
  // Blocks of the inner dimension, so that a block's rows of b stay in cache while all rows of a pass.
  void multiply_rows(const detail::GemmShape& shape, const T* a, const T* b, T* c, std::int64_t begin,
                     std::int64_t end) const {
    const std::int64_t a_row = transpose_a_ ? 1 : shape.inner, a_inner = transpose_a_ ? shape.rows : 1;
    const std::int64_t b_inner = transpose_b_ ? 1 : shape.cols, b_col = transpose_b_ ? shape.inner : 1;
    std::fill(c + begin * shape.cols, c + end * shape.cols, T(0));
    for (std::int64_t block = 0; block < shape.inner; block += kInnerBlock)
      for (std::int64_t i = begin; i < end; ++i)
        for (std::int64_t k = block; k < std::min(block + kInnerBlock, shape.inner); ++k) {
          const T factor = a[i * a_row + k * a_inner];
          for (std::int64_t j = 0; j < shape.cols; ++j)
            c[i * shape.cols + j] += factor * b[k * b_inner + j * b_col];
        }
  }

  static constexpr std::int64_t kInnerBlock = 64;
  bool transpose_a_;
  bool transpose_b_;
};

template <typename T>
std::unique_ptr<Kernel> make_plain_matmul(KernelInit& init) {
  return std::make_unique<PlainMatmul<T>>(init);
}

const RegisterKernel packed_matmul("MatMul", "CPU", {DType::f32}, make_packed_matmul, 2);
const RegisterKernel onednn_matmul("MatMul", "CPU", {DType::f32}, make_onednn_matmul, 1);
const RegisterKernel onednn_bf16_matmul(kBf16MatMulOp, "CPU", {DType::bf16, DType::f32}, make_onednn_matmul);
const RegisterKernel plain_matmul_f32("MatMul", "CPU", {DType::f32}, make_plain_matmul<float>);
const RegisterKernel plain_matmul_f64("MatMul", "CPU", {DType::f64}, make_plain_matmul<double>);
const RegisterKernel to_bf16(kToBf16Op, "CPU", {DType::f32}, make_conversion);
const RegisterKernel from_bf16(kFromBf16Op, "CPU", {DType::bf16}, make_conversion);
const RegisterKernel onednn_batch("BatchMatMul", "CPU", {DType::f32}, make_onednn_matmul, 1);
const RegisterKernel plain_batch_f32("BatchMatMul", "CPU", {DType::f32}, make_plain_matmul<float>);
const RegisterKernel plain_batch_f64("BatchMatMul", "CPU", {DType::f64}, make_plain_matmul<double>);

// x seen as [outer, channels, inner].
struct Channels {
  std::int64_t outer;
  std::int64_t channels;
  std::int64_t inner;
};

Channels channels_of(const Shape& x, const std::string& data_format) {
  const int axis = x.rank() == 4 && data_format == "NCHW" ? 1 : x.rank() - 1;
  Channels view{1, x.dim(axis), 1};
  for (int i = 0; i < axis; ++i) view.outer *= x.dim(i);
  for (int i = axis + 1; i < x.rank(); ++i) view.inner *= x.dim(i);
  return view;
}

std::optional<detail::OneDnnCall> plan_bias_add(const KernelInit& init) {
  const Channels view = channels_of(init.input_shape(0), init.attr<std::string>("data_format"));
  const auto x = detail::row_major(DType::f32, {view.outer, view.channels, view.inner});
  const auto bias = detail::row_major(DType::f32, {1, view.channels, 1});
  dnnl::binary::primitive_desc chosen({dnnl::algorithm::binary_add, x, bias, x}, detail::own_scratch(),
                                      detail::onednn_engine(), true);
  if (!chosen || !detail::skip_reference(chosen)) return std::nullopt;
  return detail::OneDnnCall(dnnl::binary(chosen), chosen.scratchpad_desc(),
                            {{DNNL_ARG_SRC_0, x, x}, {DNNL_ARG_SRC_1, bias, bias}}, {{DNNL_ARG_DST, x, x}});
}

std::unique_ptr<Kernel> make_onednn_bias_add(KernelInit& init) {
  return detail::make_onednn_kernel(init, {0, 1}, plan_bias_add);
}

template <typename T>
class PlainBiasAdd final : public Kernel {
 public:
  explicit PlainBiasAdd(const KernelInit& init) : data_format_(init.attr<std::string>("data_format")) {}

  void compute(KernelContext& context) override {
    const Channels view = channels_of(context.input(0).shape(), data_format_);
    const T *x = context.input(0).data<T>(), *bias = context.input(1).data<T>();
    T* y = context.output(0).data<T>();
    parallel_for(view.outer * view.channels, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t plane = begin; plane < end; ++plane)
        for (std::int64_t i = plane * view.inner; i < (plane + 1) * view.inner; ++i)
          y[i] = x[i] + bias[plane % view.channels];
    });
  }

 private:
  std::string data_format_;
};

// Sums over all but the channels, in double: a channel of an image batch has 10^5 elements and more.
template <typename T>
class BiasAddGrad final : public Kernel {
 public:
  explicit BiasAddGrad(const KernelInit& init)
      : view_(channels_of(init.input_shape(0), init.attr<std::string>("data_format"))) {}

  void compute(KernelContext& context) override {
    const T* dy = context.input(0).data<T>();
    T* dbias = context.output(0).data<T>();
    parallel_for(view_.channels, kChannelGrain, [&](std::int64_t begin, std::int64_t end) {
      if (view_.inner == 1) sum_columns(dy, dbias, begin, end);
      else sum_planes(dy, dbias, begin, end);
    });
  }

 private:
  static constexpr std::int64_t kChannelGrain = 16;
  static constexpr std::int64_t kLanes = 16;
  static constexpr std::int64_t kColumns = 1024;  // whose sums stay in the nearest cache

  void sum_columns(const T* dy, T* dbias, std::int64_t begin, std::int64_t end) const {
    for (std::int64_t strip = begin; strip < end; strip += kColumns) {
      const std::int64_t width = std::min(kColumns, end - strip);
      double sums[kColumns] = {};
      detail::add_columns(dy + strip, view_.outer, view_.channels, width, sums);
      for (std::int64_t i = 0; i < width; ++i) dbias[strip + i] = static_cast<T>(sums[i]);
    }
  }

  // One sum for each of kLanes neighbouring elements, so that the compiler may use vectors without reordering
  // a sum.
  void sum_planes(const T* dy, T* dbias, std::int64_t begin, std::int64_t end) const {
    for (std::int64_t channel = begin; channel < end; ++channel) {
      double sums[kLanes] = {};
      for (std::int64_t n = 0; n < view_.outer; ++n) {
        const T* plane = dy + (n * view_.channels + channel) * view_.inner;
        std::int64_t i = 0;
        for (; i + kLanes <= view_.inner; i += kLanes)
          for (std::int64_t lane = 0; lane < kLanes; ++lane) sums[lane] += plane[i + lane];
        for (std::int64_t lane = 0; i + lane < view_.inner; ++lane) sums[lane] += plane[i + lane];
      }
      double total = 0;
      for (const double sum : sums) total += sum;
      dbias[channel] = static_cast<T>(total);
    }
  }

  Channels view_;
};

const RegisterKernel onednn_bias_add("BiasAdd", "CPU", {DType::f32}, make_onednn_bias_add, 1);
const RegisterKernel plain_bias_add_f32("BiasAdd", "CPU", {DType::f32}, make_kernel<PlainBiasAdd<float>>);
const RegisterKernel plain_bias_add_f64("BiasAdd", "CPU", {DType::f64}, make_kernel<PlainBiasAdd<double>>);
const RegisterKernel bias_add_grad_f32("BiasAddGrad", "CPU", {DType::f32}, make_kernel<BiasAddGrad<float>>);
const RegisterKernel bias_add_grad_f64("BiasAddGrad", "CPU", {DType::f64}, make_kernel<BiasAddGrad<double>>);

using Column = double*;

// What is left of a column, as a part of it, below which it counts as a sum of those before it.
constexpr double kNothing = 1e-6;

double dot(const double* a, const double* b, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// One thread: the matrices are narrow, and all ranks get the same bits whatever their threads.
class Basis {
 public:
  Basis(std::vector<double>& columns, std::int64_t n) : columns_(columns), n_(n) {}

  void make_orthonormal(std::int64_t j) {
    const Column v = column(j);
    const double length = std::sqrt(dot(v, v, n_));
    if (!std::isfinite(length)) {
      for (std::int64_t i = 0; i < n_; ++i) v[i] = std::numeric_limits<double>::quiet_NaN();
      return;
    }
    if (length > 0) {
      scale(v, 1 / length);
      const double left = remove_columns_before(j);
      if (left > kNothing) return scale(v, 1 / left);
    }
    take_unit_vector(j);
  }

 private:
  Column column(std::int64_t j) { return columns_.data() + j * n_; }
  void scale(Column v, double factor) {
    for (std::int64_t i = 0; i < n_; ++i) v[i] *= factor;
  }
  // Twice is enough (Kahan; Giraud et al., 2005). Returns the length of what is left.
  double remove_columns_before(std::int64_t j) {
    const Column v = column(j);
    for (int pass = 0; pass < 2; ++pass)
      for (std::int64_t k = 0; k < j; ++k) {
        const Column q = column(k);
        const double along = dot(q, v, n_);
        for (std::int64_t i = 0; i < n_; ++i) v[i] -= along * q[i];
      }
    return std::sqrt(dot(v, v, n_));
  }
  // Of the squared lengths of what j columns leave of the n unit vectors the average is (n − j) / n: some
  // unit vector leaves so much. With a NaN before it none does: the column then is what is left of the last.
  void take_unit_vector(std::int64_t j) {
    const Column v = column(j);
    const double enough = 0.5 * static_cast<double>(n_ - j) / static_cast<double>(n_);
    double left = 0;
    for (std::int64_t unit = 0; unit < n_; ++unit) {
      for (std::int64_t i = 0; i < n_; ++i) v[i] = i == unit ? 1 : 0;
      left = remove_columns_before(j);
      if (left * left >= enough || std::isnan(left)) break;
    }
    scale(v, 1 / left);
  }

  std::vector<double>& columns_;  // one behind the other
  std::int64_t n_;
};

template <typename T>
class OrthogonalizeKernel final : public Kernel {
 public:
  void compute(KernelContext& context) override {
    const Tensor& x = context.input(0);
    const std::int64_t n = x.shape().dim(0), r = x.shape().dim(1);
    if (n < r) throw InvalidArgumentError("orthogonalize: x is {}; it has more columns than rows", x.shape());
    columns_.resize(static_cast<std::size_t>(n * r));
    const T* from = x.data<T>();
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < r; ++j) columns_[static_cast<std::size_t>(j * n + i)] = from[i * r + j];
    Basis basis(columns_, n);
    for (std::int64_t j = 0; j < r; ++j) basis.make_orthonormal(j);
    T* to = context.output(0).data<T>();
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < r; ++j)
        to[i * r + j] = static_cast<T>(columns_[static_cast<std::size_t>(j * n + i)]);
  }

 private:
  std::vector<double> columns_;  // keeps its capacity from step to step
};

template <typename T>
std::unique_ptr<Kernel> make(KernelInit&) {
  return std::make_unique<OrthogonalizeKernel<T>>();
}

const RegisterKernel orthogonalize_f32("Orthogonalize", "CPU", {DType::f32}, make<float>);
const RegisterKernel orthogonalize_f64("Orthogonalize", "CPU", {DType::f64}, make<double>);

}  // namespace

}  // namespace kolo
