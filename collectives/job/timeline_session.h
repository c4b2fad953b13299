// Begins a timeline on all ranks, and brings their events together in rank 0's file.
#pragma once

#include <string>

#include <kolo/collectives/job/runtime.h>

namespace kolo::detail {

/// Collective, through the control channel. Unless end_timeline comes before, the timeline ends with the job.
void begin_timeline(Runtime& runtime, const std::string& path);
void end_timeline(Runtime& runtime);

}  // namespace kolo::detail
