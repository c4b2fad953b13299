// Cuts a step by task: what each task runs of it, and which values go from one to another.
#pragma once

#include <vector>

#include <kolo/core/cluster/worker/step_part.h>
#include <kolo/core/cluster/worker/transfer_key.h>
#include <kolo/core/passes/step_graph.h>

namespace kolo::detail {

/// step: pruned and placed, before it is rewritten. Parts by task; the master's, where it has one, first.
///
/// A value that another task reads is sent once to each task that does, and, where it is a variable's, once
/// for each state of it that is read; a control edge is an empty tensor. What is sent, or fetched, of a
/// variable is a copy, made behind the last update that its reader sees.
/// Throws InvalidArgumentError for loops on several tasks and iterators away from the client's process,
/// UnimplementedError for ops that reduce over ranks.
std::vector<StepPart> partition(const StepGraph& step, const PartitionOptions& options);

}  // namespace kolo::detail
