// Every n-th element of a tensor's dimensions, forwards or backwards.
#pragma once

#include <cstdint>
#include <vector>

#include <kolo/core/graph/scope.h>

namespace kolo {

/// Bit i of each is for entry i of begin, end and strides, as in TensorFlow.
struct StridedSliceMasks {
  std::int64_t begin = 0;        // begin[i] is ignored: from the first element, backwards from the last
  std::int64_t end = 0;          // end[i] is ignored: up to and with the last element, backwards the first
  std::int64_t ellipsis = 0;     // stands for all dimensions that no other entry is for; one at most
  std::int64_t new_axis = 0;     // a new dimension of 1
  std::int64_t shrink_axis = 0;  // the element begin[i] alone, without its dimension
};

/// The elements begin, begin + stride, … before `end`, in each dimension that has an entry, as NumPy's
/// x[b:e:s] has them: numbers below 0 count from the end, what lies outside is cut off. No strides: 1 for
/// each. Dimensions without entry stay whole. Any type but string. Throws InvalidArgumentError for a stride
/// of 0, for more entries than dimensions and `slice index 5 of dimension 0 out of bounds` for an element
/// that there is not.
Output strided_slice(const Scope& s, Output x, std::vector<std::int64_t> begin, std::vector<std::int64_t> end,
                     std::vector<std::int64_t> strides = {}, StridedSliceMasks masks = {});

/// x with the order of the elements along `axes` reversed; −1 is the last. Any type but string.
Output reverse(const Scope& s, Output x, std::vector<std::int64_t> axes);

}  // namespace kolo
