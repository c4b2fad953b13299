// Variables that belong to the way in which a graph is trained rather than to its model: a checkpoint written
// by another way of training fits too.
#pragma once

#include <kolo/core/ops/variables.h>

namespace kolo {

/// The collection of global variables that a checkpoint may lack: a saver that restores one without them
/// gives them their first values.
inline constexpr char kOptionalVariables[] = "optional_variables";
/// The collection of those of which each rank has its own value (what a compression has left out so far), and
/// of the parts and scratch of sharded_state.h. They are no rank's to give to another: a broadcast of a
/// session's state passes them over. A checkpoint holds those of all ranks (gathered_state.h); with another
/// number of ranks they start from it with their first values.
inline constexpr char kRankVariables[] = "rank_variables";

void mark_optional(Graph& graph, const Variable& variable);
/// Optional, too.
void mark_own_of_rank(Graph& graph, const Variable& variable);
bool is_optional(const Variable& variable);
bool is_own_of_rank(const Variable& variable);

}  // namespace kolo
