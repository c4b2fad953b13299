// The processor cores that a job started here may use.
#pragma once

namespace kolo::launcher {

struct Topology {
  int cores = 1;            // physical cores that this process may run on
  bool restricted = false;  // an affinity mask keeps this process off some of the machine's cores
};

/// Asks hwloc; never throws: where nothing can be found it is one core.
Topology detect_topology();

}  // namespace kolo::launcher
