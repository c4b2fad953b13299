// Which stream a node stands in, and where the host must wait for one.
#pragma once

#include <kolo/core/device/device_set.h>
#include <kolo/core/passes/step_graph.h>

namespace kolo {

/// Done when all that its stream, the node's resource, has been given is done.
inline constexpr char kFenceOp[] = "_Fence";

/// Where the node's kernel is put; nullptr: the host runs it. A device's nodes stand in its compute stream,
/// copies in a stream of their own.
Stream* stream_of(const StepNode& node, const DeviceSet& devices);

/// Lets each node of the host wait for the streams of those that it comes behind, by an edge of any kind:
/// they count as done once they stand there. One fence serves a stream; nodes that come behind the same ones
/// share it, and nobody waits for what another wait implies. Nodes of a GPU that read the host's memory wait
/// likewise. To be called when nodes and their
/// edges are complete but for those of the memory plan, which sees to itself.
void insert_fences(StepGraph& graph, const DeviceSet& devices);

}  // namespace kolo
