"""The gradients of a DistributedOptimizer inside kolo's buckets: reduced while the backward pass goes on, without
negotiation.

kolo.GradientBuckets has each rank take every step with every gradient. A gradient that a rank did not compute is sent
as it stands, or as zeros. A rank that joins takes one last step without gradients; the step's word, which is reduced
behind them, tells the others, and all ranks go back to the engine after that same step.
"""

from typing import Dict, Iterable, List, Optional, Sequence, Tuple

import torch

import kolo
from kolo import _kolo
from kolo.torch.handles import horovods_errors
from kolo.torch.memory import DTYPES, tensor_of
from kolo.torch.staging import count_again, drain
from kolo.torch.step_word import StepWord


class GradientBuckets:
    """Of these parameters, in this order; the same on all ranks. Collective. One thread at a time."""

    def __init__(self, named: Sequence[Tuple[str, torch.nn.Parameter]], op: str):
        listed = [(name, parameter.numel(), DTYPES[parameter.dtype]) for name, parameter in named]
        # Behind the gradients: it is complete when the last of them is, and in the same bucket where they have one type.
        last = named[-1][1]
        listed.append(("what the ranks tell each other", StepWord.elements(len(named)), DTYPES[last.dtype]))
        with horovods_errors():
            self._native = _kolo.GradientBuckets(listed, op)
        self._place: Dict[torch.nn.Parameter, int] = {}
        self._views: List[torch.Tensor] = []
        for place, (_, parameter) in enumerate(named):
            self._place[parameter] = place
            self._views.append(tensor_of(self._native.memory(place), parameter.dtype).view(parameter.shape))
        self._addresses = [view.data_ptr() for view in self._views]
        self.word = StepWord(len(named), last.dtype, 1.0 if op == "average" else float(_kolo.size()))
        self.word.memory = tensor_of(self._native.memory(len(named)), last.dtype)
        self._absent: List[int] = []  # of this step
        self.is_over = False  # a rank has joined: they have had their last step

    def __contains__(self, parameter: torch.nn.Parameter) -> bool:
        return parameter in self._place

    def adopt(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        """Gradients move into their buckets with the values they have."""
        for parameter in parameters:
            if parameter in self._place:
                self._move(parameter, self._place[parameter])

    def _move(self, parameter: torch.nn.Parameter, place: int) -> None:
        view = self._views[place]
        gradient = parameter.grad
        if gradient is None:
            view.zero_()
        else:
            view.copy_(gradient.to_dense() if gradient.is_sparse else gradient)
        parameter.grad = view

    def ready(self, parameter: torch.nn.Parameter) -> None:
        """The parameter's gradient may leave; None counts as zeros."""
        place = self._place[parameter]
        gradient = parameter.grad
        if gradient is None or gradient.is_sparse or gradient.data_ptr() != self._addresses[place]:
            if gradient is None:
                self._absent.append(place)
            self._move(parameter, place)
        self._send(place)

    def _send(self, place: int) -> None:
        self._native.ready(place)

    def _await_sent(self) -> None:
        """Whatever ready() has left for later has begun."""

    def _take_back(self) -> None:
        """The buckets hold the reduced gradients."""

    def wait(self, is_complete: bool, number: Optional[int]) -> None:
        """All gradients are reduced; those that no rank has are None. is_complete, number: of StepWord, which then holds
        what all ranks say."""
        with horovods_errors():
            self._await_sent()
        self.word.write(is_complete, self._absent, number)
        self._absent = []
        self._native.ready(len(self._views))
        with horovods_errors():
            self._native.wait()
        self._take_back()
        self.is_over = not self.word.all_take_part()
        absent = set(self.word.absent_everywhere())
        for parameter, place in self._place.items() if absent else ():
            if place in absent:
                parameter.grad = None

    def begin_last_step(self) -> None:
        """This rank is about to join: the others find no gradients of it in their next step."""
        self.is_over = True
        for place in range(len(self._views) + 1):
            self._native.absent(place)

    def end_last_step(self) -> None:
        """Behind the join, when every rank has begun it."""
        with horovods_errors():
            self._native.wait()


class Usage:
    """Which buckets a training loop still uses. All ranks must think alike of that without a word: a rank that joins
    takes a last step of those in use, and the others come to no bucket that has not been told of it.

    So what is counted are steps in buckets, which all ranks take alike until one joins, and the first of these that the
    others take tells them of it. An optimizer that has taken no step for long goes back to the engine, where ranks may
    be missing, and finds its way into buckets again from there.
    """

    _steps = 0
    _in_use: List["Usage"] = []
    # Those in use when the first rank joined; until all have joined nobody takes a step in others.
    _last_steps: Optional[List[GradientBuckets]] = None
    joins = 0  # how often all ranks have joined
    _SHORTEST_PERIOD = 8  # of an optimizer that has not shown its own yet

    def __init__(self, buckets: GradientBuckets):
        self._buckets = buckets
        self._last = 0
        self._period = 0

    def buckets(self) -> Optional[GradientBuckets]:
        """Those to take the next step in; None: it goes through the engine."""
        if self._buckets.is_over:
            return None
        if Usage._last_steps is not None:
            return self._buckets if self._buckets in Usage._last_steps else None
        return self._buckets if self in Usage._in_use else None

    def count_step(self) -> None:
        """Behind a step in buckets that all ranks have taken, and when they have been made."""
        Usage._steps += 1
        self._period = Usage._steps - self._last if self._last else 0
        self._last = Usage._steps
        others = [usage for usage in Usage._in_use if usage is not self and not usage._is_idle()]
        Usage._in_use = [*others, self]

    def retire(self) -> None:
        """Nobody will take a step in these buckets any more. On all ranks behind the same step."""
        Usage._in_use = [usage for usage in Usage._in_use if usage is not self]

    def _is_idle(self) -> bool:
        return Usage._steps - self._last > 2 * max(self._period, Usage._SHORTEST_PERIOD)

    @classmethod
    def some_rank_joins(cls) -> List[GradientBuckets]:
        """This rank, or another one, as a step in buckets has told: what is left to take a last step in."""
        if cls._last_steps is None:
            cls._last_steps = [usage._buckets for usage in cls._in_use]
        return [buckets for buckets in cls._last_steps if not buckets.is_over]

    @classmethod
    def all_have_joined(cls) -> None:
        cls._steps, cls._in_use, cls._last_steps = 0, [], None
        cls.joins += 1


def join(device: int = -1) -> int:
    """This rank has no more data: until all have said so it adds zeros to the allreduces of the others. The last rank
    that joined. An average is over all ranks. device: Horovod's, of no meaning here.

    The engine's join, beside the last step of each of the buckets that the training loop uses. The others come to those
    with their next steps, or when they join, too. Behind it all optimizers begin with the engine again.
    """
    del device
    drain()
    last_steps = Usage.some_rank_joins()
    for buckets in last_steps:
        buckets.begin_last_step()
    with horovods_errors():
        last_rank = _kolo.join(kolo.ALL).wait()
    for buckets in last_steps:
        buckets.end_last_step()
    Usage.all_have_joined()
    count_again()
    return last_rank
