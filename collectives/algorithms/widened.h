// 16-bit floats reduced, and sent, in 32 bits.
#pragma once

#include <functional>
#include <memory>

#include <kolo/collectives/algorithms/collective.h>

namespace kolo {

/// `make` makes the operation on an f32 copy of the 16-bit `buffer`, whose result is rounded once, at the
/// end, into the buffer. Twice the bytes travel.
std::shared_ptr<Collective> widened(
    const TypedBuffer& buffer, const std::function<std::shared_ptr<Collective>(const TypedBuffer&)>& make);

/// That where f32_wire asks for it and the elements are 16-bit floats; else what `make` makes of the buffer.
std::shared_ptr<Collective> widened_where(
    bool f32_wire, const TypedBuffer& buffer,
    const std::function<std::shared_ptr<Collective>(const TypedBuffer&)>& make);

}  // namespace kolo
