"""A GPU that is not there, in place of PyTorch's: tensors that say that they are CUDA's and lie in the host's memory, and
streams that do nothing before somebody waits for them. It shows the order of copies and waits, and which bytes travel. It
does not show that a GPU obeys them."""
import contextlib
import copy
import threading

import pytest
import torch

from kolo.torch import staging

_lock = threading.RLock()  # one thread at a time runs what streams have


class Stream:
    def __init__(self, device=None):
        self._work, self._done = [], 0

    def later(self, work):
        self._work.append(work)

    def wait_stream(self, other):
        position = len(other._work)
        self.later(lambda: other.run_until(position))

    def record_event(self):
        return Event(self, len(self._work))

    def synchronize(self):
        self.run_until(len(self._work))

    def run_until(self, position):
        with _lock:
            while self._done < position:
                self._done += 1
                self._work[self._done - 1]()


class Event:
    def __init__(self, stream, position):
        self._stream, self._position = stream, position

    def synchronize(self):
        self._stream.run_until(self._position)


class Tensor(torch.Tensor):
    """Copies to and from it stand in the current stream. All else happens at once, as for tests that look at it."""
    is_cuda = property(lambda self: True)
    device = property(lambda self: torch.device("cuda", 0))

    def record_stream(self, stream):
        assert isinstance(stream, Stream)

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), options=None):
        options = options or {}
        if function is torch.Tensor.copy_:
            return cls._copied(*arguments, **options)
        if _works_in_order.on:
            torch.cuda.current_stream().synchronize()
        if function is torch.Tensor.backward:  # not behind PyTorch's own wrapper, where hooks would see plain tensors
            return torch.autograd.backward(arguments[0].as_subclass(torch.Tensor), *arguments[1:])
        if function is torch.Tensor.cpu:
            return plain(arguments[0]).clone()
        if function in (torch.Tensor.to_sparse, torch.Tensor.expand_as):
            # A sparse tensor cannot be of another class. And whoever asks for the node behind a tensor finds no other one.
            with torch._C.DisableTorchFunction():
                return function(*arguments, **options)
        made = super().__torch_function__(function, types, arguments, options)
        if function == torch.Tensor.grad.__get__ and made is not None and not isinstance(made, cls):
            return as_gpus(made)  # which the backward pass has made
        return made

    def __reduce_ex__(self, protocol):
        return _unpickled, (value_of(self), self.requires_grad, isinstance(self, torch.nn.Parameter))

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            made = memo[id(self)] = _unpickled(*self.__reduce_ex__(2)[1])
            made.grad = copy.deepcopy(self.grad, memo)
        return memo[id(self)]

    @classmethod
    def _copied(cls, to, source, non_blocking=False):
        target, source = plain(to), plain(source)
        spoil(target)
        stream = torch.cuda.current_stream()
        stream.later(lambda: target.copy_(source))
        if not to.is_cuda and not non_blocking:
            stream.synchronize()
        return to


class _works_in_order:
    """Whether what is computed of a tensor comes behind what the current stream has, as on a GPU; else at once."""
    on = False


_MAKERS = {torch.empty, torch.empty_strided, torch.ones, torch.full, torch.zeros, torch.rand, torch.randn, torch.randint,
           torch.randperm, torch.arange, torch.linspace, torch.eye, torch.tensor, torch.as_tensor, torch.scalar_tensor,
           torch.sparse_coo_tensor}


def _to(tensor, *arguments, **options):
    """torch.Tensor.to, which may name a device."""
    devices = [value for value in (*arguments, options.get("device")) if isinstance(value, torch.device)]
    others = [value for value in arguments if not isinstance(value, torch.device)]
    options.pop("device", None)
    made = tensor.to(*others, **options) if others or options else tensor
    if not devices or (devices[0].type == "cuda") == made.is_cuda:
        return made
    return as_gpus(made.detach().clone()) if devices[0].type == "cuda" else value_of(made)


class Factories(torch.overrides.TorchFunctionMode):
    """What is made without naming a device is on the GPU, as under torch.set_default_device("cuda")."""

    def __torch_function__(self, function, types, arguments=(), options=None):
        options = dict(options or {})
        if function is torch.Tensor.to:
            return _to(*arguments, **options)
        if function not in _MAKERS:
            return function(*arguments, **options)
        device = options.pop("device", None)
        if device is not None and torch.device(device).type != "cuda":
            return function(*arguments, device=device, **options)
        if options.pop("pin_memory", False):
            raise RuntimeError("Only dense CPU tensors can be pinned")
        made = function(*arguments, **options)
        return made if isinstance(made, Tensor) else as_gpus(made)


def _unpickled(value, requires_grad, is_parameter):
    made = on_gpu(value)
    return torch.nn.Parameter(made, requires_grad) if is_parameter else made.requires_grad_(requires_grad)


def plain(tensor):
    """The same memory, as a tensor of the host."""
    return tensor.detach().as_subclass(torch.Tensor)


def spoil(tensor):
    """Whoever reads too early sees these bytes."""
    if tensor.numel():
        tensor.view(-1).view(torch.uint8 if tensor.dtype is not torch.bool else torch.bool).fill_(1)
    return tensor


def on_gpu(tensor):
    return as_gpus(tensor.detach().clone())


def as_gpus(tensor):
    """The same memory."""
    if tensor.is_sparse:  # which cannot be of another class: its parts can
        return tensor
    return torch.Tensor._make_subclass(Tensor, plain(tensor), tensor.requires_grad)


def value_of(tensor):
    """As a program reads it: what the current stream has is done."""
    torch.cuda.current_stream().synchronize()
    return plain(tensor).clone()


@contextlib.contextmanager
def played(monkeypatch):
    """In place of torch.cuda, for operations that come one behind the other on a GPU."""
    play(monkeypatch)
    monkeypatch.setattr(_works_in_order, "on", True)
    yield


@pytest.fixture
def gpu(started, monkeypatch):
    """The current stream."""
    return play(monkeypatch)


def play(monkeypatch):
    main, current, pinned = Stream(), threading.local(), []
    main.pinned = pinned

    @contextlib.contextmanager
    def inside(stream):
        before, current.stream = getattr(current, "stream", main), stream
        yield
        current.stream = before

    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device=None: getattr(current, "stream", main))
    monkeypatch.setattr(torch.cuda, "stream", inside)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.setattr(staging, "_pinned_like", lambda tensor: spoil(torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu")))
    monkeypatch.setattr(staging, "pin", lambda tensor: pinned.append(tensor.data_ptr()) or (lambda: None))
    monkeypatch.setattr(staging, "on_device_like",
                        lambda tensor, device: on_gpu(spoil(torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu"))))
    monkeypatch.setattr(staging, "_streams", {})
    return main
