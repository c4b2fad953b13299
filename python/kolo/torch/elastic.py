"""horovod.torch.elastic, as kolorun's restarts carry it.

Under `kolorun --elastic`, and `--restarts N`, each change of the ranks is a new start of all of them. A state with a
directory goes on from its last commit then, an ElasticSampler with the samples that nobody has processed, and reset
callbacks run where the number of ranks is another one than before.
"""

import contextlib
import copy
import functools
import glob
import math
import os
import random
import sys
import uuid
from typing import Any, Callable, Dict, Iterator, List, Optional, Sized, Tuple

import torch

import kolo
from kolo.errors import FailedPreconditionError
from kolo.torch.objects import allgather_object, broadcast_object

_PART = "state of "  # in front of the name of what has a state_dict


class ElasticSampler(torch.utils.data.Sampler):
    """The samples of an epoch that no rank has processed, shared out among the ranks, as often as those change.

    Name it in a TorchState, record what each batch has taken, and call set_epoch() before each epoch. As Horovod's:
    all ranks draw as many samples, so that up to one a rank comes twice at the end of an epoch.
    """

    def __init__(self, dataset: Sized, shuffle: bool = True, seed: int = 0):
        self.dataset, self.shuffle, self.seed = dataset, shuffle, seed
        self.epoch = 0
        self.processed_indices: set = set()
        self.indices: List[int] = []
        self.reset()

    def set_epoch(self, epoch: int) -> None:
        """Before an epoch: nothing of it is processed yet, and it has an order of its own."""
        self.epoch = epoch
        self.processed_indices = set()
        self.reset()

    def record_batch(self, batch_idx: int, batch_size: int) -> None:
        """Batch `batch_idx` of those that this rank's loader has given is processed."""
        self.record_indices(self.get_indices(batch_idx, batch_size))

    def record_indices(self, indices: List[int]) -> None:
        """These samples are processed."""
        self.processed_indices.update(indices)

    def get_indices(self, batch_idx: int, batch_size: int) -> List[int]:
        """The samples of a batch of this rank."""
        return self.indices[batch_idx * batch_size:(batch_idx + 1) * batch_size]

    def reset(self) -> None:
        """Shares out what is not processed among the ranks that there are."""
        self.num_replicas, self.rank = kolo.size(), kolo.rank()
        order = list(range(len(self.dataset)))
        if self.shuffle:
            random.Random(self.seed + self.epoch).shuffle(order)
        self.remaining_indices = [index for index in order if index not in self.processed_indices]
        self.num_samples = math.ceil(len(self.remaining_indices) / self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def state_dict(self) -> Dict[str, Any]:
        return {"epoch": self.epoch, "processed_indices": self.processed_indices}

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        self.epoch, self.processed_indices = state_dict["epoch"], set(state_dict["processed_indices"])
        self.reset()

    def __iter__(self) -> Iterator[int]:
        padded = self.remaining_indices + self.remaining_indices[:self.total_size - len(self.remaining_indices)]
        self.indices = padded[self.rank:self.total_size:self.num_replicas]
        return iter(self.indices)

    def __len__(self) -> int:
        return self.num_samples


def _on_host(values: Any) -> Any:
    """Of a state_dict: another rank, and another start, need not have the GPU that a tensor is on."""
    if isinstance(values, torch.Tensor):
        return values.cpu()
    if isinstance(values, dict):
        return type(values)((name, _on_host(value)) for name, value in values.items())
    return [_on_host(value) for value in values] if isinstance(values, list) else values


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


class _CommitFile:
    """What rank 0 has committed in a directory, which the newest start of a job alone writes.

    A host that was taken for lost may come back, and rank 0 of an earlier start may then go on within a commit. Each start
    therefore writes files of its own name, and replaces the commit only while it is the one that took the directory last.
    """

    def __init__(self, directory: str):
        self._path = os.path.join(directory, "elastic_state.pt")
        self._holder = os.path.join(directory, "elastic_state.holder")
        self._start = ""  # its random name; none before it takes the directory

    def take(self) -> None:
        """From now on no other start writes there."""
        self._start = uuid.uuid4().hex
        os.makedirs(os.path.dirname(self._path), exist_ok=True)
        with open(self._temporary(), "w", encoding="ascii") as file:
            file.write(self._start)
        os.replace(self._temporary(), self._holder)
        for left in glob.glob(f"{glob.escape(self._path)}.*.tmp"):
            _remove(left)

    def read(self) -> Any:
        """The values; None where nothing is committed."""
        return torch.load(self._path, weights_only=False) if os.path.exists(self._path) else None  # its own, of any values

    def write(self, values: Any) -> None:
        """Whole or not at all."""
        if not self._start:
            self.take()
        torch.save(values, self._temporary())
        with open(self._holder, encoding="ascii") as file:
            is_holder = file.read() == self._start
        if not is_holder:
            _remove(self._temporary())
            raise FailedPreconditionError(
                f"commit() on {kolo.hostname()} has written nothing: a later start of this program has taken "
                f"{os.path.dirname(self._path)}; end this one, or give it another directory")
        os.replace(self._temporary(), self._path)

    def _temporary(self) -> str:
        return f"{self._path}.{self._start}.tmp"


class ObjectState:
    """Values by name, as attributes. commit() keeps them, restore() brings the kept ones back, sync() rank 0's.

    Of an ElasticSampler all ranks keep what any of them has processed: commit() is then called by all of them.
    """

    def __init__(self, directory: Optional[str] = None, **values: Any):
        """directory: where rank 0 also writes what is committed, for the next start; not in Horovod."""
        self._committed = None if directory is None else _CommitFile(directory)
        self._names = sorted(values)
        self._reset_callbacks: List[Callable[[], None]] = []
        for name, value in values.items():
            setattr(self, name, value)
        self._kept: Any = None
        self._keep(self._values())

    def register_reset_callbacks(self, callbacks: List[Callable[[], None]]) -> None:
        """run() calls them behind sync() in a start of kolorun's that has another number of ranks than the one before."""
        self._reset_callbacks.extend(callbacks)

    def on_reset(self) -> None:
        """Calls the reset callbacks, and keeps what they have changed."""
        for callback in self._reset_callbacks:
            callback()
        self.save()

    def _values(self) -> Any:
        own = {name: getattr(self, name) for name in self._names}
        for name, part in self._parts():
            own.pop(name, None)
            own[_PART + name] = _on_host(part.state_dict())
        return own

    def _set(self, values: Any) -> None:
        values = dict(values)
        for name, part in self._parts():
            part.load_state_dict(values.pop(_PART + name))
        for name, value in values.items():
            setattr(self, name, value)

    def _parts(self) -> List[Tuple[str, Any]]:
        return self._samplers()

    def _samplers(self) -> List[Tuple[str, ElasticSampler]]:
        named = [(name, getattr(self, name)) for name in self._names]
        return [(name, value) for name, value in named if isinstance(value, ElasticSampler)]

    def _keep(self, values: Any) -> None:
        self._kept = copy.deepcopy(values)

    def save(self) -> None:
        """Keeps the values, in memory."""
        values = self._values()
        for name, _ in self._samplers():
            own = values[_PART + name]
            processed = set().union(*allgather_object(own["processed_indices"]))
            values[_PART + name] = {**own, "processed_indices": processed}
        self._keep(values)

    def restore(self) -> None:
        """The values that were kept last."""
        self._set(copy.deepcopy(self._kept))

    def commit(self) -> None:
        """save(); with a directory rank 0 writes the values there too, whole or not at all, and check_host_updates()."""
        self.save()
        if self._committed is not None and kolo.rank() == 0:
            self._committed.write(self._kept)
        self.check_host_updates()

    def check_host_updates(self) -> None:
        """Ends the program where kolorun has asked the ranks to stop, such as for more hosts; with a directory alone."""
        if self._committed is not None and kolo.should_stop():
            sys.exit(kolo.exit_code())

    def sync(self) -> None:
        """Rank 0's values on every rank: those of its last commit where an earlier start has left one.

        It reads the directory alone, so a second program may look at a training that runs.
        """
        if self._committed is not None and kolo.rank() == 0:
            committed = self._committed.read()
            if committed is not None:
                self._set(committed)
        self._set(broadcast_object(self._values(), 0))
        self.save()

    def _take_directory(self) -> None:
        if self._committed is not None and kolo.rank() == 0:
            self._committed.take()


class TorchState(ObjectState):
    """The same with a model and an optimizer, whose state is kept."""

    def __init__(self, model: Optional[torch.nn.Module] = None, optimizer: Optional[torch.optim.Optimizer] = None,
                 directory: Optional[str] = None, **values: Any):
        self.model, self.optimizer = model, optimizer
        super().__init__(directory, **values)

    def _parts(self) -> List[Tuple[str, Any]]:
        of_torch = [(name, part) for name, part in (("model", self.model), ("optimizer", self.optimizer))
                    if part is not None]
        return of_torch + self._samplers()


def run(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function(state, …)` behind state.sync(), and the reset callbacks where the ranks have become more or fewer.

    An error of the job is not caught: `kolorun --elastic` or `--restarts` begins anew.
    """

    @functools.wraps(function)
    def synced(state: ObjectState, *arguments: Any, **options: Any) -> Any:
        state.check_host_updates()  # a request to stop is heard from here on
        state._take_directory()
        state.sync()
        restart = kolo.elastic_restart()
        if restart.number > 0 and restart.ranks_before != kolo.size():
            state.on_reset()
        return function(state, *arguments, **options)

    return synced
