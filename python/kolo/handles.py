"""Collectives under way."""

from typing import Any, Callable

from kolo import _kolo


class Handle:
    """What an `_async` function returns. Any thread. Dropping it cancels nothing."""

    def __init__(self, pending: _kolo.Pending, result: Callable[[Any], Any]):
        self._pending = pending
        self._result = result

    @property
    def name(self) -> str:
        """Under which the ranks know the operation."""
        return self._pending.name

    def poll(self) -> bool:
        """Whether the operation has ended, well or not. Does not wait."""
        return self._pending.poll()

    def wait_for(self, seconds: float) -> bool:
        """Waits at most so long; whether the operation has ended."""
        return self._pending.wait_for(seconds)

    def wait(self) -> Any:
        """Waits for the end and gives the result, once; raises the operation's error. Ctrl-C ends the wait alone."""
        return self._result(self._pending.wait())
