// What the tasks noted down of their parts of one step, as one.
#pragma once

#include <chrono>

#include <kolo/core/runtime/trace.h>

namespace kolo::detail {

/// The part of another task: its times by its own clock, which are moved so that their middle is that of
/// asked … answered.
void move_times(RunMetadata& part, std::chrono::steady_clock::time_point asked,
                std::chrono::steady_clock::time_point answered);
/// Adds a part's notes to the step's; process: of its events.
void merge_metadata(RunMetadata& step, RunMetadata part, int process);

}  // namespace kolo::detail
