"""A call that one rank alone refuses ends on the others, too, at once, and the engine goes on."""
import pytest
import torch
from torch_device import DEVICE, on_device  # noqa: F401

import kolo.torch as hvd

OPERATIONS = {
    "allreduce": lambda t, **how: hvd.allreduce(t, **how),
    "allreduce_fp16": lambda t, **how: hvd.allreduce(t, compression=hvd.Compression.fp16, **how),
    "allreduce_async": lambda t, **how: hvd.synchronize(hvd.allreduce_async(t, **how)),
    "allreduce_": lambda t, **how: hvd.allreduce_(t, **how),
    "grouped_allreduce": lambda t, **how: hvd.grouped_allreduce([torch.ones(2), t], **how),
    "grouped_allreduce_": lambda t, **how: hvd.grouped_allreduce_([torch.ones(2), t], **how),
    "reducescatter": lambda t, **how: hvd.reducescatter(t, **how),
    "grouped_reducescatter": lambda t, **how: hvd.grouped_reducescatter([torch.ones(6), t], **how),
    "allgather": lambda t, **how: hvd.allgather(t, **how),
    "grouped_allgather": lambda t, **how: hvd.grouped_allgather([torch.ones(2), t], **how),
    "broadcast": lambda t, **how: hvd.broadcast(t, 0, **how),
    "broadcast_": lambda t, **how: hvd.broadcast_(t, 0, **how),
    "alltoall": lambda t, **how: hvd.alltoall(t, **how),
}
REFUSED = {
    "gaps": lambda: torch.ones(6, 4)[:, ::2],
    "another_device": lambda: torch.ones(6, 2, device="meta"),
    "complex": lambda: torch.ones(6, 2, dtype=torch.complex64),
    "a_list": lambda: [1.0, 2.0],
}


def goes_on(size):
    return hvd.allreduce(torch.ones(1), op=hvd.Sum, name="after").item() == size


def refused_by_the_last(call, own, others, rank, size, told="refused"):
    """call(own) on the last rank is an error of its own; call(others) elsewhere says whose it was."""
    if size == 1:
        pytest.skip("nobody waits")
    if rank == size - 1:
        with pytest.raises((ValueError, TypeError, RuntimeError, AttributeError)) as raised:
            call(own)
        assert not isinstance(raised.value, hvd.HorovodInternalError)
    else:
        with pytest.raises(hvd.HorovodInternalError, match=f"rank {size - 1} {told}"):
            call(others)
    assert goes_on(size)


@pytest.mark.parametrize("refused", REFUSED)
@pytest.mark.parametrize("name", ["g", None])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_tensor_that_one_rank_refuses_ends_the_call_everywhere(operation, name, refused, rank, size):
    if DEVICE != "cpu" and name is None and refused in ("another_device", "a_list"):
        pytest.skip("unnamed calls on a GPU's tensors are not counted with those on anything else")
    refused_by_the_last(lambda tensor: OPERATIONS[operation](tensor, name=name), REFUSED[refused](), torch.ones(6, 2),
                        rank, size)


def test_adasum_refuses_lbfgs_and_says_why(started):
    optimizer = torch.optim.LBFGS([torch.nn.Parameter(torch.ones(2))])
    with pytest.raises(ValueError, match="LBFGS takes its steps on all parameters together; op=Average would be right"):
        hvd.DistributedOptimizer(optimizer, op=hvd.Adasum)
    hvd.DistributedOptimizer(optimizer)


@pytest.mark.parametrize("value", [torch.ones(3), torch.ones(3).to(torch.complex64).to_sparse()], ids=["dense", "complex"])
def test_sparse_tensors(value, rank, size):
    refused_by_the_last(lambda tensor: hvd.sparse_allreduce_async(tensor, "rows", hvd.Sum)(), value,
                        torch.ones(3).to_sparse(), rank, size)


@pytest.mark.parametrize("call", [hvd.broadcast_object, hvd.allgather_object], ids=["broadcast", "allgather"])
def test_objects_that_cannot_be_pickled(call, rank, size):
    class Unpicklable:
        def __reduce__(self):
            raise TypeError("this cannot be pickled")

    arguments = (size - 1,) if call is hvd.broadcast_object else ()
    refused_by_the_last(lambda value: call(value, *arguments, name="object"), Unpicklable(), 1, rank, size)


@pytest.mark.parametrize("bad", [7, torch.ones(2, device="meta"), torch.ones(2, dtype=torch.complex64)],
                         ids=["a_number", "another_device", "complex"])
def test_parameters_of_which_one_rank_cannot_send_one(bad, rank, size):
    def state(value):
        return {"a": torch.ones(2), "b": value, "c": torch.ones(2)}

    refused_by_the_last(lambda value: hvd.broadcast_parameters(state(value), 0), bad, torch.ones(2), rank, size)


def test_splits_of_another_type(rank, size):
    refused_by_the_last(lambda splits: hvd.alltoall(torch.ones(size), splits=splits, name="rows"),
                        torch.ones(size, dtype=torch.int64), torch.ones(size, dtype=torch.int32), rank, size)


def test_batches_without_channels(rank, size):
    norm = hvd.SyncBatchNorm(2)
    refused_by_the_last(norm, torch.ones(2), torch.ones(3, 2), rank, size)
