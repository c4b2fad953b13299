// The processor cores that this process may run on, and how many of them are this rank's.
#pragma once

namespace kolo {

struct Cores {
  int count = 1;            // physical cores that this process may run on
  bool restricted = false;  // an affinity mask keeps this process off some of the machine's cores
};

/// Asks hwloc; never throws: where nothing can be found it is one core. Two hardware threads of a core share
/// its multiplier, so that a core counts once.
Cores find_cores();

/// For the threads of this rank: the cores that it may run on, divided by the ranks of its host that may run
/// on the same ones (process().core_sharers); at least 1.
int cores_of_rank();

}  // namespace kolo
