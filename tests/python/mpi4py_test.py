"""kolo on a communicator of mpi4py, which has started MPI and ends it."""
import mpi4py.MPI as mpi
import numpy as np
import pytest

import kolo


@pytest.fixture(scope="module")
def backwards():
    """All processes, in the other order."""
    world = mpi.COMM_WORLD
    comm = world.Split(0, -world.rank)
    kolo.init(comm)
    return comm


def test_no_process_is_in_the_null_communicator():
    with pytest.raises(ValueError, match="MPI.COMM_NULL"):
        kolo.init(mpi.COMM_NULL)
    assert not kolo.is_initialized()


def test_ranks_are_those_of_the_communicator(backwards):
    world = mpi.COMM_WORLD
    assert (kolo.rank(), kolo.size()) == (backwards.rank, world.size) == (world.size - 1 - world.rank, world.size)
    assert kolo.allgather(np.array([world.rank])).tolist() == list(range(world.size))[::-1]


def test_both_send_in_turns(backwards):
    for i in range(5):
        ours = kolo.allreduce(np.array([kolo.rank() + i], np.int64), "sum")[0]
        theirs = mpi.COMM_WORLD.allreduce(mpi.COMM_WORLD.rank + i)
        assert ours == theirs


def test_a_second_call_does_nothing(backwards):
    kolo.init(mpi.COMM_SELF)
    assert kolo.size() == mpi.COMM_WORLD.size


def test_horovods_init_takes_it_too(backwards):
    torch = pytest.importorskip("torch")
    import kolo.torch as hvd
    hvd.init(backwards)
    assert hvd.allreduce(torch.ones(1), op=hvd.Sum).item() == mpi.COMM_WORLD.size
    with pytest.raises(ValueError, match="Invalid type of argument comm. Expected list of rank integers or mpi4py.MPI.Comm"):
        hvd.init("all")
