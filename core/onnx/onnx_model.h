// Networks for other programs: ONNX (https://onnx.ai), which most runtimes and tools read.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <kolo/core/graph/node.h>
#include <kolo/core/tensor/tensor.h>

namespace kolo {

/// The value of a variable, from its storage node: as a checkpoint holds it under the node's name.
using VariableValue = std::function<Tensor(const Node& storage)>;

/// A model of ONNX's opset 17 that computes `outputs`, all of one graph, as inference_form gives them. Its
/// inputs are the placeholders, in the order of their creation, under their names; unknown sizes stay
/// unknown, a first one is "N". Its outputs have the names of their nodes. Variables become constants.
/// Throws UnimplementedError, naming the node, for an op that is not among onnx_ops(), InvalidArgumentError
/// without outputs, for one that is listed twice, for a value of another type or shape than its variable's,
/// and beyond 2 GiB; and what `value` throws.
std::string onnx_model(const Outputs& outputs, const VariableValue& value);

/// The same as a file, which appears whole or not at all. Throws as DurableFile does, too.
void write_onnx(const std::string& path, const Outputs& outputs, const VariableValue& value);

/// Names of the ops that have a form in ONNX, sorted.
std::vector<std::string> onnx_ops();

}  // namespace kolo
