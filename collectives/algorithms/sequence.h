// Collectives one after the other, as one.
#pragma once

#include <memory>
#include <vector>

#include <kolo/collectives/algorithms/collective.h>

namespace kolo {

/// Starts each when the one before it has finished.
std::shared_ptr<Collective> in_sequence(std::vector<std::shared_ptr<Collective>> operations);

}  // namespace kolo
