// Numbers of rows, as kernels that gather and scatter take them: of either type, checked before use.
#pragma once

#include <cstdint>

#include <kolo/core/base/error.h>
#include <kolo/core/tensor/tensor.h>

namespace kolo::detail {

/// Of number `index` at place `offset` of a list, where there are `rows` rows.
[[noreturn]] inline void throw_no_such_row(std::int64_t index, std::int64_t offset, std::int64_t rows) {
  throw InvalidArgumentError("Index {} at offset {} in indices is out of range: there are {} rows", index,
                             offset, rows);
}

template <typename Index>
void check_row_numbers(const Index* numbers, std::int64_t count, std::int64_t rows) {
  for (std::int64_t i = 0; i < count; ++i)
    if (numbers[i] < 0 || numbers[i] >= rows) throw_no_such_row(numbers[i], i, rows);
}

/// Calls body(numbers) with the elements of `indices`, i32 or i64.
template <typename Body>
void with_numbers(const Tensor& indices, const Body& body) {
  if (indices.dtype() == DType::i32) body(indices.data<std::int32_t>());
  else body(indices.data<std::int64_t>());
}

/// The same where all of them are in [0, rows). Throws
/// InvalidArgumentError `Index <i> at offset <o> in indices is out of range`.
template <typename Body>
void with_row_numbers(const Tensor& indices, std::int64_t rows, const Body& body) {
  with_numbers(indices, [&](const auto* numbers) {
    check_row_numbers(numbers, indices.elements(), rows);
    body(numbers);
  });
}

}  // namespace kolo::detail
