// What kolo asks of Open MPI before it starts it.
#pragma once

#include <cstdint>

namespace kolo::detail {

/// A message of up to chunk_bytes, at most 1 MiB, goes out over TCP at once: Open MPI asks the receiver first
/// from 64 KiB on, and between hosts that are busy in both directions question and answer each wait behind
/// all bytes that are on their way. Sets two OMPI_MCA_ variables of this process, unless either is set; other
/// MPI libraries and networks do not look at them. Before MPI is started, on all ranks alike.
void send_chunks_at_once(std::int64_t chunk_bytes);

}  // namespace kolo::detail
