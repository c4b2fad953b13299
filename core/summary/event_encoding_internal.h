// kolo's values as the messages of event.proto.
#pragma once

#include <kolo/core/graph/graph.h>
#include <kolo/core/tensor/tensor.h>

#include "core/summary/event.pb.h"

namespace kolo::detail {

void encode(const Shape& shape, event::TensorShapeProto& message);
void encode(const Tensor& tensor, event::TensorProto& message);
/// For TensorBoard's picture of the graph: without the values of large constants, with the shapes of outputs.
event::GraphDef encode_graph(const Graph& graph);

}  // namespace kolo::detail
