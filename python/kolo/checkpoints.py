"""kolo's checkpoints as dictionaries of NumPy arrays."""

import os
from typing import Dict, Optional

import numpy as np

from kolo import _kolo
from kolo.arrays import memory_of
from kolo.errors import NotFoundError

_ENDINGS = (".safetensors", ".index.json")


def _prefix_of(path: str) -> str:
    for ending in _ENDINGS:
        if path.endswith(ending):
            return path[: -len(ending)]
    return path


def load_checkpoint(path: str) -> Dict[str, np.ndarray]:
    """Name → array. bf16, which NumPy does not have, comes as uint16.

    path: a folder (its newest intact checkpoint), a checkpoint (`…/model.ckpt-7`) or one of its files, or a safetensors
    file of somebody else. Sums are checked. Raises NotFoundError, DataLossError for a damaged file.
    """
    path = os.fspath(path)
    if os.path.isdir(path):
        newest = _kolo.newest_checkpoint(path)
        if newest is None:
            raise NotFoundError(f"load_checkpoint: there is no checkpoint in {path}")
        path = newest
    prefix = _prefix_of(path)
    if os.path.exists(prefix + ".index.json"):
        tensors, _ = _kolo.read_checkpoint(prefix)
    else:
        tensors = _kolo.read_safetensors(path if path.endswith(_ENDINGS[0]) else path + _ENDINGS[0])
    return {name: np.asarray(memory) for name, memory in tensors.items()}


def save_checkpoint(path: str, arrays: Dict[str, np.ndarray], global_step: Optional[int] = None) -> None:
    """Writes `path`.safetensors and `path`.index.json, whole or not at all; they are on the disk when it returns.

    path: `…/model.ckpt-7` is what kolo's sessions, kolo-train and load_checkpoint(folder) look for. One rank calls it.
    """
    memory = {name: memory_of(np.ascontiguousarray(array), f"save_checkpoint: {name}") for name, array in arrays.items()}
    _kolo.write_checkpoint(_prefix_of(os.fspath(path)), memory, global_step)
