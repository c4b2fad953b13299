"""The beginning and the end of a program, and which rank it is."""

import os
import signal
from typing import Optional, Sequence

from kolo import _kolo
from kolo._kolo import (cross_rank, cross_size, hostname, is_homogeneous, local_rank, local_size, node_count, rank,
                        size, start_timeline, stop_timeline)

__all__ = ["cross_rank", "cross_size", "hostname", "init", "is_homogeneous", "is_initialized", "local_rank",
           "local_size", "node_count", "rank", "shutdown", "size", "start_timeline", "stop_timeline"]


def init(ranks: Optional[Sequence[int]] = None) -> None:
    """Joins the ranks that mpirun, kolorun or srun has started; without them this process is the only rank.

    ranks: of the launcher's, those that are in; they get new numbers in the order of the list, and a process that is
    not in it is a rank alone. A second call does nothing. The end of the program calls shutdown(); an exception that
    ends it ends the job. Raises InvalidArgumentError for an option (KOLO_…) that does not parse, on every rank.
    """
    _kolo.init(None if ranks is None else list(ranks))


def _leave_the_job() -> None:
    """In a forked process, which is no rank: kolo's handler would wait for a thread that is not here."""
    if signal.getsignal(signal.SIGTERM) in (None, signal.SIG_DFL):  # as far as Python knows, which has set none
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


os.register_at_fork(after_in_child=_leave_the_job)


def shutdown() -> None:
    """Ends what is pending in AbortedError; returns when every rank has called it or is gone. MPI does not start twice."""
    _kolo.shutdown()


def is_initialized() -> bool:
    """Whether the time is between init() and shutdown()."""
    try:
        _kolo.rank()
    except RuntimeError:
        return False
    return True
