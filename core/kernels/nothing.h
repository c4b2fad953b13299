// The kernel of nodes that leave nothing to compute, on any device.
#pragma once

namespace kolo {

class KernelContext;

/// For a view, whose output is its input's memory; for a node that is there for its control edges; and for a
/// variable, whose memory the session holds.
inline void nothing(KernelContext&) {}

}  // namespace kolo
