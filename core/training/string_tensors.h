// Tensors of strings as bytes: how files hold them, and how ranks send them to each other.
#pragma once

#include <kolo/core/tensor/tensor.h>

namespace kolo::detail {

/// u8 [bytes]: the length of each element, 8 bytes with the lowest first, then all their bytes, row by row.
Tensor encode_strings(const Tensor& strings);
/// The way back, into the elements of `strings`. Throws DataLossError that says what is wrong with the bytes:
/// they are not those of as many elements.
void decode_strings(const Tensor& encoded, const Tensor& strings);

}  // namespace kolo::detail
