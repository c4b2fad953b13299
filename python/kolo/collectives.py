"""Collectives on NumPy arrays.

Each function has an `_async` form that returns a Handle; the arrays must then live, and be left alone, until its
wait() has returned. `name` is how the ranks find each other's calls: named calls may come in any order and from any
thread; unnamed ones (None) must come in the same order on all ranks. Wrong arguments raise at once, what the ranks
disagree on raises on every rank, and the engine goes on: docs/eager.md has the table.
"""

import functools
import inspect
import pickle
from typing import TYPE_CHECKING, Any, Callable, List, Optional, Sequence, Tuple

import numpy as np

from kolo import _kolo
from kolo.arrays import array_of, bytes_of, memory_of, prepared, writable
from kolo.handles import Handle
from kolo.process_sets import ALL, ProcessSet

if TYPE_CHECKING:
    from typing import ParamSpec, Type, TypeVar
    P = ParamSpec("P")
    R = TypeVar("R")

__all__ = ["allgather", "allgather_async", "allgather_object", "allgather_object_async", "allreduce", "allreduce_async",
           "alltoall", "alltoall_async", "barrier", "barrier_async", "broadcast", "broadcast_async", "broadcast_object",
           "broadcast_object_async", "gather", "gather_async", "grouped_allgather", "grouped_allgather_async",
           "grouped_allreduce", "grouped_allreduce_async", "grouped_broadcast", "grouped_broadcast_async",
           "grouped_reduce_scatter", "grouped_reduce_scatter_async", "join", "join_async", "reduce_scatter",
           "reduce_scatter_async", "scatter", "scatter_async"]

Arrays = Sequence[np.ndarray]


def _results(arrays: Arrays, in_place: bool) -> List[np.ndarray]:
    """Where the results are to stand."""
    return [writable(array) if in_place else np.array(array, order="C") for array in arrays]


def allreduce_async(array: np.ndarray, op: str = "average", *, name: Optional[str] = None, prescale: float = 1.0,
                    postscale: float = 1.0, in_place: bool = False, process_set: ProcessSet = ALL) -> Handle:
    """The arrays of all ranks combined: a new array, or `array` itself.

    op: "sum", "average", "min", "max", "product", "adasum". All ranks give the same dtype and shape; averages, adasum
    and scales are for floating types. What is reduced is array × prescale, and the result is × postscale.
    in_place: raises InvalidArgumentError for a read-only array; the other ranks get FailedPreconditionError.
    """
    def prepare() -> Tuple[np.ndarray, _kolo.Memory]:
        result, = _results([array], in_place)
        return result, memory_of(result)

    result, memory = prepared("allreduce", name, process_set, prepare)
    pending = _kolo.allreduce(memory, op, prescale, postscale, name or "", process_set)
    return Handle(pending, lambda _: result)


def grouped_allreduce_async(arrays: Arrays, op: str = "average", *, name: Optional[str] = None, prescale: float = 1.0,
                            postscale: float = 1.0, in_place: bool = False, process_set: ProcessSet = ALL) -> Handle:
    """allreduce of several arrays under one name, all or none; a list."""
    def prepare() -> Tuple[List[np.ndarray], List[_kolo.Memory]]:
        results = _results(arrays, in_place)
        return results, [memory_of(result) for result in results]

    results, memory = prepared("grouped_allreduce", name, process_set, prepare)
    pending = _kolo.grouped_allreduce(memory, op, prescale, postscale, name or "", process_set)
    return Handle(pending, lambda _: results)


def reduce_scatter_async(array: np.ndarray, op: str = "average", *, name: Optional[str] = None, prescale: float = 1.0,
                         postscale: float = 1.0, process_set: ProcessSet = ALL) -> Handle:
    """This rank's rows of the ranks' arrays combined: of n rows the first n mod R ranks get one more than the others."""
    memory = prepared("reduce_scatter", name, process_set, lambda: memory_of(array))
    pending = _kolo.reduce_scatter(memory, op, prescale, postscale, name or "", process_set)
    return Handle(pending, lambda rows: array_of(rows, array.dtype))


