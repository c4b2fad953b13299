// Opens the part of a source that is compiled once for each instruction set. foreach_target.h includes the
// source again for each set but the last. core/kernels/CMakeLists.txt lists these sources and tells Highway
// their paths. It has no guard: a source includes it in each round, after all that is the same for every set.
#include <hwy/foreach_target.h>
// Must follow foreach_target.h.
#include <hwy/highway.h>
