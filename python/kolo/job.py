"""The beginning and the end of a program, and which rank it is."""

import atexit
import os
import signal
import sys
from typing import Any, List, NamedTuple, Optional, Sequence, Union

import numpy as np

from kolo import _kolo

__all__ = ["ElasticRestart", "cross_rank", "cross_size", "elastic_restart", "exit_code", "hostname", "init", "is_homogeneous", "is_initialized", "local_rank",
           "local_size", "node_count", "rank", "should_stop", "shutdown", "size", "start_timeline", "stop_timeline"]


def init(ranks: Optional[Union[Sequence[int], Any]] = None) -> None:
    """Joins the ranks that mpirun, kolorun or srun has started; without them this process is the only rank.

    ranks: of the launcher's, those that are in; they get new numbers in the order of the list, and a process that is
    not in it is a rank alone. Or a communicator of mpi4py, all processes of which call it: its ranks are kolo's. A
    second call does nothing. The end of the program calls shutdown(); an exception that ends it ends the job. Raises
    InvalidArgumentError for an option (KOLO_…) that does not parse, on every rank, FailedPreconditionError for a
    communicator of another MPI than kolo's, or one that was started without threads.
    """
    if is_communicator(ranks):
        _init_with(ranks)
    else:
        _kolo.init(None if ranks is None else list(ranks))
    mark = _kolo.rank_mark()
    if mark is not None:  # a child that gets a copy of os.environ must have it as well
        os.environ["KOLO_RANK_PROCESS"] = mark


def is_communicator(ranks: Any) -> bool:
    """Whether it is mpi4py's. Never imports mpi4py, which starts MPI: who has a communicator has done so."""
    mpi = sys.modules.get("mpi4py.MPI")
    return mpi is not None and isinstance(ranks, mpi.Comm)


def _init_with(comm: Any) -> None:
    mpi = sys.modules["mpi4py.MPI"]
    if is_initialized():
        return
    if comm == mpi.COMM_NULL:
        raise ValueError("init: the communicator is MPI.COMM_NULL; the processes that are in one call init")
    _kolo.init_with(mpi._addressof(comm), mpi._sizeof(mpi.Comm), mpi.Get_library_version())

    # mpi4py ends MPI before the C library's exit handlers run, kolo's among them.
    def end() -> None:
        # An exception ends this program; at a prompt, which sets ps1, it ended a line some time ago.
        if hasattr(sys, "last_value") and not hasattr(sys, "ps1"):
            mpi.COMM_WORLD.Abort(1)
        shutdown()

    atexit.register(end)


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


# Each raises FailedPreconditionError before init().


def rank() -> int:
    """This process's number among the ranks, from 0 on."""
    return _kolo.rank()


def size() -> int:
    """How many ranks there are."""
    return _kolo.size()


def local_rank() -> int:
    """This process's number among the ranks that share its node's memory, from 0 on."""
    return _kolo.local_rank()


def local_size() -> int:
    """How many ranks its node has."""
    return _kolo.local_size()


def cross_rank() -> int:
    """The number of its node among the nodes that have a rank of its local_rank()."""
    return _kolo.cross_rank()


def cross_size() -> int:
    """How many nodes have a rank of its local_rank()."""
    return _kolo.cross_size()


def node_count() -> int:
    """How many nodes have ranks."""
    return _kolo.node_count()


def is_homogeneous() -> bool:
    """Whether all nodes have as many ranks."""
    return _kolo.is_homogeneous()


def hostname() -> str:
    """This node's name."""
    return _kolo.hostname()


def start_timeline(path: str) -> None:
    """Begins to record what the ranks reduce, and when, as KOLO_TIMELINE does from init() on. Collective."""
    _kolo.start_timeline(path)


def stop_timeline() -> None:
    """Ends what start_timeline() began. Collective."""
    _kolo.stop_timeline()


def should_stop(step: Optional[int] = None) -> bool:
    """Whether SIGTERM, SIGUSR1 or (unless Python handles it) SIGINT has reached any rank since the first call.

    The ranks agree on the answer by one allreduce of a byte: all call it at the same place, such as behind each step.
    After True, save and end by `sys.exit(kolo.exit_code())`. step: the last complete one, for kolorun's messages.
    The first call installs the handlers, so make it in the main thread before the first step; a second SIGTERM ends the
    process at once.
    """
    from kolo.collectives import allreduce
    _kolo.install_stop_signals()
    asked = np.array([_kolo.stop_signal_received()], np.uint8)
    stop = bool(allreduce(asked, "max", name="kolo.should_stop")[0])
    if stop:
        _kolo.note_stop(-1 if step is None else step)
    return stop


class ElasticRestart(NamedTuple):
    """A start of `kolorun --elastic` or `--restarts` after its first one."""

    number: int  # of the restart, from 1 on; 0: nothing was started before
    lost_hosts: List[str]  # with which the start before this one ended
    ranks_before: int  # of that start
    last_step: Optional[int]  # that its ranks have told
    seconds: float  # from that step, or its end, until kolorun began this start


def elastic_restart() -> ElasticRestart:
    """What this start of the job goes on from; the same on all ranks. Before init(), too."""
    return ElasticRestart(*_kolo.elastic_restart())


def exit_code() -> int:
    """For sys.exit: KOLO_STOPPED_EXIT_CODE (0 to 125; if unset 0, with KOLO_REQUEUE=1 75) once should_stop() has said True, else 0.

    kolorun and batch systems tell by it a job that is to go on from one that is done. Raises InvalidArgumentError for
    another value of the variable.
    """
    return _kolo.exit_code()
