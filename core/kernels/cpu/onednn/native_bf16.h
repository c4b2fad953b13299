// Whether products of bf16 are worth it on this CPU.
#pragma once

namespace kolo::detail {

/// Whether this CPU, as oneDNN may use it, has instructions for products of bf16; it would emulate them, many
/// times slower than f32.
bool has_native_bf16();
/// Throws FailedPreconditionError where it has none.
void check_native_bf16();

}  // namespace kolo::detail
