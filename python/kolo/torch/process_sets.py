"""Horovod's process sets over kolo's."""

from typing import List, Optional, Sequence, Union

import kolo


class ProcessSet:
    """Some of the ranks. Made of a list of them, it comes to life by init() or add_process_set()."""

    def __init__(self, ranks: Sequence[int]):
        try:
            ranks = sorted(ranks)
        except TypeError:
            raise ValueError(f"ProcessSet: {ranks!r} is not a list of ranks") from None
        if any(not isinstance(rank, int) for rank in ranks):
            raise ValueError(f"ProcessSet: {ranks} is not a list of ranks")
        self.ranks: Optional[List[int]] = ranks
        self.native: Optional[kolo.ProcessSet] = None

    @property
    def process_set_id(self) -> Optional[int]:
        """None before it has come to life and after it was removed."""
        return None if self.native is None else self.native.id

    def size(self) -> Optional[int]:
        return None if self.native is None else self.native.size

    def rank(self) -> Optional[int]:
        """This rank's number in the set; None before the set has come to life. Raises ValueError on other ranks."""
        if self.native is None:
            return None
        if self.native.rank < 0:
            raise ValueError(f"rank {kolo.rank()} is not in process set {self.process_set_id} of ranks {self.ranks}")
        return self.native.rank

    def included(self) -> Optional[bool]:
        """Whether this rank is in it."""
        return None if self.ranks is None else kolo.rank() in self.ranks

    def __str__(self) -> str:
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks})"


class _AllRanks(ProcessSet):
    def __init__(self):
        self.native = kolo.ALL

    @property
    def ranks(self) -> List[int]:
        return list(range(kolo.size())) if kolo.is_initialized() else []

    def included(self) -> bool:
        return True


global_process_set = _AllRanks()
_added: List[ProcessSet] = []


def native_of(process_set: ProcessSet) -> kolo.ProcessSet:
    """What the engine takes. Raises ValueError for a set that has not come to life."""
    if process_set.native is None:
        raise ValueError(f"{process_set} is not registered; hvd.init(process_sets=…) or hvd.add_process_set() does that")
    return process_set.native


def begin(sets: Optional[Sequence[ProcessSet]]) -> None:
    """Behind init()."""
    for process_set in sets or ():
        add_process_set(process_set)


def end() -> None:
    """Before shutdown(): the sets are gone with the job."""
    for process_set in _added:
        process_set.native = None
    _added.clear()


def add_process_set(process_set: Union[ProcessSet, Sequence[int]]) -> ProcessSet:
    """Brings a set to life. Collective over all ranks. Raises ValueError where a set of these ranks lives already."""
    if not isinstance(process_set, ProcessSet):
        process_set = ProcessSet(process_set)
    if any(known.ranks == process_set.ranks for known in [global_process_set, *_added]):
        raise ValueError(f"Attempted to add a duplicate process set: {process_set}")
    process_set.native = kolo.process_set(process_set.ranks)
    _added.append(process_set)
    return process_set


def remove_process_set(process_set: ProcessSet) -> bool:
    """Waits for the set's operations and ends it. Collective. False for the set of all ranks and for one without life."""
    if process_set.native is None or process_set is global_process_set:
        return False
    process_set.native.remove()
    process_set.native = None
    _added.remove(process_set)
    return True
