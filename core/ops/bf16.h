// Ops on values that were rounded to bf16 once for several products (GraphOptions::precision). A pass alone
// makes nodes of them.
#pragma once

namespace kolo {

/// (x f32) → y bf16
inline constexpr char kToBf16Op[] = "ToBf16";
/// MatMul of factors that are bf16, or f32 and rounded by the kernel: (a, b) → y f32. With "shape", that of
/// y.
inline constexpr char kBf16MatMulOp[] = "Bf16MatMul";

}  // namespace kolo
