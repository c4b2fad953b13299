// Other shapes and parts of a tensor, as ONNX has them.
#include <limits>
#include <string>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/slicing_internal.h>

#include "onnx_forms_internal.h"

namespace kolo::detail {
namespace {

// Beyond any tensor: "to the end", and, counted backwards, "to the first and past it".
constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max(),
                       kBeforeFirst = std::numeric_limits<std::int64_t>::min();

// What a strided slice does to each dimension, in ONNX's words.
struct Slices {
  Numbers axes, starts, ends, steps;  // of those that are not taken whole
  Numbers dropped;                    // dimensions of x
  Numbers added;                      // dimensions of the result
};

Slices slices_of(const SliceSpec& spec, int rank) {
  const auto has = [](std::int64_t mask, std::size_t i) { return (mask >> i & 1) != 0; };
  int consumed = 0;  // dimensions that the entries stand for, but for the ellipsis
  for (std::size_t i = 0; i < spec.begin.size(); ++i)
    consumed += !has(spec.masks.ellipsis, i) && !has(spec.masks.new_axis, i);
  Slices slices;
  int axis = 0, result = 0;
  for (std::size_t i = 0; i < spec.begin.size(); ++i) {
    if (has(spec.masks.ellipsis, i)) {
      axis += rank - consumed, result += rank - consumed;
      continue;
    }
    if (has(spec.masks.new_axis, i)) {
      slices.added.push_back(result++);
      continue;
    }
    const bool is_one = has(spec.masks.shrink_axis, i);
    const std::int64_t step = is_one ? 1 : spec.strides[i];
    const bool from_first = !is_one && has(spec.masks.begin, i), to_end = !is_one && has(spec.masks.end, i);
    std::int64_t end = to_end ? (step > 0 ? kEnd : kBeforeFirst) : spec.end[i];
    if (is_one) end = spec.begin[i] == -1 ? kEnd : spec.begin[i] + 1;
    if (!(from_first && to_end && step == 1)) {
      slices.axes.push_back(axis);
      slices.starts.push_back(!from_first ? spec.begin[i] : step > 0 ? 0 : kEnd);
      slices.ends.push_back(end);
      slices.steps.push_back(step);
    }
    if (is_one) slices.dropped.push_back(axis);
    else ++result;
    ++axis;
  }
  return slices;
}

}  // namespace

Names reshape(OnnxGraph& g, const Node& node) {
  const auto shape = node.attr<Shape>("shape");
  return {g.add("Reshape", {g.name_of(node.input(0)), g.numbers(shape.dims())}, {{"allowzero", 1}})};
}

Names reshape_like(OnnxGraph& g, const Node& node) {
  const Names in = inputs_of(g, node);
  return {g.add("Reshape", {in[0], g.add("Shape", {in[1]})}, {{"allowzero", 1}})};
}

Names expand_dims(OnnxGraph& g, const Node& node) {
  return {g.add("Unsqueeze", {g.name_of(node.input(0)), g.numbers({node.attr<std::int64_t>("axis")})})};
}

Names squeeze(OnnxGraph& g, const Node& node) {
  Names in = inputs_of(g, node);
  if (const auto axes = node.attr<Numbers>("axes"); !axes.empty()) in.push_back(g.numbers(axes));
  return {g.add("Squeeze", in)};
}

Names pad(OnnxGraph& g, const Node& node) {
  Numbers pads = node.attr<Numbers>("before");
  const auto after = node.attr<Numbers>("after");
  pads.insert(pads.end(), after.begin(), after.end());
  const std::string value = g.scalar(node.output_dtype(0), node.attr<double>("value"));
  return {g.add("Pad", {g.name_of(node.input(0)), g.numbers(pads), value})};
}

Names slice(OnnxGraph& g, const Node& node) {
  const auto begin = node.attr<Numbers>("begin");
  Numbers ends = node.attr<Numbers>("size");
  for (std::size_t axis = 0; axis < ends.size(); ++axis)
    ends[axis] = ends[axis] < 0 ? kEnd : begin[axis] + ends[axis];
  return {g.add("Slice", {g.name_of(node.input(0)), g.numbers(begin), g.numbers(ends)})};
}

Names strided_slice(OnnxGraph& g, const Node& node) {
  const Slices slices = slices_of(slice_spec(node), known_rank(node, 0));
  std::string x = g.name_of(node.input(0));
  if (!slices.axes.empty())
    x = g.add("Slice", {x, g.numbers(slices.starts), g.numbers(slices.ends), g.numbers(slices.axes),
                        g.numbers(slices.steps)});
  if (!slices.dropped.empty()) x = g.add("Squeeze", {x, g.numbers(slices.dropped)});
  if (!slices.added.empty()) x = g.add("Unsqueeze", {x, g.numbers(slices.added)});
  return {x};
}

Names split(OnnxGraph& g, const Node& node) {
  const auto axis = node.attr<std::int64_t>("axis");
  Names in = inputs_of(g, node);
  if (!node.attr<Numbers>("sizes").empty()) {
    Numbers sizes;
    for (int i = 0; i < node.num_outputs(); ++i) {
      const Shape& part = node.output_shape(i);
      if (!part.has_rank() || part.dim(static_cast<int>(axis)) < 0)
        throw UnimplementedError("{}: the size of part {} must be known for ONNX", describe(node), i);
      sizes.push_back(part.dim(static_cast<int>(axis)));
    }
    in.push_back(g.numbers(sizes));
  }
  return g.add_with_outputs("Split", in, {{"axis", axis}}, node.num_outputs());
}

}  // namespace kolo::detail
