// Collectives made of others: one after the other, with a factor before and after, or in 32 bits.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <kolo/collectives/algorithms/collective.h>

namespace kolo {

/// Makes the operation of a stage, when the one before it has finished; nullptr: the stage is over at once.
using Stage = std::function<std::shared_ptr<Collective>()>;
/// One after the other.
std::shared_ptr<Collective> in_stages(std::vector<Stage> stages);
/// The same of operations that are there already.
std::shared_ptr<Collective> in_sequence(std::vector<std::shared_ptr<Collective>> operations);

/// `operation` reduces `buffer`; before it starts the buffer is multiplied by prescale, `result` (a part of
/// the buffer, or all) by postscale when it has finished.
std::shared_ptr<Collective> scaled(std::shared_ptr<Collective> operation, const TypedBuffer& buffer,
                                   const TypedBuffer& result, double prescale, double postscale);

/// `make` makes the operation on an f32 copy of the 16-bit `buffer`, whose result is rounded once, at the
/// end, into the buffer. Twice the bytes travel.
std::shared_ptr<Collective> widened(
    const TypedBuffer& buffer, const std::function<std::shared_ptr<Collective>(const TypedBuffer&)>& make);

/// That where f32_wire asks for it and the elements are 16-bit floats; else what `make` makes of the buffer.
std::shared_ptr<Collective> widened_where(
    bool f32_wire, const TypedBuffer& buffer,
    const std::function<std::shared_ptr<Collective>(const TypedBuffer&)>& make);

}  // namespace kolo
