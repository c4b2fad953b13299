"""Buckets of gradients that a GPU computes: each lies on the GPU, where the backward pass writes, and in pinned memory of
the host, where it is reduced."""

import ctypes
import weakref
from typing import List, Optional, Sequence, Tuple

import numpy as np
import torch

from kolo.torch import staging
from kolo.torch.gradient_buckets import GradientBuckets


class _Bucket:
    """A run of gradients of one of the engine's buckets, whose memory is one piece, there and here."""

    def __init__(self, first: int, views: Sequence[torch.Tensor], device: torch.device):
        begin = views[0].data_ptr()
        size = views[-1].data_ptr() + views[-1].numel() * views[-1].element_size() - begin
        self.places = range(first, first + len(views))
        self.host = torch.from_numpy(np.frombuffer((ctypes.c_char * size).from_address(begin), dtype=np.uint8))
        self.device = staging.on_device_like(self.host, device)
        self.views: List[torch.Tensor] = []
        for view in views:
            at = view.data_ptr() - begin
            piece = self.device[at:at + view.numel() * view.element_size()]
            self.views.append(piece.view(view.dtype).view(view.shape))
        self.missing = len(views)  # gradients of this step


def _runs(views: Sequence[torch.Tensor]) -> List[Tuple[int, int]]:
    """Of places whose memory follows one another without a gap: what is in a gap may be somebody else's."""
    ends = [0]
    for place in range(1, len(views)):
        before = views[place - 1]
        if views[place].data_ptr() != before.data_ptr() + before.numel() * before.element_size():
            ends.append(place)
    return list(zip(ends, [*ends[1:], len(views)]))


class GpuGradientBuckets(GradientBuckets):
    """One copy a run to the host, behind the last of its gradients, and one back; the thread "kolo-staging" tells the
    engine of those that have arrived. All parameters are on one GPU."""

    def __init__(self, named: Sequence[Tuple[str, torch.nn.Parameter]], op: str):
        super().__init__(named, op)
        self._device = named[0][1].device
        self._buckets = [_Bucket(begin, self._views[begin:end], self._device) for begin, end in _runs(self._views)]
        for bucket in self._buckets:
            unpin = staging.pin(bucket.host)
            if unpin is not None:
                weakref.finalize(self, unpin)
        self._bucket_of = [bucket for bucket in self._buckets for _ in bucket.places]
        self._views = [view for bucket in self._buckets for view in bucket.views]
        self._addresses = [view.data_ptr() for view in self._views]
        self._error: Optional[BaseException] = None

    def _send(self, place: int) -> None:
        staging.check_not_capturing()
        bucket = self._bucket_of[place]
        bucket.missing -= 1
        if bucket.missing == 0:
            bucket.missing = len(bucket.places)
            arrived = staging.copy_behind(bucket.host, bucket.device, self._device).record_event()
            staging.start_later(lambda: self._tell(bucket, arrived))

    def _tell(self, bucket: _Bucket, arrived) -> None:
        """Of the thread."""
        try:
            arrived.synchronize()
            for place in bucket.places:
                self._native.ready(place)
        except BaseException as error:  # told to the one who waits
            self._error = error

    def _await_sent(self) -> None:
        staging.drain("the end of a step")
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _take_back(self) -> None:
        for bucket in self._buckets:
            stream = staging.copy_behind(bucket.device, bucket.host, self._device)
        torch.cuda.current_stream(self._device).wait_stream(stream)


def buckets_for(named: Sequence[Tuple[str, torch.nn.Parameter]], op: str) -> GradientBuckets:
    return (GpuGradientBuckets if named[0][1].is_cuda else GradientBuckets)(named, op)


def can_be_in_buckets(parameters: Sequence[torch.nn.Parameter]) -> bool:
    """Those of one device."""
    return len({parameter.device if parameter.is_cuda else None for parameter in parameters}) <= 1
