"""PyTorch's tensors as memory that kolo's engine reads and writes in place, and its results as tensors."""

from typing import Tuple

import numpy as np
import torch

from kolo import _kolo

DTYPES = {
    torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16", torch.int32: "i32",
    torch.int64: "i64", torch.int8: "i8", torch.uint8: "u8", torch.bool: "bool",
}
# Types that operations move and never compute with: they travel as bytes, in one more dimension.
_MOVED_AS_BYTES = {torch.int16: 2}


def check(tensor: torch.Tensor) -> torch.Tensor:
    """`tensor`, if it can be sent. Raises ValueError, in Horovod's words."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"a tensor is asked for, this is a {type(tensor).__name__}")
    if not tensor.is_contiguous():
        raise ValueError("Tensor is required to be contiguous.")
    if tensor.device.type != "cpu" and not tensor.is_cuda:
        raise ValueError(f"Tensor is on {tensor.device}; kolo.torch takes tensors in host memory and on NVIDIA's GPUs: use "
                         "tensor.cpu().")
    return tensor


def can_travel(tensor: torch.Tensor) -> bool:
    """Whether operations that move elements take it."""
    return (isinstance(tensor, torch.Tensor) and not tensor.is_sparse and tensor.is_contiguous() and
            (tensor.dtype in DTYPES or tensor.dtype in _MOVED_AS_BYTES))


def check_type(tensor: torch.Tensor) -> torch.Tensor:
    """check(), and that operations that move elements take its type."""
    if not can_travel(check(tensor)):
        raise ValueError(f"Tensor type {tensor.type()} is not supported.")
    return tensor


def memory_of(tensor: torch.Tensor) -> _kolo.Memory:
    """For operations that compute."""
    dtype = DTYPES.get(check(tensor).dtype)
    if dtype is None:
        raise ValueError(f"Tensor type {tensor.type()} is not supported.")
    return _memory_at(tensor, dtype, tuple(tensor.shape))


def _memory_at(tensor: torch.Tensor, dtype: str, shape: Tuple[int, ...]) -> _kolo.Memory:
    if tensor.is_cuda:  # whose address the host cannot read
        raise ValueError(f"Tensor is on {tensor.device}; memory of the host is asked for here: use tensor.cpu().")
    return _kolo.Memory(tensor.data_ptr(), dtype, shape, tensor)


def bytes_of(tensor: torch.Tensor) -> _kolo.Memory:
    """For operations that only move elements."""
    itemsize = _MOVED_AS_BYTES.get(check(tensor).dtype)
    if itemsize is None:
        return memory_of(tensor)
    return _memory_at(tensor, "u8", (*tensor.shape, itemsize))


def tensor_of(memory: _kolo.Memory, dtype: torch.dtype) -> torch.Tensor:
    """A result in the memory in which the engine made it."""
    array = np.asarray(memory)
    if dtype is torch.bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    if dtype in _MOVED_AS_BYTES:
        return torch.from_numpy(array.reshape(-1).view(np.int16).reshape(array.shape[:-1]))
    return torch.from_numpy(array)


def integer_scaled(tensor: torch.Tensor, factor: float) -> torch.Tensor:
    """tensor × factor, rounded towards zero: what Horovod does with integers, which the engine does not scale."""
    return (tensor.to(torch.float64) * factor).to(tensor.dtype)


def is_scaled_here(tensor: torch.Tensor, factors: Tuple[float, ...]) -> bool:
    return not tensor.dtype.is_floating_point and any(factor != 1 for factor in factors)
