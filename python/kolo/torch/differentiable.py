"""The blocking operations that make new tensors. Gradients go through them, by Horovod's rules."""

import torch

from kolo.torch.compression import Compression
from kolo.torch.handles import refusals_told, synchronize
from kolo.torch.job import rank
from kolo.torch.memory import check
from kolo.torch.moves import allgather_async, alltoall_async, broadcast_async, grouped_allgather_async
from kolo.torch.process_sets import global_process_set
from kolo.torch.reductions import (Average, Sum, allreduce_async, chosen_op, grouped_allreduce_async,
                                   grouped_reducescatter_async, reducescatter_async)
from kolo.torch.staging import name_of


def _all_compressed(operation, prefix, compression, tensors, name, process_set):
    """What is sent of each, and what decompress() needs to know."""
    with refusals_told(operation, f"{prefix}.{name}" if name else "", process_set):
        return zip(*[compression.compress(check(tensor)) for tensor in tensors])


def _compressed(operation, prefix, compression, tensor, name, process_set):
    sent, contexts = _all_compressed(operation, prefix, compression, [tensor], name, process_set)
    return sent[0], contexts[0]


class _Allreduce(torch.autograd.Function):
    """The gradient is reduced like the tensor."""

    @staticmethod
    def forward(ctx, tensor, name, *how):
        ctx.how = how
        return synchronize(allreduce_async(tensor, None, name, *how))

    @staticmethod
    def backward(ctx, gradient):
        return (synchronize(allreduce_async(gradient.contiguous(), None, None, *ctx.how)), *[None] * 5)


def allreduce(tensor, average=None, name=None, compression=Compression.none, op=None, prescale_factor=1.0,
              postscale_factor=1.0, process_set=global_process_set):
    """The tensors of all ranks combined by `op` (Average), as a new tensor; × prescale before, × postscale after."""
    name = name_of("allreduce", tensor, name, process_set)
    sent, context = _compressed("allreduce", "allreduce", compression, tensor, name, process_set)
    how = (chosen_op(op, average), prescale_factor, postscale_factor, process_set)
    received = _Allreduce.apply(sent, name, *how) if sent.requires_grad else \
        synchronize(allreduce_async(sent, None, name, *how))
    return compression.decompress(received, context)


class _GroupedAllreduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, name, how, *tensors):
        ctx.how = how
        return tuple(synchronize(grouped_allreduce_async(tensors, None, name, *how)))

    @staticmethod
    def backward(ctx, *gradients):
        gradients = [gradient.contiguous() for gradient in gradients]
        return (None, None, *synchronize(grouped_allreduce_async(gradients, None, None, *ctx.how)))


def grouped_allreduce(tensors, average=None, name=None, compression=Compression.none, op=None, prescale_factor=1.0,
                      postscale_factor=1.0, process_set=global_process_set):
    """allreduce of several tensors, begun when all are ready on every rank; all or none. A list."""
    name = name_of("grouped_allreduce", tensors, name, process_set)
    sent, contexts = _all_compressed("grouped_allreduce", "grouped_allreduce", compression, tensors, name, process_set)
    how = (chosen_op(op, average), prescale_factor, postscale_factor, process_set)
    received = _GroupedAllreduce.apply(name, how, *sent)
    return [compression.decompress(tensor, context) for tensor, context in zip(received, contexts)]


def _own_rows(gradient, rows, process_set):
    """Of the gradient of gathered rows those of this rank."""
    all_rows = synchronize(allgather_async(torch.tensor([rows], device="cpu"), None, process_set))
    return gradient.narrow(0, int(all_rows[:process_set.rank()].sum()), rows)


class _Allgather(torch.autograd.Function):
    """The gradient of the own rows, averaged over the ranks."""

    @staticmethod
    def forward(ctx, tensor, name, process_set):
        gathered = synchronize(allgather_async(tensor, name, process_set))
        ctx.rows, ctx.process_set = tensor.shape[0], process_set
        return gathered

    @staticmethod
    def backward(ctx, gradient):
        averaged = synchronize(allreduce_async(gradient.contiguous(), op=Average, process_set=ctx.process_set))
        return _own_rows(averaged, ctx.rows, ctx.process_set), None, None


def allgather(tensor, name=None, process_set=global_process_set):
    """The rows of all ranks, in rank order; each rank may give another number of them."""
    return _Allgather.apply(tensor, name, process_set)


