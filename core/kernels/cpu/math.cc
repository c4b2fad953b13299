#include <kolo/core/kernels/cpu/elementwise_kernels.h>

namespace kolo {
namespace {

using detail::UnaryOp;

const std::vector<DType> kReal = {DType::f32, DType::f64};

const RegisterKernel kernels[] = {
    detail::unary_kernel("Reciprocal", kReal, UnaryOp::reciprocal),
    detail::unary_kernel("Log1p", kReal, UnaryOp::log1p),
    detail::unary_kernel("Expm1", kReal, UnaryOp::expm1),
    detail::unary_kernel("Sin", kReal, UnaryOp::sin),
    detail::unary_kernel("Cos", kReal, UnaryOp::cos),
    detail::unary_kernel("Erf", kReal, UnaryOp::erf),
    detail::binary_kernel("SquaredDifference", {DType::f32, DType::f64, DType::i32, DType::i64},
                          detail::BinaryOp::squared_difference),
};

}  // namespace
}  // namespace kolo
