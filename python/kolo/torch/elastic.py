"""horovod.torch.elastic, as far as kolo's restarts carry it.

kolo keeps the number of ranks. Where a rank is lost the job ends, and `kolorun --restarts N` starts all of it again;
a TorchState with a directory then goes on from its last commit.
"""

import copy
import functools
import os
from typing import Any, Callable, List, Optional

import torch

import kolo
from kolo.torch.objects import broadcast_object

_FILE = "elastic_state.pt"


class ObjectState:
    """Values by name, as attributes. commit() keeps them, restore() brings the kept ones back, sync() rank 0's."""

    def __init__(self, directory: Optional[str] = None, **values: Any):
        """directory: where rank 0 also writes what is committed, for the next start; not in Horovod."""
        self._directory = directory
        self._names = sorted(values)
        self._reset_callbacks: List[Callable[[], None]] = []
        for name, value in values.items():
            setattr(self, name, value)
        self._kept: Any = None
        self.save()

    def register_reset_callbacks(self, callbacks: List[Callable[[], None]]) -> None:
        """Horovod calls them when ranks come or go, which does not happen here."""
        self._reset_callbacks.extend(callbacks)

    def _values(self) -> Any:
        return {name: getattr(self, name) for name in self._names}

    def _set(self, values: Any) -> None:
        for name, value in values.items():
            setattr(self, name, value)

    def save(self) -> None:
        """Keeps the values, in memory."""
        self._kept = copy.deepcopy(self._values())

    def restore(self) -> None:
        """The values that were kept last."""
        self._set(copy.deepcopy(self._kept))

    def commit(self) -> None:
        """save(); with a directory rank 0 writes the values there too, whole or not at all."""
        self.save()
        if self._directory is not None and kolo.rank() == 0:
            os.makedirs(self._directory, exist_ok=True)
            path = os.path.join(self._directory, _FILE)
            torch.save(self._kept, path + ".tmp")
            os.replace(path + ".tmp", path)

    def check_host_updates(self) -> None:
        """Hosts do not come or go."""

    def sync(self) -> None:
        """Rank 0's values on every rank: those of its last commit where an earlier start has left one."""
        if self._directory is not None and kolo.rank() == 0:
            path = os.path.join(self._directory, _FILE)
            if os.path.exists(path):
                self._set(torch.load(path))
        self._set(broadcast_object(self._values(), 0))
        self.save()


class TorchState(ObjectState):
    """The same with a model and an optimizer, whose state is kept."""

    def __init__(self, model: Optional[torch.nn.Module] = None, optimizer: Optional[torch.optim.Optimizer] = None,
                 directory: Optional[str] = None, **values: Any):
        self.model, self.optimizer = model, optimizer
        super().__init__(directory, **values)

    def _values(self) -> Any:
        parts = {name: part.state_dict() for name, part in self._parts()}
        return {**super()._values(), **{f"state of {name}": state for name, state in parts.items()}}

    def _set(self, values: Any) -> None:
        values = dict(values)
        for name, part in self._parts():
            part.load_state_dict(values.pop(f"state of {name}"))
        super()._set(values)

    def _parts(self):
        return [(name, part) for name, part in (("model", self.model), ("optimizer", self.optimizer))
                if part is not None]


def run(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function(state, …)` behind state.sync(). An error of the job is not caught: kolorun --restarts begins anew."""

    @functools.wraps(function)
    def synced(state: ObjectState, *arguments: Any, **options: Any) -> Any:
        state.sync()
        return function(state, *arguments, **options)

    return synced


class ElasticSampler:
    """Refused: kolo's ranks do not change in number."""

    def __init__(self, *_: Any, **__: Any):
        raise NotImplementedError("kolo keeps the number of ranks, so that there is no ElasticSampler; "
                                  "torch.utils.data.DistributedSampler(dataset, hvd.size(), hvd.rank()) would be right")
