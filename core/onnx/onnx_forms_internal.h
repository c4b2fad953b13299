// The forms in ONNX of the ops that have more than a line's worth of one, by family, and what they share.
#pragma once

#include <cstdint>
#include <vector>

#include <kolo/core/graph/node.h>

#include "onnx_graph_internal.h"

namespace kolo::detail {

using Numbers = std::vector<std::int64_t>;
using Names = OnnxGraph::Names;

Names inputs_of(const OnnxGraph& g, const Node& node);
/// Throw UnimplementedError that names the node and its input where that is not known.
int known_rank(const Node& node, int input);
std::int64_t known_size(const Node& node, int input, int axis);

// onnx_images.cc

Names conv2d(OnnxGraph& g, const Node& node);
Names conv2d_transpose(OnnxGraph& g, const Node& node);
Names pool(OnnxGraph& g, const Node& node);
Names resize(OnnxGraph& g, const Node& node);

// onnx_shapes.cc

Names reshape(OnnxGraph& g, const Node& node);
Names reshape_like(OnnxGraph& g, const Node& node);
Names expand_dims(OnnxGraph& g, const Node& node);
Names squeeze(OnnxGraph& g, const Node& node);
Names pad(OnnxGraph& g, const Node& node);
Names slice(OnnxGraph& g, const Node& node);
Names strided_slice(OnnxGraph& g, const Node& node);
Names split(OnnxGraph& g, const Node& node);

}  // namespace kolo::detail
