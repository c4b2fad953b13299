"""Batch normalisation over the samples of all ranks."""

import torch
from torch.nn.modules.batchnorm import _BatchNorm

from kolo.torch.handles import refusals_told, synchronize
from kolo.torch.job import size
from kolo.torch.moves import allgather_async
from kolo.torch.process_sets import global_process_set
from kolo.torch.reductions import Sum, allreduce_async_


def _per_channel(values: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    return values.view(1, -1, *[1] * (like.dim() - 2))


def _other_dims(x: torch.Tensor):
    return [0, *range(2, x.dim())]


class _Normalise(torch.autograd.Function):
    """y = weight · (x − mean) / √(variance + eps) + bias, mean and variance over all ranks' samples."""

    @staticmethod
    def forward(ctx, x, weight, bias, eps):
        dims = _other_dims(x)
        own_count = x.numel() // x.shape[1]
        own_mean = x.mean(dims) if own_count else x.new_zeros(x.shape[1])
        own_squares = ((x - _per_channel(own_mean, x)) ** 2).sum(dims)
        own = torch.cat([own_mean.new_tensor([own_count]), own_mean, own_squares])
        all_ranks = synchronize(allgather_async(own[None], "sync_batch_norm.statistics"))
        counts, means, squares = all_ranks[:, :1], *all_ranks[:, 1:].split(x.shape[1], dim=1)
        # Chan, Golub, LeVeque: Updating formulae and a pairwise algorithm for computing sample variances, 1979.
        count = counts.sum()
        mean = (counts * means).sum(0) / count
        variance = (squares.sum(0) + (counts * (means - mean) ** 2).sum(0)) / count
        scale = (variance + eps).rsqrt()
        normal = (x - _per_channel(mean, x)) * _per_channel(scale, x)
        ctx.save_for_backward(normal, weight, scale, count)
        y = normal if weight is None else normal * _per_channel(weight, x) + _per_channel(bias, x)
        ctx.mark_non_differentiable(mean, variance, count)
        return y, mean, variance, count

    @staticmethod
    def backward(ctx, dy, *_):
        normal, weight, scale, count = ctx.saved_tensors
        dims = _other_dims(dy)
        # The gradients of weight and bias are this rank's: DistributedOptimizer combines them.
        dbias, dweight = dy.sum(dims), (dy * normal).sum(dims)
        sums = torch.stack([dbias, dweight])
        sums = synchronize(allreduce_async_(sums, op=Sum, name="sync_batch_norm.gradients")) / count
        dx = (dy - _per_channel(sums[0], dy) - normal * _per_channel(sums[1], dy)) * _per_channel(scale, dy)
        if weight is None:
            return dx, None, None, None
        return dx * _per_channel(weight, dy), dweight, dbias, None


class SyncBatchNorm(_BatchNorm):
    """torch.nn.BatchNorm1d, 2d, 3d, whose mean and variance are those of all ranks' samples while it trains.

    Horovod's takes tensors of GPUs alone.
    """

    def _check_input_dim(self, input):
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def forward(self, input):
        if size() == 1 or (not self.training and self.track_running_stats):
            self._check_input_dim(input)
            return super().forward(input)
        with refusals_told("grouped_allgather", "allgather.sync_batch_norm.statistics", global_process_set):
            self._check_input_dim(input)
        y, mean, variance, count = _Normalise.apply(input, self.weight, self.bias, self.eps)
        if self.training and self.track_running_stats:
            self._track(mean, variance, count)
        return y

    @torch.no_grad()
    def _track(self, mean, variance, count):
        self.num_batches_tracked += 1
        rate = 1 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        self.running_mean += rate * (mean - self.running_mean)
        self.running_var += rate * (variance * count / (count - 1) - self.running_var)