def grouped_reduce_scatter_async(arrays: Arrays, op: str = "average", *, name: Optional[str] = None,
                                 prescale: float = 1.0, postscale: float = 1.0,
                                 process_set: ProcessSet = ALL) -> Handle:
    """reduce_scatter of several arrays under one name, all or none; a list."""
    memory = prepared("grouped_reduce_scatter", name, process_set, lambda: [memory_of(array) for array in arrays])
    pending = _kolo.grouped_reduce_scatter(memory, op, prescale, postscale, name or "", process_set)
    return Handle(pending, lambda results: [np.asarray(rows) for rows in results])


def allgather_async(array: np.ndarray, *, name: Optional[str] = None, process_set: ProcessSet = ALL) -> Handle:
    """The rows of all ranks, in rank order; each rank may give another number of them."""
    memory, is_bytes = prepared("allgather", name, process_set, lambda: bytes_of(array))
    pending = _kolo.allgather(memory, name or "", process_set)
    return Handle(pending, lambda rows: array_of(rows, array.dtype, is_bytes))


def grouped_allgather_async(arrays: Arrays, *, name: Optional[str] = None, process_set: ProcessSet = ALL) -> Handle:
    """allgather of several arrays under one name, all or none; a list."""
    memory = prepared("grouped_allgather", name, process_set, lambda: [bytes_of(array) for array in arrays])
    pending = _kolo.grouped_allgather([rows for rows, _ in memory], name or "", process_set)
    return Handle(pending, lambda results: [array_of(rows, array.dtype, is_bytes)
                                            for rows, array, (_, is_bytes) in zip(results, arrays, memory)])


def broadcast_async(array: np.ndarray, root: int, *, name: Optional[str] = None, in_place: bool = False,
                    process_set: ProcessSet = ALL) -> Handle:
    """root's array on every rank. root: the job's number of a rank in the set."""
    def prepare() -> Tuple[np.ndarray, _kolo.Memory]:
        result = array if in_place and root == _kolo.rank() else _results([array], in_place)[0]
        return result, bytes_of(result)[0]

    result, memory = prepared("broadcast", name, process_set, prepare)
    return Handle(_kolo.broadcast(memory, root, name or "", process_set), lambda _: result)


def grouped_broadcast_async(arrays: Arrays, root: int, *, name: Optional[str] = None, in_place: bool = False,
                            process_set: ProcessSet = ALL) -> Handle:
    """broadcast of several arrays under one name, all or none; a list."""
    def prepare() -> Tuple[List[np.ndarray], List[_kolo.Memory]]:
        results = list(arrays) if in_place and root == _kolo.rank() else _results(arrays, in_place)
        return results, [bytes_of(result)[0] for result in results]

    results, memory = prepared("grouped_broadcast", name, process_set, prepare)
    return Handle(_kolo.grouped_broadcast(memory, root, name or "", process_set), lambda _: results)


def alltoall_async(array: np.ndarray, splits: Sequence[int] = (), *, name: Optional[str] = None,
                   process_set: ProcessSet = ALL) -> Handle:
    """splits[j] rows go to rank j of the set; without splits each gets as many. (the rows sent here, from whom)."""
    (memory, is_bytes), numbers = prepared("alltoall", name, process_set,
                                           lambda: (bytes_of(array), [int(rows) for rows in splits]))
    pending = _kolo.alltoall(memory, numbers, name or "", process_set)

    def result(received: Tuple[_kolo.Memory, List[int]]) -> Tuple[np.ndarray, List[int]]:
        return array_of(received[0], array.dtype, is_bytes), received[1]

    return Handle(pending, result)


