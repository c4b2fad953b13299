// What lies beside checkpoints so that other programs may use them: the network whose variables they hold.
#pragma once

#include <string>

#include <kolo/core/graph/graph_def.h>

namespace kolo {

/// The file of a checkpoint folder that holds it: what `kolo-inspect export` reads.
inline constexpr char kInferenceGraphFile[] = "inference.pb";
/// The collection of the nodes whose value 0 is a result.
inline constexpr char kInferenceOutputs[] = "inference_outputs";

/// The part of a graph that computes `outputs` (of a network that is trained: those of its inference_form)
/// and gives its variables their first values: imported into a graph, it is restored from a checkpoint by a
/// Saver and run. inputs: values that will be fed; placeholders of their names, types and shapes stand in for
/// what computes them. Collections: what remains of the graph's, and kInferenceOutputs. Throws
/// InvalidArgumentError unless each output and input is value 0 of its node, and without any output.
GraphDef inference_graph(const Outputs& outputs, const Outputs& inputs = {});

/// As `<directory>/inference.pb`; equal graphs give equal bytes. Throws as write_graph_def does.
void write_inference_graph(const std::string& directory, const Outputs& outputs, const Outputs& inputs = {});

}  // namespace kolo
