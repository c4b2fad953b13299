"""HOROVOD_* variables as kolo's."""

import os
import sys
from typing import Callable, Dict, List, MutableMapping, Tuple


def _same(value: str) -> str:
    return value


def _seconds(value: str) -> str:
    return str(int(float(value)))


# Horovod's variable → kolo's, and how the value is written there.
COUNTERPARTS: Dict[str, Tuple[str, Callable[[str], str]]] = {
    "HOROVOD_FUSION_THRESHOLD": ("KOLO_FUSION_BYTES", _same),
    "HOROVOD_CYCLE_TIME": ("KOLO_CYCLE_TIME_MS", _same),
    "HOROVOD_CACHE_CAPACITY": ("KOLO_CACHE_CAPACITY", _same),
    "HOROVOD_AUTOTUNE": ("KOLO_AUTOTUNE", _same),
    "HOROVOD_AUTOTUNE_LOG": ("KOLO_AUTOTUNE_LOG", _same),
    "HOROVOD_TIMELINE": ("KOLO_TIMELINE", _same),
    "HOROVOD_STALL_CHECK_TIME_SECONDS": ("KOLO_STALL_WARNING_S", _seconds),
    "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": ("KOLO_STALL_ABORT_S", _seconds),
    "HOROVOD_LOG_LEVEL": ("KOLO_LOG_LEVEL", str.lower),
}
# What they ask for is always so, or has no meaning with one library and one way to start.
WITHOUT_EFFECT = {
    "HOROVOD_DYNAMIC_PROCESS_SETS", "HOROVOD_CPU_OPERATIONS", "HOROVOD_CONTROLLER", "HOROVOD_TIMELINE_MARK_CYCLES",
    "HOROVOD_STALL_CHECK_DISABLE", "HOROVOD_LOG_HIDE_TIME", "HOROVOD_LOG_TIMESTAMP", "HOROVOD_WITH_PYTORCH",
    "HOROVOD_WITH_MPI", "HOROVOD_WITH_GLOO", "HOROVOD_GPU_OPERATIONS",
}


def take_over(environment: MutableMapping[str, str]) -> List[str]:
    """Sets the KOLO_* variables that belong to the HOROVOD_* ones, unless they are set. Those without a counterpart."""
    unknown = []
    for name in sorted(environment):
        if not name.startswith("HOROVOD_") or name in WITHOUT_EFFECT:
            continue
        if name not in COUNTERPARTS:
            unknown.append(name)
            continue
        counterpart, written = COUNTERPARTS[name]
        value = environment[name]
        if name == "HOROVOD_TIMELINE" and value.upper() == "DYNAMIC":  # start_timeline() is always possible
            continue
        environment.setdefault(counterpart, written(value))
    if environment.get("HOROVOD_STALL_CHECK_DISABLE") == "1":
        environment.setdefault("KOLO_STALL_ABORT_S", "0")
    return unknown


def report(unknown: List[str]) -> None:
    """One line, once for the job."""
    rank = os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ.get("SLURM_PROCID") or "0"
    if unknown and rank == "0":
        print(f"kolo.horovod: {', '.join(unknown)}: kolo has nothing of the kind; docs/python.md lists what it honours",
              file=sys.stderr)
