// Ops on values that passes round to bf16 (GraphOptions::precision): once for several products, or to store
// them so. Passes alone make nodes of them.
#pragma once

namespace kolo {

/// (x f32) → y bf16, and back.
inline constexpr char kToBf16Op[] = "ToBf16";
inline constexpr char kFromBf16Op[] = "FromBf16";
/// MatMul of factors that are bf16, or f32 and rounded by the kernel: (a, b) → y f32. With "shape", that of
/// y.
inline constexpr char kBf16MatMulOp[] = "Bf16MatMul";

/// Attribute of a node whose products are computed in bf16, as a pass tells its kernel. No schema has it, and
/// it is true where it is there.
inline constexpr char kInBf16[] = "_in_bf16";
/// The same of a node whose products a GPU may compute in TF32; false where nobody asked for it
/// (Precision::automatic).
inline constexpr char kInTf32[] = "_in_tf32";

}  // namespace kolo
