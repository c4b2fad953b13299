// Images under windows, and in other sizes, as ONNX has them.
#include <algorithm>
#include <string>

#include <kolo/core/ops/convolution.h>

#include "onnx_forms_internal.h"

namespace kolo::detail {
namespace {

// SAME has the odd zero at the image's end in both.
AttrMap window(const Node& node) {
  return {{"strides", node.attr("strides")},
          {"auto_pad", node.attr<std::string>("padding") == "SAME" ? "SAME_UPPER" : "VALID"}};
}

}  // namespace

Names conv2d(OnnxGraph& g, const Node& node) {
  AttrMap attrs = window(node);
  attrs.emplace("group", node.attr("groups"));
  attrs.emplace("kernel_shape", Numbers{known_size(node, 1, 2), known_size(node, 1, 3)});
  return {g.add("Conv", inputs_of(g, node), attrs)};
}

Names pool(OnnxGraph& g, const Node& node) {
  AttrMap attrs = window(node);
  attrs.emplace("kernel_shape", node.attr("window"));
  return {g.add(node.op() == "MaxPool" ? "MaxPool" : "AveragePool", inputs_of(g, node), attrs)};
}

// ONNX counts what is cut off a full result at its ends, and what lies beyond it.
Names conv2d_transpose(OnnxGraph& g, const Node& node) {
  const RowsCols strides = rows_cols(node.attr<Numbers>("strides"), "strides");
  const Padding padding = padding_from_name(node.attr<std::string>("padding"));
  Numbers before, after, beyond, kernel;
  for (int axis = 0; axis < 2; ++axis) {
    const std::int64_t in = known_size(node, 0, 2 + axis), size = known_size(node, 1, 2 + axis);
    const std::int64_t stride = strides[static_cast<std::size_t>(axis)],
                       out = node.output_shape(0).dim(2 + axis);
    kernel.push_back(size);
    before.push_back(window_axis(out, size, stride, padding).pad_before);
    const std::int64_t rest = stride * (in - 1) + size - out - before.back();
    after.push_back(std::max<std::int64_t>(rest, 0));
    beyond.push_back(std::max<std::int64_t>(-rest, 0));
  }
  return {g.add("ConvTranspose", inputs_of(g, node),
                {{"strides", node.attr("strides")},
                 {"kernel_shape", kernel},
                 {"pads", Numbers{before[0], before[1], after[0], after[1]}},
                 {"output_padding", beyond}})};
}

Names resize(OnnxGraph& g, const Node& node) {
  const std::string x = g.name_of(node.input(0));
  const bool nearest = node.attr<std::string>("method") == "nearest",
             corners = node.attr<bool>("align_corners"), centers = node.attr<bool>("half_pixel_centers");
  AttrMap attrs{{"mode", nearest ? "nearest" : "linear"},
                {"coordinate_transformation_mode", corners   ? "align_corners"
                                                   : centers ? "half_pixel"
                                                             : "asymmetric"}};
  // The element whose area holds the place, (i + 0.5) · in / out, is the one nearest to the place − 0.5.
  if (nearest) attrs.emplace("nearest_mode", corners || centers ? "round_prefer_ceil" : "floor");
  // Sizes, not scales: those would have to be exact. The batch's comes from x itself.
  const std::string leading = g.add("Shape", {x}, {{"start", 0}, {"end", 2}});
  const std::string sizes = g.add("Concat", {leading, g.numbers(node.attr<Numbers>("size"))}, {{"axis", 0}});
  return {g.add("Resize", {x, "", "", sizes}, attrs)};
}

}  // namespace kolo::detail
