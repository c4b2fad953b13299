// Where the host must wait for a device that runs ahead of it.
#pragma once

#include <kolo/core/device/device_set.h>
#include <kolo/core/passes/step_graph.h>

namespace kolo {

/// Done when all that stands in the stream of its device is done.
inline constexpr char kFenceOp[] = "_Fence";

/// Puts one in the way of each edge without a value that leads from a device with a stream to a node
/// elsewhere: the first counts as done once it stands in the stream. One fence serves all edges from a device
/// to a node. (Values come by transfers, which end when they are there.) To be called when nodes and their
/// edges are complete but for those of the memory plan, which join nodes of one device alone.
void insert_fences(StepGraph& graph, const DeviceSet& devices);

}  // namespace kolo
