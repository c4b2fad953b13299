// What the tasks noted down of their parts of one step, as one.
#pragma once

#include <kolo/core/runtime/trace.h>

namespace kolo::detail {

/// Adds a part's notes to the step's; process: of its events.
void merge_metadata(RunMetadata& step, RunMetadata part, int process);

}  // namespace kolo::detail
