"""Collectives under way on tensors, and the waits of Horovod's API."""

import contextlib
import functools
import inspect
from typing import Any, Callable, Optional

import kolo
from kolo import _kolo
from kolo.torch.errors import HorovodInternalError
from kolo.torch.process_sets import ProcessSet, global_process_set, native_of


class Handle:
    """What an `_async` function returns, for poll() and synchronize()."""

    __slots__ = ("pending", "result")

    def __init__(self, pending: _kolo.Pending, result: Callable[[Any], Any]):
        self.pending: Optional[_kolo.Pending] = pending
        self.result = result


@contextlib.contextmanager
def horovods_errors():
    """An error of kolo as the exception that programs written for Horovod expect. What is wrong with the call itself
    stays as it is: it is a ValueError."""
    try:
        yield
    except kolo.errors.InvalidArgumentError:
        raise
    except kolo.Error as error:
        raise HorovodInternalError(str(error)) from error


def tell_refusal(operation: str, name: str, error: Exception, process_set: ProcessSet) -> None:
    """Python has refused this rank's call: the ranks that would wait for it get `rank 1 refused <name>: <error>`.

    operation, name: as the engine knows them; "": an unnamed call. The engine tells the others of its own errors.
    """
    if isinstance(error, (kolo.Error, HorovodInternalError)):
        return
    with contextlib.suppress(kolo.Error, ValueError):  # no init(), this rank has joined, no such set: nobody waits
        _kolo.refuse_call(operation, str(error), name, native_of(process_set))


@contextlib.contextmanager
def refusals_told(operation: str, name: str, process_set: ProcessSet):
    """tell_refusal() of what is raised within."""
    try:
        yield
    except Exception as error:
        tell_refusal(operation, name, error, process_set)
        raise


def tells_refusals(operation: str, prefix: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The same for a function that starts `operation`. prefix: of its argument `name`, for the engine."""
    def decorated(start: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(start)

        @functools.wraps(start)
        def told(*arguments: Any, **options: Any) -> Any:
            try:
                return start(*arguments, **options)
            except Exception as error:
                given = signature.bind(*arguments, **options).arguments
                name = given.get("name")
                tell_refusal(operation, f"{prefix}{name}" if name else "", error,
                             given.get("process_set", global_process_set))
                raise

        return told

    return decorated


def poll(handle: Handle) -> bool:
    """Whether the operation has ended; synchronize() then returns without waiting."""
    return handle.pending is None or handle.pending.poll()


def synchronize(handle: Handle) -> Any:
    """Waits for the operation and gives its result, a tensor or several; None if it was asked for before.

    Raises HorovodInternalError where the operation has failed; the engine then goes on, unless a rank is gone.
    """
    pending = handle.pending
    if pending is None:
        return None
    try:
        result = pending.wait()
    except kolo.Error as error:
        handle.pending = None
        raise HorovodInternalError(str(error)) from error
    handle.pending = None
    return handle.result(result)


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Returns when every rank of the set has called it."""
    with horovods_errors():
        _kolo.barrier("", native_of(process_set)).wait()
