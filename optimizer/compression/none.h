// Gradients travel as they are.
#pragma once

#include <kolo/optimizer/compression/compression.h>

namespace kolo {

/// The default.
std::shared_ptr<const Compression> no_compression();

}  // namespace kolo
