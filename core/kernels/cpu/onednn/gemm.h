// Matrix products through oneDNN.
#pragma once

#include <cstdint>
#include <optional>

#include <kolo/core/kernels/cpu/onednn/onednn.h>

namespace kolo::detail {

/// c [rows, cols] = op(a) [rows, inner] · op(b) [inner, cols], all row-major; c is f32. in_bf16: a and b are
/// rounded to bf16, where they are not bf16 already; else they are f32.
struct GemmShape {
  std::int64_t rows;
  std::int64_t inner;
  std::int64_t cols;
  bool transpose_a;
  bool transpose_b;
  bool in_bf16 = false;
  DType a = DType::f32, b = DType::f32;  // as they come
};

/// A call with the tensors a, b, c, each of `batch` matrices one after the other. Empty if oneDNN has only
/// its reference for it.
std::optional<OneDnnCall> plan_gemm(const GemmShape& shape, std::int64_t batch = 1);

}  // namespace kolo::detail
