// For bindings that check a call's arguments before kolo sees them.
#pragma once

#include <string_view>

#include <kolo/collectives/engine/eager.h>

namespace kolo {

/// This rank refuses its own call of `operation` ("allreduce", "grouped_broadcast", …: the functions' names).
/// The other ranks, which would wait for it, end in FailedPreconditionError `rank 1 refused <name>: <text>`.
/// Does not wait. An unnamed call is counted as if it had been made. Throws InvalidArgumentError for an
/// operation that does not exist, FailedPreconditionError without init(). Any thread but kolo's own.
void refuse_call(std::string_view operation, std::string_view text, const EagerOptions& options = {});

}  // namespace kolo