def gather_async(array: np.ndarray, root: int, *, name: Optional[str] = None, process_set: ProcessSet = ALL) -> Handle:
    """The rows of all ranks at the root; no rows elsewhere."""
    memory, is_bytes = prepared("gather", name, process_set, lambda: bytes_of(array))
    pending = _kolo.gather(memory, root, name or "", process_set)
    return Handle(pending, lambda rows: array_of(rows, array.dtype, is_bytes))


def scatter_async(array: np.ndarray, root: int, *, name: Optional[str] = None, process_set: ProcessSet = ALL) -> Handle:
    """An equal share of the root's rows. Of what the others give only the dtype is looked at."""
    memory, is_bytes = prepared("scatter", name, process_set, lambda: bytes_of(array))
    pending = _kolo.scatter(memory, root, name or "", process_set)
    return Handle(pending, lambda rows: array_of(rows, array.dtype, is_bytes))


def barrier_async(*, name: Optional[str] = None, process_set: ProcessSet = ALL) -> Handle:
    """Ends when every rank of the set has called it."""
    return Handle(_kolo.barrier(name or "", process_set), lambda _: None)


def join_async(*, process_set: ProcessSet = ALL) -> Handle:
    """This rank has no more data. Until all have said so it adds nothing to the allreduces and allgathers of the
    others and holds up no barrier; other operations raise FailedPreconditionError. The last rank that joined."""
    return Handle(_kolo.join(process_set), lambda last: last)


def broadcast_object_async(value: Any, root: int = 0, *, name: Optional[str] = None,
                           process_set: ProcessSet = ALL) -> Handle:
    """root's object on every rank, pickled on the way: for ranks that trust each other, as those of a job do."""
    is_root = _kolo.rank() == root
    text = prepared("broadcast_object", name, process_set, lambda: pickle.dumps(value) if is_root else b"")
    pending = _kolo.broadcast_object(text, root, name or "", process_set)
    return Handle(pending, lambda text: value if is_root else pickle.loads(text))


def allgather_object_async(value: Any, *, name: Optional[str] = None, process_set: ProcessSet = ALL) -> Handle:
    """Every rank's object, in rank order; pickled on the way."""
    text = prepared("allgather_object", name, process_set, lambda: pickle.dumps(value))
    pending = _kolo.allgather_object(text, name or "", process_set)
    return Handle(pending, lambda texts: [pickle.loads(text) for text in texts])


def _blocking(start: "Callable[P, Handle]", result: "Type[R]") -> "Callable[P, R]":
    """`start` and the wait for it, with its signature; result: what comes back."""
    @functools.wraps(start)
    def function(*arguments: "P.args", **options: "P.kwargs") -> "R":
        return start(*arguments, **options).wait()

    function.__name__ = function.__qualname__ = start.__name__[: -len("_async")]
    function.__signature__ = inspect.signature(start).replace(return_annotation=result)  # type: ignore[attr-defined]
    return function


allreduce = _blocking(allreduce_async, np.ndarray)
grouped_allreduce = _blocking(grouped_allreduce_async, List[np.ndarray])
reduce_scatter = _blocking(reduce_scatter_async, np.ndarray)
grouped_reduce_scatter = _blocking(grouped_reduce_scatter_async, List[np.ndarray])
allgather = _blocking(allgather_async, np.ndarray)
grouped_allgather = _blocking(grouped_allgather_async, List[np.ndarray])
broadcast = _blocking(broadcast_async, np.ndarray)
grouped_broadcast = _blocking(grouped_broadcast_async, List[np.ndarray])
alltoall = _blocking(alltoall_async, Tuple[np.ndarray, List[int]])
gather = _blocking(gather_async, np.ndarray)
scatter = _blocking(scatter_async, np.ndarray)
barrier = _blocking(barrier_async, type(None))
join = _blocking(join_async, int)
broadcast_object = _blocking(broadcast_object_async, Any)
allgather_object = _blocking(allgather_object_async, List[Any])
