// Messages from everybody to everybody, all under way at once: what needs no more than that.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include <kolo/collectives/algorithms/collective.h>
#include <kolo/collectives/transport/point_to_point.h>

namespace kolo {

/// out[r] goes to rank r, in[r] comes from it; out[own] is copied to in[own]. Each pair of ranks gives equal
/// sizes; nothing is sent for an empty block. Both lists have size() entries, or none: then nothing goes out
/// (or comes in). What the blocks refer to must live until the operation has finished.
/// Cost per rank: its bytes once; up to size() − 1 messages at a time (more for blocks above 1 GiB).
std::shared_ptr<Collective> exchange(PointToPoint& network, std::span<const std::span<const std::byte>> out,
                                     std::span<const std::span<std::byte>> in);

}  // namespace kolo
