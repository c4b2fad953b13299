// Gives every node of a step a device of this process.
#pragma once

#include <string>
#include <vector>

#include <kolo/core/passes/step_graph.h>

namespace kolo {

/// devices: full names, the preferred first. A node goes to the first device that its request matches and
/// that has a kernel for it; what a node updates, it is placed with. Throws InvalidArgumentError `Cannot
/// assign a device to node '<n>': …` unless soft placement allows another device.
void place(StepGraph& graph, const std::vector<std::string>& devices, bool allow_soft_placement);

}  // namespace kolo
