// A file without a name, of nothing but memory.
#pragma once

namespace kolo {

/// Memory that other processes of the node map as a file, empty at first. In huge pages where the system
/// grants them: a processor that goes through the gradients of two ranks in pages of 4 KiB looks up one for
/// every 64 lines that it reads, which takes long in a virtual machine above all. Throws UnavailableError.
int make_memory_file();

}  // namespace kolo
