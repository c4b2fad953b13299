// Prescale and postscale around any reduction.
#pragma once

#include <memory>

#include <kolo/collectives/algorithms/collective.h>

namespace kolo {

/// `operation` reduces `buffer`; before it starts the buffer is multiplied by prescale, `result` (a part of
/// the buffer, or all) by postscale when it has finished.
std::shared_ptr<Collective> scaled(std::shared_ptr<Collective> operation, const TypedBuffer& buffer,
                                   const TypedBuffer& result, double prescale, double postscale);

}  // namespace kolo
