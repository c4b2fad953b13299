"""kolo's checkpoints as dictionaries of NumPy arrays."""

import os
from typing import Dict, Mapping, Optional, Tuple

import numpy as np

from kolo import _kolo
from kolo.arrays import memory_of
from kolo.errors import InvalidArgumentError, NotFoundError

_ENDINGS = (".safetensors", ".index.json")

Memories = Dict[str, _kolo.Memory]
Strings = Dict[str, np.ndarray]  # of bytes objects


def _prefix_of(path: str) -> str:
    for ending in _ENDINGS:
        if path.endswith(ending):
            return path[: -len(ending)]
    return path


def read(path: str, names: Optional[Mapping[str, str]]) -> Tuple[Memories, Strings]:
    """The numbers of a checkpoint, and its strings."""
    path = os.fspath(path)
    if os.path.isdir(path):
        newest = _kolo.newest_checkpoint(path)
        if newest is None:
            raise NotFoundError(f"load_checkpoint: there is no checkpoint in {path}")
        path = newest
    prefix = _prefix_of(path)
    strings = {}
    if os.path.exists(prefix + ".index.json"):
        tensors, texts = _kolo.read_checkpoint(prefix)
        for name, (shape, elements) in texts.items():
            strings[name] = np.array(elements, dtype=object).reshape(shape)
    else:
        tensors = _kolo.read_safetensors(path if path.endswith(_ENDINGS[0]) else path + _ENDINGS[0])
    return (_kolo.to_weight_names(tensors, dict(names)) if names else tensors), strings


def write(path: str, tensors: Memories, strings: Strings, global_step: Optional[int],
          names: Optional[Mapping[str, str]]) -> None:
    """The way back."""
    if names:
        tensors = _kolo.from_weight_names(tensors, dict(names))
    texts = {name: (array.shape, [text.encode() if isinstance(text, str) else text for text in array.flat])
             for name, array in strings.items()}
    _kolo.write_checkpoint(_prefix_of(os.fspath(path)), tensors, texts, global_step)


def _is_text(array: np.ndarray) -> bool:
    return array.dtype.kind in "SU" or (array.dtype.kind == "O" and
                                        all(isinstance(element, (bytes, str)) for element in array.flat))


def load_checkpoint(path: str, names: Optional[Mapping[str, str]] = None) -> Dict[str, np.ndarray]:
    """Name → array. bf16, which NumPy does not have, comes as uint16; strings as an array of bytes objects.

    path: a folder (its newest intact checkpoint), a checkpoint (`…/model.ckpt-7`) or one of its files, or a safetensors
    file of somebody else. names: by variable of kolo, the name that its array is to have: {"fc1/w": "fc1.weight.T"}
    for the transpose of a matrix, "" for none; those that are not in it keep theirs. Sums are checked. Raises
    NotFoundError, DataLossError for a damaged file, InvalidArgumentError for names that do not fit.
    """
    tensors, strings = read(path, names)
    if both := sorted(tensors.keys() & strings.keys()):
        raise InvalidArgumentError(f"{path}: \"{both[0]}\" is the name of texts, and an array is to have it")
    return {**{name: np.asarray(memory) for name, memory in tensors.items()}, **strings}


def save_checkpoint(path: str, arrays: Mapping[str, np.ndarray], global_step: Optional[int] = None,
                    names: Optional[Mapping[str, str]] = None) -> None:
    """Writes `path`.safetensors and `path`.index.json, whole or not at all; they are on the disk when it returns.

    path: `…/model.ckpt-7` is what kolo's sessions, kolo-train and load_checkpoint(folder) look for. names: as
    load_checkpoint, the way back: the variable "fc1/w" is the transpose of arrays["fc1.weight"]; arrays that no
    variable takes keep their names, and so do texts, which are saved as UTF-8 and come back as bytes. One rank calls
    it. Raises NotFoundError for an array that names asks for.
    """
    tensors, strings = {}, {}
    for name, array in arrays.items():
        array = np.asarray(array, order="C")  # not ascontiguousarray, which makes a vector of a scalar
        if _is_text(array):
            strings[name] = array
        else:
            try:
                tensors[name] = memory_of(array)
            except TypeError as error:
                raise TypeError(f"save_checkpoint: {name}: {error}") from None
    write(path, tensors, strings, global_step, names)