class _GroupedAllgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, name, process_set, *tensors):
        gathered = tuple(synchronize(grouped_allgather_async(tensors, name, process_set)))
        ctx.rows, ctx.process_set = [tensor.shape[0] for tensor in tensors], process_set
        return gathered

    @staticmethod
    def backward(ctx, *gradients):
        gradients = [gradient.contiguous() for gradient in gradients]
        averaged = synchronize(grouped_allreduce_async(gradients, op=Average, process_set=ctx.process_set))
        return (None, None, *[_own_rows(gradient, rows, ctx.process_set)
                              for gradient, rows in zip(averaged, ctx.rows)])


def grouped_allgather(tensors, name=None, process_set=global_process_set):
    """allgather of several tensors, all or none. A list."""
    return list(_GroupedAllgather.apply(name, process_set, *tensors))


class _Broadcast(torch.autograd.Function):
    """The average of the gradients, at the root."""

    @staticmethod
    def forward(ctx, tensor, root_rank, name, process_set):
        ctx.root_rank, ctx.process_set = root_rank, process_set
        return synchronize(broadcast_async(tensor, root_rank, name, process_set))

    @staticmethod
    def backward(ctx, gradient):
        averaged = synchronize(allreduce_async(gradient.contiguous(), op=Average, process_set=ctx.process_set))
        return averaged if rank() == ctx.root_rank else averaged.zero_(), None, None, None


def broadcast(tensor, root_rank, name=None, process_set=global_process_set):
    """The root's tensor on every rank, as a new tensor. root_rank: among all ranks."""
    return _Broadcast.apply(tensor, root_rank, name, process_set)


class _Alltoall(torch.autograd.Function):
    """The gradient of a row goes back to the rank that sent it."""

    @staticmethod
    def forward(ctx, tensor, splits, name, process_set):
        rows, received = synchronize(alltoall_async(tensor, splits, name, process_set))
        ctx.received, ctx.process_set = received, process_set
        ctx.mark_non_differentiable(received)
        return rows if splits is None else (rows, received)

    @staticmethod
    def backward(ctx, gradient, *_):
        rows, _ = synchronize(alltoall_async(gradient.contiguous(), ctx.received, None, ctx.process_set))
        return rows, None, None, None


def alltoall(tensor, splits=None, name=None, process_set=global_process_set):
    """splits[j] rows go to rank j. (the rows sent here, how many from each rank); without splits the rows alone."""
    return _Alltoall.apply(tensor, splits, name, process_set)


def _scattered_gradient(gradient, op, scale, process_set):
    factor = scale * (process_set.size() if op == Sum else 1)
    return (gradient if factor == 1 else gradient * factor).contiguous()


class _Reducescatter(torch.autograd.Function):
    """The gradients of all ranks' rows, × the number of ranks for sums."""

    @staticmethod
    def forward(ctx, tensor, name, op, process_set, prescale, postscale):
        ctx.how = (op, prescale * postscale, process_set)
        return synchronize(reducescatter_async(tensor, name, op, process_set, prescale, postscale))

    @staticmethod
    def backward(ctx, gradient):
        sent = _scattered_gradient(gradient, *ctx.how)
        return (synchronize(allgather_async(sent, None, ctx.how[2])), *[None] * 5)


def reducescatter(tensor, name=None, compression=Compression.none, op=Average, process_set=global_process_set,
                  prescale_factor=1.0, postscale_factor=1.0):
    """This rank's rows of the tensors combined: of n rows the first n mod R ranks get one more than the others."""
    name = name_of("reducescatter", tensor, name, process_set)
    sent, context = _compressed("reduce_scatter", "reducescatter", compression, tensor, name, process_set)
    received = _Reducescatter.apply(sent, name, op, process_set, prescale_factor, postscale_factor)
    return compression.decompress(received, context)


class _GroupedReducescatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, name, op, process_set, prescale, postscale, *tensors):
        ctx.how = (op, prescale * postscale, process_set)
        return tuple(synchronize(grouped_reducescatter_async(tensors, name, op, process_set, prescale, postscale)))

    @staticmethod
    def backward(ctx, *gradients):
        sent = [_scattered_gradient(gradient, *ctx.how) for gradient in gradients]
        return (*[None] * 5, *synchronize(grouped_allgather_async(sent, None, ctx.how[2])))


def grouped_reducescatter(tensors, name=None, compression=Compression.none, op=Average,
                          process_set=global_process_set, prescale_factor=1.0, postscale_factor=1.0):
    """reducescatter of several tensors, all or none. A list."""
    name = name_of("grouped_reducescatter", tensors, name, process_set)
    sent, contexts = _all_compressed("grouped_reduce_scatter", "grouped_reducescatter", compression, tensors, name,
                                     process_set)
    received = _GroupedReducescatter.apply(name, op, process_set, prescale_factor, postscale_factor, *sent)
    return [compression.decompress(tensor, context) for tensor, context in zip(received, contexts)]
