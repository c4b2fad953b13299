#include <kolo/core/kernels/cpu/elementwise_kernels.h>

namespace kolo {
namespace {

using detail::BinaryOp;
using detail::UnaryOp;

const std::vector<DType> kReal = {DType::f32, DType::f64};

const RegisterKernel kernels[] = {
    detail::unary_kernel("Floor", kReal, UnaryOp::floor),
    detail::unary_kernel("Ceil", kReal, UnaryOp::ceil),
    detail::unary_kernel("Round", kReal, UnaryOp::round),
    detail::binary_kernel("FloorDiv", kReal, BinaryOp::floor_div),
    detail::integer_division_kernel("FloorDiv", BinaryOp::floor_div),
    detail::binary_kernel("FloorMod", kReal, BinaryOp::floor_mod),
    detail::integer_division_kernel("FloorMod", BinaryOp::floor_mod),
};

}  // namespace
}  // namespace kolo
