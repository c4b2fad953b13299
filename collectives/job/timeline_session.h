// Begins a timeline on all ranks, and brings their events together in rank 0's file.
#pragma once

#include <string>

#include <kolo/collectives/job/runtime.h>

namespace kolo::detail {

/// Collective, through the control channel.
void begin_timeline(Runtime& runtime, const std::string& path);
void end_timeline(Runtime& runtime);
/// On the communication thread, when it runs no operations any more. together: all ranks are here; else, or
/// where they do not come within some seconds, this rank writes its own events.
void end_timeline_at_exit(Runtime& runtime, bool together);

}  // namespace kolo::detail
