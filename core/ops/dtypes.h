// Lists of types that ops of several families take.
#pragma once

#include <vector>

#include <kolo/core/tensor/dtype.h>

namespace kolo::detail {

/// All but string.
inline const std::vector<DType> kNumeric = {DType::f32, DType::f64, DType::i32, DType::i64, DType::boolean,
                                            DType::u8,  DType::i8,  DType::f16, DType::bf16};
/// Of sums and products.
inline const std::vector<DType> kArithmetic = {DType::f32, DType::f64, DType::i32, DType::i64};
/// What kernels compute in; f16 and bf16 are storage.
inline const std::vector<DType> kReal = {DType::f32, DType::f64};
inline const std::vector<DType> kLogical = {DType::boolean};
/// Of row numbers.
inline const std::vector<DType> kIndex = {DType::i32, DType::i64};

}  // namespace kolo::detail
