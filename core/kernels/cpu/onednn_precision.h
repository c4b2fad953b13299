// In which precision a node's products are computed, as a pass tells its kernel.
#pragma once

namespace kolo::detail {

/// Attribute of a node whose products are computed in bf16; of no schema, and true where it is there.
inline constexpr const char* kInBf16 = "_in_bf16";

/// Whether this CPU, as oneDNN may use it, has instructions for products of bf16; it would emulate them, many
/// times slower than f32.
bool has_native_bf16();
/// Throws FailedPreconditionError where it has none.
void check_native_bf16();

}  // namespace kolo::detail
