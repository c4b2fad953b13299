"""NumPy arrays as memory that kolo's engine reads and writes in place."""

import contextlib
from typing import Any, Callable, Optional, Tuple

import numpy as np

from kolo import _kolo
from kolo.errors import Error, InvalidArgumentError
from kolo.process_sets import ProcessSet

# NumPy's kind and size → kolo's spelling.
DTYPES = {
    np.dtype(np.float32): "f32", np.dtype(np.float64): "f64", np.dtype(np.float16): "f16",
    np.dtype(np.int32): "i32", np.dtype(np.int64): "i64", np.dtype(np.int8): "i8", np.dtype(np.uint8): "u8",
    np.dtype(np.bool_): "bool",
}


def checked(array: np.ndarray) -> np.ndarray:
    """`array`, if the engine can work in its memory."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"a NumPy array is asked for, this is a {type(array).__name__}")
    if not array.flags.c_contiguous:
        raise InvalidArgumentError(f"the array of shape {array.shape} is not contiguous; "
                                   "numpy.ascontiguousarray makes a copy that is")
    return array


def writable(array: np.ndarray) -> np.ndarray:
    """`array`, if an operation may write its result there. Raises InvalidArgumentError for a file that is mapped for
    reading, for bytes, and where the flag says so."""
    if not checked(array).flags.writeable:
        raise InvalidArgumentError("the array is read-only; numpy.array makes a copy that is not")
    return array


def prepared(operation: str, name: Optional[str], process_set: ProcessSet, prepare: Callable[[], Any]) -> Any:
    """What prepare() makes of the arguments of a call. Where it raises, the ranks that would wait for this one are
    told, and the text begins with the call's name."""
    try:
        return prepare()
    except Exception as error:
        with contextlib.suppress(Error):  # kolo is not initialised, this rank has joined: nobody waits
            _kolo.refuse_call(operation, str(error), name or "", process_set)
        if isinstance(error, (TypeError, ValueError)):
            raise type(error)(f"{name or operation}: {error}") from None
        raise


def memory_of(array: np.ndarray) -> _kolo.Memory:
    """The elements of a contiguous array, for operations that compute."""
    dtype = DTYPES.get(checked(array).dtype)
    if dtype is None:
        known = ", ".join(sorted(str(known) for known in DTYPES))
        raise TypeError(f"{array.dtype} has no reductions; these types have: {known}")
    return _kolo.Memory(array.ctypes.data, dtype, array.shape, array)


def bytes_of(array: np.ndarray) -> Tuple[_kolo.Memory, bool]:
    """The same for operations that only move elements: a type that the engine does not know travels as bytes, in one
    more dimension, which the second value says."""
    if checked(array).dtype in DTYPES:
        return memory_of(array), False
    if array.dtype.hasobject:
        raise TypeError(f"{array.dtype} has no fixed bytes; broadcast_object and allgather_object take objects")
    return _kolo.Memory(array.ctypes.data, "u8", (*array.shape, array.dtype.itemsize), array), True


def array_of(memory: _kolo.Memory, dtype: np.dtype, is_bytes: bool = False) -> np.ndarray:
    """A result in the memory in which the engine made it."""
    array = np.asarray(memory)
    if is_bytes:
        return array.reshape(-1).view(dtype).reshape(memory.shape[:-1])
    return array
