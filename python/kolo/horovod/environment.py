"""HOROVOD_* variables as kolo's."""

import os
import re
import sys
from typing import Callable, Dict, List, MutableMapping, Optional, Tuple

_LOG_LEVELS = {"trace": "debug", "debug": "debug", "info": "info", "warning": "warning", "error": "error",
               "fatal": "error"}
_LARGEST = {int: 2**63 - 1, float: 60e3}  # of what kolo takes


def _same(value: str) -> str:
    return value


def _leading(pattern: str, number: type, value: str) -> Optional[str]:
    """As C's strtol and strtof, by which Horovod reads: the number at the beginning, whatever follows it."""
    found = re.match(r"\s*(" + pattern + ")", value)
    if found is None or not 0 <= number(found[1]) <= _LARGEST[number]:
        return None
    return str(number(found[1]))


def _integer(value: str) -> Optional[str]:
    return _leading(r"[+-]?\d+", int, value)


def _decimal(value: str) -> Optional[str]:
    return _leading(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", float, value)


def _flag(value: str) -> Optional[str]:
    number = _integer(value)
    return None if number is None else str(int(int(number) > 0))


def _level(value: str) -> Optional[str]:
    return _LOG_LEVELS.get(value.strip().lower())


def _bucket(largest: int) -> Callable[[str], Optional[str]]:
    """A bucket has a byte at least: a threshold of 0 gives each gradient its own."""
    def written(value: str) -> Optional[str]:
        number = _integer(value)
        return None if number is None else str(min(max(int(number), 1), largest))
    return written


_FIRST_BUCKET = 1 << 20  # kolo's default

# Horovod's variable → kolo's, and how the value is written there; None: Horovod would not understand it. The threshold
# is that of an optimizer's gradients as well, which kolo puts into buckets of their own.
COUNTERPARTS: Dict[str, Dict[str, Callable[[str], Optional[str]]]] = {
    "HOROVOD_FUSION_THRESHOLD": {"KOLO_FUSION_BYTES": _integer, "KOLO_BUCKET_BYTES": _bucket(_LARGEST[int]),
                                 "KOLO_FIRST_BUCKET_BYTES": _bucket(_FIRST_BUCKET)},
    "HOROVOD_CYCLE_TIME": {"KOLO_CYCLE_TIME_MS": _decimal},
    "HOROVOD_CACHE_CAPACITY": {"KOLO_CACHE_CAPACITY": _integer},
    "HOROVOD_AUTOTUNE": {"KOLO_AUTOTUNE": _flag},
    "HOROVOD_AUTOTUNE_LOG": {"KOLO_AUTOTUNE_LOG": _same},
    "HOROVOD_TIMELINE": {"KOLO_TIMELINE": _same},
    "HOROVOD_STALL_CHECK_TIME_SECONDS": {"KOLO_STALL_WARNING_S": _integer},
    "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": {"KOLO_STALL_ABORT_S": _integer},
    "HOROVOD_LOG_LEVEL": {"KOLO_LOG_LEVEL": _level},
}
# What they ask for is always so, or has no meaning with one library and one way to start.
WITHOUT_EFFECT = {
    "HOROVOD_DYNAMIC_PROCESS_SETS", "HOROVOD_CPU_OPERATIONS", "HOROVOD_CONTROLLER", "HOROVOD_TIMELINE_MARK_CYCLES",
    "HOROVOD_STALL_CHECK_DISABLE", "HOROVOD_LOG_HIDE_TIME", "HOROVOD_LOG_TIMESTAMP", "HOROVOD_WITH_PYTORCH",
    "HOROVOD_WITH_MPI", "HOROVOD_WITH_GLOO", "HOROVOD_GPU_OPERATIONS",
}


def take_over(environment: MutableMapping[str, str]) -> Tuple[List[str], List[str]]:
    """Sets the KOLO_* variables that belong to the HOROVOD_* ones, unless they are set. A variable that is empty counts
    as unset. The names of those without a counterpart, and `NAME=value` of those whose value nobody understands."""
    unknown, not_understood = [], []
    for name in sorted(environment):
        if not name.startswith("HOROVOD_") or name in WITHOUT_EFFECT or not environment[name]:
            continue
        if name not in COUNTERPARTS:
            unknown.append(name)
            continue
        value = environment[name]
        if name == "HOROVOD_TIMELINE" and value.upper() == "DYNAMIC":  # start_timeline() is always possible
            continue
        wanted = {own: written(value) for own, written in COUNTERPARTS[name].items() if own not in environment}
        environment.update({own: taken for own, taken in wanted.items() if taken is not None})
        if None in wanted.values():
            not_understood.append(f"{name}={value}")
    if _flag(environment.get("HOROVOD_STALL_CHECK_DISABLE", "")) == "1":
        environment.setdefault("KOLO_STALL_WARNING_S", "0")
        environment.setdefault("KOLO_STALL_ABORT_S", "0")
    return unknown, not_understood


def report(unknown: List[str], not_understood: List[str]) -> None:
    """A line for each kind, once for the job."""
    rank = os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ.get("SLURM_PROCID") or "0"
    if rank != "0":
        return
    if unknown:
        print(f"kolo.horovod: {', '.join(unknown)}: kolo has nothing of the kind; docs/python.md lists what it honours",
              file=sys.stderr)
    if not_understood:
        print(f"kolo.horovod: {', '.join(not_understood)}: Horovod does not accept this value; the default is used",
              file=sys.stderr)
