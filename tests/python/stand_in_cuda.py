"""A GPU that is not there, in place of PyTorch's: tensors that say that they are CUDA's and lie in the host's memory, and
streams that do nothing before somebody waits for them. It shows the order of copies and waits, and which bytes travel. It
does not show that a GPU obeys them."""
import contextlib
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
        if function is not torch.Tensor.copy_:
            return super().__torch_function__(function, types, arguments, options or {})
        target, source = (plain(tensor) for tensor in arguments[:2])
        spoil(target)
        torch.cuda.current_stream().later(lambda: target.copy_(source))
        return arguments[0]


def plain(tensor):
    """The same memory, as a tensor of the host."""
    return tensor.detach().as_subclass(torch.Tensor)


def spoil(tensor):
    """Whoever reads too early sees these bytes."""
    if tensor.numel():
        tensor.view(-1).view(torch.uint8 if tensor.dtype is not torch.bool else torch.bool).fill_(1)
    return tensor


def on_gpu(tensor):
    return tensor.clone().as_subclass(Tensor)


def value_of(tensor):
    """As a program reads it: what the current stream has is done."""
    torch.cuda.current_stream().synchronize()
    return plain(tensor).clone()


@pytest.fixture
def gpu(started, monkeypatch):
    """The current stream."""
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
    monkeypatch.setattr(staging, "_pinned_like", lambda tensor: spoil(torch.empty(tensor.shape, dtype=tensor.dtype)))
    monkeypatch.setattr(staging, "pin", lambda tensor: pinned.append(tensor.data_ptr()) or (lambda: None))
    monkeypatch.setattr(staging, "on_device_like",
                        lambda tensor, device: on_gpu(spoil(torch.empty(tensor.shape, dtype=tensor.dtype))))
    monkeypatch.setattr(staging, "_streams", {})
    return main
