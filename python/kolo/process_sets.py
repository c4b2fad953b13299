"""Some of the job's ranks, for collectives among them alone."""

from typing import Sequence

from kolo import _kolo

ProcessSet = _kolo.ProcessSet

#: The set of all ranks.
ALL = ProcessSet()


def process_set(ranks: Sequence[int]) -> ProcessSet:
    """The set of these ranks, which get the numbers 0, 1, … in it. Collective: all ranks give the same list."""
    return ProcessSet.create(list(ranks))


def split(color: int, key: int = 0) -> ProcessSet:
    """One set for each color, of the ranks that give it, by key, then by rank; this rank's. Collective."""
    return ProcessSet.split(color, key)
