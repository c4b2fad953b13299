// The registration of kernels that are one loop over elements.
#pragma once

#include <vector>

#include <kolo/core/kernels/cpu/loops/element_loops.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo::detail {

/// Of two operands with broadcasting.
RegisterKernel binary_kernel(const char* op, const std::vector<DType>& types, BinaryOp loop);
/// i32 i64: throws InvalidArgumentError `Integer division by zero`, which would end the process.
RegisterKernel integer_division_kernel(const char* op, BinaryOp loop);
RegisterKernel unary_kernel(const char* op, const std::vector<DType>& types, UnaryOp loop);

}  // namespace kolo::detail
