"""Horovod's compression of tensors on their way."""

from typing import Any, Tuple

import torch


class Compressor:
    """What `compression=` takes: two static functions."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> Tuple[torch.Tensor, Any]:
        """What is sent, and what decompress() needs to know."""
        raise NotImplementedError

    @staticmethod
    def decompress(tensor: torch.Tensor, context: Any) -> torch.Tensor:
        """What was received, as it is wanted."""
        raise NotImplementedError


class NoneCompressor(Compressor):
    """As it is."""

    @staticmethod
    def compress(tensor):
        return tensor, None

    @staticmethod
    def decompress(tensor, context):
        return tensor


class _CastCompressor(Compressor):
    sent_as: torch.dtype

    @classmethod
    def compress(cls, tensor):
        return (tensor.to(cls.sent_as) if tensor.dtype.is_floating_point else tensor), tensor.dtype

    @classmethod
    def decompress(cls, tensor, context):
        return tensor.to(context) if context.is_floating_point else tensor


class FP16Compressor(_CastCompressor):
    """Floating types travel in 16 bits, IEEE binary16."""
    sent_as = torch.float16


class BF16Compressor(_CastCompressor):
    """Floating types travel as the upper half of a float: the range of f32. Not in Horovod."""
    sent_as = torch.bfloat16


class Compression:
    """The values of `compression=`."""
    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor
