// What the attributes of a strided slice mean for a tensor: for its shape function and its kernels.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <kolo/core/ops/slicing.h>
#include <kolo/core/tensor/shape.h>

namespace kolo::detail {

struct SliceSpec {
  std::vector<std::int64_t> begin, end, strides;
  StridedSliceMasks masks;
};

/// From a ShapeContext, a Node or a KernelInit.
template <typename Attributes>
SliceSpec slice_spec(const Attributes& of) {
  using Dims = std::vector<std::int64_t>;
  const auto mask = [&](const char* name) { return of.template attr<std::int64_t>(name); };
  return {of.template attr<Dims>("begin"),
          of.template attr<Dims>("end"),
          of.template attr<Dims>("strides"),
          {mask("begin_mask"), mask("end_mask"), mask("ellipsis_mask"), mask("new_axis_mask"),
           mask("shrink_axis_mask")}};
}

struct ResolvedSlice {
  /// For each dimension of x: the first element, the way to the next, and how many there are (−1: unknown).
  std::vector<std::int64_t> begin, stride, count;
  Shape result;
};

/// First row and end of a batch's part: batch_slice's.
inline std::pair<std::int64_t, std::int64_t> rows_of_part(std::int64_t rows, std::int64_t index,
                                                          std::int64_t parts) {
  const std::int64_t step = rows / parts;
  return {index * step, index == parts - 1 ? rows : (index + 1) * step};
}

/// The rank of x is known. Throws InvalidArgumentError as strided_slice does.
ResolvedSlice resolve_slice(const SliceSpec& spec, const Shape& x);

}  // namespace kolo::detail
