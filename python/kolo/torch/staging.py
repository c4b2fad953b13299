"""Operations on tensors of a GPU, by way of the host's memory.

The tensors are copied into pinned memory behind the work that makes them, in a stream that serves copies alone. The
thread "kolo-staging" waits until they have arrived and then starts the operation there, in the order of the calls.
synchronize() copies the results back, and what the current stream gets from then on comes behind that. So the host waits
for no work of the GPU but in that thread.
"""

import functools
import inspect
import os
import queue
import threading
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch

from kolo.errors import DeadlineExceededError
from kolo.torch.handles import Handle, poll
from kolo.torch.memory import can_travel
from kolo.torch.process_sets import ProcessSet, global_process_set


def _pinned_like(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu", pin_memory=True)


def on_device_like(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    return torch.empty(tensor.shape, dtype=tensor.dtype, device=device)


def pin(tensor: torch.Tensor) -> Optional[Callable[[], None]]:
    """The tensor's memory, whoever's it is, so that GPUs copy to and from it by themselves. Returns what undoes it; None
    where the system does not allow it: copies then take longer."""
    runtime = torch.cuda.cudart()
    address = tensor.data_ptr()
    if int(runtime.cudaHostRegister(address, tensor.numel() * tensor.element_size(), 0)) != 0:
        return None
    return lambda: runtime.cudaHostUnregister(address)


_streams: Dict[torch.device, Any] = {}


def _stream_of(device: torch.device) -> Any:
    if device not in _streams:
        _streams[device] = torch.cuda.Stream(device)
    return _streams[device]


def copy_behind(target: torch.Tensor, source: torch.Tensor, device: torch.device) -> Any:
    """In the stream of copies, behind what the current stream has so far. Returns the former."""
    stream = _stream_of(device)
    stream.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(stream):
        target.copy_(source, non_blocking=True)
    return stream


class _Way:
    """Of the tensors of one call, to the host and back."""

    def __init__(self, tensors: Sequence[torch.Tensor]):
        self._tensors = tensors
        self.host: List[torch.Tensor] = []
        self.arrived: List[Any] = []  # events
        for tensor in tensors:
            if not tensor.is_cuda:
                self.host.append(tensor)
                continue
            source = tensor.detach()
            self.host.append(_pinned_like(source))
            stream = copy_behind(self.host[-1], source, tensor.device)
            source.record_stream(stream)  # its memory may go to another tensor before the copy has begun
            self.arrived.append(stream.record_event())

    def back(self, result: Any, in_place: bool) -> Any:
        """result: a tensor, a list as long as that of the tensors, or a tuple whose first is what was asked for."""
        if isinstance(result, tuple):
            return (self._one(0, result[0], in_place), *result[1:])
        if isinstance(result, list):
            return [self._one(i, made, in_place) for i, made in enumerate(result)]
        return self._one(0, result, in_place)

    def _one(self, place: int, made: torch.Tensor, in_place: bool) -> torch.Tensor:
        own = self._tensors[place]
        if not own.is_cuda:
            return made
        target = own if in_place else on_device_like(made, own.device)
        with torch.no_grad():
            stream = copy_behind(target.detach(), made, own.device)
        torch.cuda.current_stream(own.device).wait_stream(stream)
        return target


def _await(event: threading.Event, what: str) -> None:
    """For as long as the ranks wait for one another. A GPU that hangs would else hold its host for ever."""
    limit = float(os.environ.get("KOLO_STALL_ABORT_S") or 600)
    if not event.wait(limit or None):
        raise DeadlineExceededError(f"kolo.torch: after {limit:g} s the GPU has not finished what comes before {what}; the limit "
                                    "is KOLO_STALL_ABORT_S")


class _Pending:
    """An operation that starts when its tensors have arrived. As the engine's."""

    def __init__(self, name: str, start: Callable[[], Handle], arrived: Sequence[Any]):
        self._name = name
        self._start: Optional[Callable[[], Handle]] = start
        self._arrived = arrived
        self._has_begun = threading.Event()
        self._handle: Optional[Handle] = None
        self._error: Optional[BaseException] = None

    def begin(self) -> None:
        """Of the thread."""
        try:
            for event in self._arrived:
                event.synchronize()
            self._handle = self._start()
        except BaseException as error:  # told to the one who waits
            self._error = error
        self._start = None
        self._has_begun.set()

    def poll(self) -> bool:
        return self._has_begun.is_set() and (self._error is not None or poll(self._handle))

    def wait(self) -> Any:
        _await(self._has_begun, self._name)
        if self._error is not None:
            raise self._error
        return self._handle.pending.wait()

    def result(self, made: Any) -> Any:
        return self._handle.result(made)


class _Starter:
    """The thread, which lives as long as the process."""

    def __init__(self):
        self._calls: "queue.SimpleQueue" = queue.SimpleQueue()
        threading.Thread(target=self._run, name="kolo-staging", daemon=True).start()

    def add(self, begin: Callable[[], None]) -> None:
        self._calls.put(begin)

    def _run(self) -> None:
        while True:
            self._calls.get()()


_starter: Optional[_Starter] = None
_unnamed: Dict[Tuple[str, Optional[int]], int] = {}  # calls of an operation in a process set
_MOST_UNNAMED = 65536  # whose numbers are then given again: the engine keeps each name


def start_later(begin: Callable[[], None]) -> None:
    """On the thread, in the order of the calls."""
    global _starter
    if _starter is None:
        _starter = _Starter()
    _starter.add(begin)


def drain(what: str = "join") -> None:
    """Returns when all operations have started that were asked for."""
    if _starter is not None:
        is_empty = threading.Event()
        _starter.add(is_empty.set)
        _await(is_empty, what)


def is_on_gpu(given: Any) -> bool:
    """A tensor, or one of several."""
    if isinstance(given, torch.Tensor):
        return given.is_cuda
    return isinstance(given, (list, tuple)) and any(getattr(one, "is_cuda", False) for one in given)


def name_of(operation: str, given: Any, name: Optional[str], process_set: ProcessSet) -> Optional[str]:
    """Unnamed calls are matched by their number. Those on tensors of GPUs start later than others, so they count apart:
    for each operation and process set, as the engine counts the others."""
    if name or not is_on_gpu(given):
        return name
    place = operation, process_set.process_set_id
    _unnamed[place] = (_unnamed.get(place, -1) + 1) % _MOST_UNNAMED
    return f"gpu.noname.{_unnamed[place]}"


def count_again() -> None:
    """On all ranks at once, of which some may have made more calls than others."""
    _unnamed.clear()


def check_not_capturing() -> None:
    if torch.cuda.is_current_stream_capturing():
        raise RuntimeError("kolo.torch: a CUDA graph cannot capture an operation among ranks; capture what comes before it "
                           "and behind it")


def _start_later(start: Callable[..., Handle], operation: str, call: inspect.BoundArguments, first: str) -> Handle:
    check_not_capturing()
    arguments = call.arguments
    arguments["name"] = name_of(operation, arguments[first], arguments.get("name"),
                                arguments.get("process_set", global_process_set))
    given = arguments[first]
    tensors = [given] if isinstance(given, torch.Tensor) else list(given)
    if not all(can_travel(tensor) for tensor in tensors):
        return start(*call.args, **call.kwargs)  # which says why not, to the other ranks, too
    in_place = arguments.get("in_place", False)
    if "in_place" in arguments:
        arguments["in_place"] = True  # on the host's copy
    way = _Way(tensors)
    arguments[first] = way.host[0] if isinstance(given, torch.Tensor) else way.host
    pending = _Pending(arguments["name"], lambda: start(*call.args, **call.kwargs), way.arrived)
    start_later(pending.begin)
    return Handle(pending, lambda made: way.back(pending.result(made), in_place))


def through_the_host(operation: str) -> Callable[[Callable[..., Handle]], Callable[..., Handle]]:
    """For a function that starts `operation` on a tensor, or several, its first argument; `name` is another one."""
    def decorated(start: Callable[..., Handle]) -> Callable[..., Handle]:
        signature = inspect.signature(start)
        first = next(iter(signature.parameters))

        @functools.wraps(start)
        def started(*arguments: Any, **options: Any) -> Handle:
            if not is_on_gpu(arguments[0] if arguments else options.get(first)):
                return start(*arguments, **options)
            return _start_later(start, operation, signature.bind(*arguments, **options), first)

        return started

    return decorated
