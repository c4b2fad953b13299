// kolorun --stop-here: for whoever knows that this host is about to go.
#pragma once

namespace kolo::launcher {

/// Asks the ranks of this user on this host, as far as this PID namespace has them, to stop, whoever has
/// started them, and waits until they have ended, wait_s seconds at most. kolo's programs save then, and an
/// elastic job goes on without this host. A rank that takes no requests yet is asked when it does. Says what
/// came of it; returns kolorun's exit code: 0 if all have ended, also where there was none.
int stop_ranks_here(double wait_s);

}  // namespace kolo::launcher
