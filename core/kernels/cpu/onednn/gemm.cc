#include <kolo/core/kernels/cpu/onednn/gemm.h>

namespace kolo::detail {
namespace {

struct Operands {
  dnnl::memory::desc a, b, c;
};

Operands operands_of(const GemmShape& shape) {
  return {shape.transpose_a ? matrix(shape.inner, shape.rows, true) : matrix(shape.rows, shape.inner, false),
          shape.transpose_b ? matrix(shape.cols, shape.inner, true) : matrix(shape.inner, shape.cols, false),
          matrix(shape.rows, shape.cols, false)};
}

std::optional<OneDnnCall> plan_inner_product(const GemmShape& shape) {
  const Operands with = operands_of(shape);
  // An inner product's weights are [cols, inner].
  const auto weights = matrix(shape.inner, shape.cols, true);
  const dnnl::inner_product_forward::desc desc(dnnl::prop_kind::forward_inference, with.a, weights, with.c);
  dnnl::inner_product_forward::primitive_desc chosen(desc, own_scratch(), onednn_engine(), true);
  if (!chosen || !skip_reference(chosen)) return std::nullopt;
  return OneDnnCall(dnnl::inner_product_forward(chosen), chosen.scratchpad_desc(),
                    {{DNNL_ARG_SRC, with.a, with.a}, {DNNL_ARG_WEIGHTS, weights, weights}},
                    {{DNNL_ARG_DST, with.c, with.c}});
}

// aᵀ · b, as the gradient of a layer's weights from its input a and its result's gradient b.
std::optional<OneDnnCall> plan_weight_gradient(const GemmShape& shape) {
  const auto a = matrix(shape.inner, shape.rows, false), b = matrix(shape.inner, shape.cols, false),
             weights = matrix(shape.rows, shape.cols, true);
  const dnnl::inner_product_forward::primitive_desc forward(
      {dnnl::prop_kind::forward_training, a, weights, b}, onednn_engine(), true);
  if (!forward) return std::nullopt;
  dnnl::inner_product_backward_weights::primitive_desc chosen({a, weights, b}, own_scratch(), onednn_engine(),
                                                              forward, true);
  if (!chosen || !skip_reference(chosen)) return std::nullopt;
  return OneDnnCall(dnnl::inner_product_backward_weights(chosen), chosen.scratchpad_desc(),
                    {{DNNL_ARG_SRC, a, a}, {DNNL_ARG_DIFF_DST, b, b}},
                    {{DNNL_ARG_DIFF_WEIGHTS, weights, weights}});
}

// `batch` such matrices.
dnnl::memory::desc repeated(const dnnl::memory::desc& matrix, std::int64_t batch) {
  const dnnl::memory::dims dims = matrix.dims(), strides = {matrix.data.format_desc.blocking.strides[0],
                                                            matrix.data.format_desc.blocking.strides[1]};
  return {{batch, dims[0], dims[1]}, matrix.data_type(), {dims[0] * dims[1], strides[0], strides[1]}};
}

std::optional<OneDnnCall> plan_matmul(const GemmShape& shape, std::int64_t batch) {
  Operands with = operands_of(shape);
  if (batch != 1) with = {repeated(with.a, batch), repeated(with.b, batch), repeated(with.c, batch)};
  const auto a = shape.in_bf16 ? in_bf16(with.a) : with.a, b = shape.in_bf16 ? in_bf16(with.b) : with.b;
  if (shape.a == DType::bf16) with.a = a;
  if (shape.b == DType::bf16) with.b = b;
  dnnl::matmul::primitive_desc chosen(dnnl::matmul::desc(a, b, with.c), own_scratch(), onednn_engine(), true);
  if (!chosen || !skip_reference(chosen)) return std::nullopt;
  return OneDnnCall(dnnl::matmul(chosen), chosen.scratchpad_desc(),
                    {{DNNL_ARG_SRC, with.a, a}, {DNNL_ARG_WEIGHTS, with.b, b}},
                    {{DNNL_ARG_DST, with.c, with.c}});
}

}  // namespace

// Two of oneDNN's generators for the same product on row-major operands. Inner product runs the classic GEMM,
// which is the faster one where neither operand is transposed (long inner dimensions and few columns most of
// all), and for aᵀ · b with at least as many columns as rows; matmul runs the batch-reduce kernels, which
// lead elsewhere. Measured as processor time of one thread, in ms, on Zen 5 with AVX-512 (rows × inner ×
// cols: classic, batch-reduce): aᵀ · b: 784 × 128 × 1024: 1.11, 1.41; 256 × 2048 × 768: 4.7, 5.2; 256 × 2048
// × 1024: 6.4, 6.8; 1024 × 128 × 1024: 1.48, 1.47; 1024 × 2048 × 256: 7.7, 7.2; 3136 × 64 × 1024: 2.35, 2.36.
// a · bᵀ: 128 × 1024 × 1024: 1.88, 1.61; 64 × 1024 × 3136: 3.7, 2.8; 2048 × 1024 × 256: 6.8, 6.3; 2048 × 256
// × 1024: 5.9, 6.3. Blocked copies of the operands lose more in reorders than their kernels gain.
// In bf16 copies there must be, and matmul is the one that keeps the operands' order: on a core with AMX
// (Xeon, family 6 model 207), copies in, f32 → bf16 in ms: 2048 × 256 × 1024: 6.5 → 1.1; a · bᵀ 2048 × 1024 ×
// 256: 6.4 → 1.4; aᵀ · b 256 × 2048 × 1024: 6.9 → 2.0 (packed by oneDNN's choice 2.5); 128 × 784 × 1024: 1.4
// → 0.46 (0.87).
std::optional<OneDnnCall> plan_gemm(const GemmShape& shape, std::int64_t batch) {
  if (shape.in_bf16) {
    if (auto call = plan_matmul(shape, batch)) return call;
    if (shape.a != DType::f32 || shape.b != DType::f32) return std::nullopt;
    GemmShape in_f32 = shape;
    in_f32.in_bf16 = false;
    return plan_gemm(in_f32, batch);
  }
  if (batch == 1 && !shape.transpose_a && !shape.transpose_b)
    if (auto call = plan_inner_product(shape)) return call;
  if (batch == 1 && shape.transpose_a && !shape.transpose_b && shape.cols >= shape.rows)
    if (auto call = plan_weight_gradient(shape)) return call;
  return plan_matmul(shape, batch);
}

}  // namespace kolo::detail
