"""The beginning and the end, the ranks, and what this build can do: horovod.torch's names for them."""

from typing import Any, Optional, Sequence, Union

import kolo
from kolo import is_homogeneous, is_initialized
from kolo.job import is_communicator
from kolo.torch import process_sets as _process_sets
from kolo.torch.process_sets import ProcessSet
from kolo.torch.staging import count_again

__all__ = ["ccl_built", "cross_rank", "cross_size", "cuda_built", "ddl_built", "gloo_built", "gloo_enabled", "init",
           "is_homogeneous", "is_initialized", "local_rank", "local_size", "mpi_built", "mpi_enabled",
           "mpi_threads_supported", "nccl_built", "rank", "rocm_built", "shutdown", "size", "start_timeline",
           "stop_timeline"]


def init(comm: Optional[Union[Sequence[int], Any]] = None,
         process_sets: Optional[Union[str, Sequence[ProcessSet]]] = None) -> None:
    """kolo.init(). comm: the launcher's ranks that take part, None or []: all of them; or mpi4py's communicator.

    process_sets: made at once; the word "dynamic", which allows Horovod to add some later, changes nothing here, where
    that is always allowed.
    """
    is_list = isinstance(comm, (list, tuple, range))
    if comm is not None and not is_list and not is_communicator(comm):
        raise ValueError("Invalid type of argument comm. Expected list of rank integers or mpi4py.MPI.Comm object. It is "
                         f"a {type(comm).__name__}.")
    was_running = is_initialized()
    kolo.init(None if is_list and not comm else comm)
    if not was_running:
        _process_sets.begin(None if isinstance(process_sets, str) else process_sets)


def shutdown() -> None:
    """kolo.shutdown()."""
    _process_sets.end()
    count_again()
    kolo.shutdown()


def _after_init(function, doc: str):
    def checked():
        if not is_initialized():
            raise ValueError("Horovod has not been initialized; use hvd.init().")
        return function()

    checked.__name__ = checked.__qualname__ = function.__name__
    checked.__doc__ = doc
    return checked


rank = _after_init(kolo.rank, "This process among all, from 0.")
size = _after_init(kolo.size, "How many ranks there are.")
local_rank = _after_init(kolo.local_rank, "Among the ranks of this host.")
local_size = _after_init(kolo.local_size, "How many ranks this host has.")
cross_rank = _after_init(kolo.cross_rank, "Among the ranks with this local rank, one on each host.")
cross_size = _after_init(kolo.cross_size, "How many hosts have this local rank.")


def start_timeline(file_path: str, mark_cycles: bool = False) -> None:
    """Records until stop_timeline() or the end; all ranks in one file, which rank 0 writes. Collective.

    mark_cycles: Horovod's; the cycles of kolo's engine stand in every timeline.
    """
    del mark_cycles
    kolo.start_timeline(file_path)


def stop_timeline() -> None:
    """Writes what start_timeline() began to record. Collective."""
    kolo.stop_timeline()


def mpi_threads_supported() -> bool:
    """kolo's own threads share MPI with nobody."""
    if not is_initialized():
        raise ValueError("Horovod has not been initialized; use hvd.init().")
    return True


def mpi_enabled() -> bool:
    return True


def mpi_built() -> bool:
    return True


def gloo_enabled() -> bool:
    return False


def gloo_built() -> bool:
    return False


def nccl_built() -> int:
    """0: tensors of GPUs go through the host's memory."""
    return 0


def ddl_built() -> bool:
    return False


def ccl_built() -> bool:
    return False


def cuda_built() -> bool:
    return False


def rocm_built() -> bool:
    return False
