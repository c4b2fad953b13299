"""Operations that bring tensors to other ranks as they are: allgather, broadcast, alltoall."""

from typing import Optional, Sequence, Tuple, Union

import torch

from kolo import _kolo
from kolo.torch.errors import HorovodInternalError
from kolo.torch.handles import Handle, horovods_errors, synchronize, tells_refusals
from kolo.torch.memory import bytes_of, check, tensor_of
from kolo.torch.process_sets import global_process_set, native_of
from kolo.torch.staging import through_the_host


@through_the_host("rows")
@tells_refusals("allgather", "rows.")
def gathered_rows_async(tensor, name, process_set) -> Handle:
    """allgather_async, also while a rank has joined: it gives no rows."""
    with horovods_errors():
        pending = _kolo.allgather(bytes_of(tensor), "rows." + name, native_of(process_set))
    return Handle(pending, lambda rows: tensor_of(rows, tensor.dtype))


@through_the_host("allgather")
@tells_refusals("grouped_allgather", "allgather.")
def allgather_async(tensor, name=None, process_set=global_process_set) -> Handle:
    """The rows of all ranks, in rank order; each rank may give another number of them.

    As in Horovod it fails while a rank has joined, since rows would be missing of which nobody knows.
    """
    presence = torch.ones(1, dtype=torch.uint8, device="cpu")
    native = native_of(process_set)
    with horovods_errors():
        pending = _kolo.grouped_allgather([bytes_of(tensor), bytes_of(presence)],
                                          "allgather." + name if name else "", native)
    ranks = native.size

    def result(gathered: Sequence[_kolo.Memory]) -> torch.Tensor:
        rows, present = gathered
        if present.shape[0] < ranks:
            raise HorovodInternalError(f"{pending.name}: is not supported while a rank has joined; "
                                       f"{present.shape[0]} of {ranks} ranks gave rows")
        return tensor_of(rows, tensor.dtype)

    return Handle(pending, result)


@through_the_host("grouped_allgather")
@tells_refusals("grouped_allgather", "grouped_allgather.")
def grouped_allgather_async(tensors, name=None, process_set=global_process_set) -> Handle:
    """allgather of several tensors, all or none. A list."""
    with horovods_errors():
        pending = _kolo.grouped_allgather([bytes_of(tensor) for tensor in tensors],
                                          "grouped_allgather." + name if name else "", native_of(process_set))
    return Handle(pending, lambda results: [tensor_of(rows, tensor.dtype) for rows, tensor in zip(results, tensors)])


@through_the_host("broadcast")
@tells_refusals("broadcast", "broadcast.")
def _start_broadcast(tensor: torch.Tensor, in_place: bool, root_rank: int, name: Optional[str],
                     process_set) -> Handle:
    output = tensor if in_place else check(tensor).detach().clone()
    memory = bytes_of(output)
    with horovods_errors():
        pending = _kolo.broadcast(memory, root_rank, "broadcast." + name if name else "", native_of(process_set))
    return Handle(pending, lambda _: output)


def broadcast_async(tensor, root_rank, name=None, process_set=global_process_set) -> Handle:
    """The root's tensor on every rank, as a new tensor. root_rank: among all ranks."""
    return _start_broadcast(tensor, False, root_rank, name, process_set)


def broadcast_async_(tensor, root_rank, name=None, process_set=global_process_set) -> Handle:
    """The same, into the tensor's own memory."""
    return _start_broadcast(tensor, True, root_rank, name, process_set)


def broadcast_(tensor, root_rank, name=None, process_set=global_process_set) -> torch.Tensor:
    """The same, waited for."""
    return synchronize(broadcast_async_(tensor, root_rank, name, process_set))


def _numbers_of(splits: Optional[Union[torch.Tensor, Sequence[int]]]) -> Tuple[list, torch.dtype]:
    """The rows for each rank, and the type in which Horovod tells what has come."""
    if splits is None:
        return [], torch.int32
    if not isinstance(splits, torch.Tensor):
        splits = torch.tensor(splits, dtype=torch.int32, device="cpu")
    if splits.dtype is not torch.int32:
        raise ValueError(f"splits: {splits.dtype}; torch.int32 would be right")
    return splits.tolist(), splits.dtype


@through_the_host("alltoall")
@tells_refusals("alltoall", "alltoall.")
def alltoall_async(tensor, splits=None, name=None, process_set=global_process_set) -> Handle:
    """splits[j] rows go to rank j; without splits each gets as many. (the rows sent here, how many from each rank)."""
    numbers, dtype = _numbers_of(splits)
    with horovods_errors():
        pending = _kolo.alltoall(bytes_of(tensor), numbers, "alltoall." + name if name else "", native_of(process_set))
    return Handle(pending, lambda received: (tensor_of(received[0], tensor.dtype),
                                             torch.tensor(received[1], dtype=dtype, device="cpu")))
