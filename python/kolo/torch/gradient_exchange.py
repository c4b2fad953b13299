"""How the gradients of one optimizer travel: through the engine, by name, until the ranks know each other's order;
from then on in buckets where nothing stands against it."""

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch

from kolo import _kolo
from kolo.torch.compression import NoneCompressor
from kolo.torch.gradient_buckets import GradientBuckets, Usage
from kolo.torch.handles import Handle, synchronize
from kolo.torch.objects import allgather_object, broadcast_object
from kolo.torch.process_sets import ProcessSet, global_process_set
from kolo.torch.reductions import (Average, Sum, allreduce_, allreduce_async_, grouped_allreduce_async_,
                                   sparse_allreduce_async)

Parameter = torch.nn.Parameter
# What is under way, and what to do with it when it is over.
Finish = Callable[[], None]


def _gradient_of(parameter: Parameter) -> torch.Tensor:
    """Zeros where this rank has computed none: other ranks may have."""
    if parameter.grad is None:
        parameter.grad = torch.zeros_like(parameter.data)
    return parameter.grad


class GradientExchange:
    """A step is start() of every parameter, in any order, and finish()."""

    def __init__(self, compression: Any, op: str, predivide_factor: float, groups: Any, sparse_as_dense: bool,
                 process_set: ProcessSet):
        self.compression = compression
        self.op = op
        self.predivide_factor = predivide_factor if op == Average else 1.0
        self.groups = groups
        self.sparse_as_dense = sparse_as_dense
        self.process_set = process_set
        self._names: Dict[Parameter, str] = {}
        self._group_of: Dict[Parameter, Tuple[Parameter, ...]] = {}
        self._waiting_in: Dict[Tuple[Parameter, ...], int] = {}  # how many of a group have not started
        self._started: Dict[Parameter, bool] = {}
        self._has_begun = False       # some parameter has
        self._under_way: List[Finish] = []
        self._usage: Optional[Usage] = None
        self._buckets: Optional[GradientBuckets] = None  # of this step
        self._order: List[str] = []   # of this step
        self._sparse: set = set()     # names of gradients that were sparse once
        self._may_use_buckets = (op in (Average, Sum) and self.predivide_factor == 1.0 and groups is None and
                                 compression is NoneCompressor and process_set is global_process_set)

    def begin(self, named: Sequence[Tuple[str, Parameter]]) -> None:
        """Before the first step. With groups: collective."""
        self._names = {parameter: name for name, parameter in named}
        if self.groups is not None and named:
            self._form_groups([parameter for _, parameter in named])
        self.reset()

    def reset(self) -> None:
        """A new step. What is under way of the old one goes on, unheeded."""
        self._has_begun = False
        self._started = dict.fromkeys(self._names, False)
        self._waiting_in = {group: len(group) for group in self._group_of.values()}
        self._under_way = []
        self._order = []

    def _form_groups(self, parameters: List[Parameter]) -> None:
        # All ranks take rank 0's order.
        by_name = {self._names[parameter]: parameter for parameter in parameters}
        ordered = [by_name[name] for name in broadcast_object(list(by_name), 0, process_set=self.process_set)]
        if isinstance(self.groups, list):
            groups = [tuple(p for p in group if p in self._names) for group in self.groups]
            listed = {parameter for group in groups for parameter in group}
            groups += [(parameter,) for parameter in ordered if parameter not in listed]
        else:
            each, more = divmod(len(ordered), self.groups)
            ends = [0]
            for i in range(self.groups):
                ends.append(ends[-1] + each + (i < more))
            groups = [tuple(ordered[begin:end]) for begin, end in zip(ends, ends[1:])]
        self._group_of = {parameter: group for group in groups for parameter in group}

    def start(self, parameter: Parameter) -> None:
        """The gradient is complete. Does nothing for one that has started in this step."""
        if self._started[parameter]:
            return
        if not self._has_begun:
            self._choose_buckets()
        self._started[parameter] = True
        if self._buckets is not None and parameter in self._buckets:
            self._buckets.ready(parameter)
        elif self._group_of:
            group = self._group_of[parameter]
            self._waiting_in[group] -= 1
            if self._waiting_in[group] == 0:
                self._start_group(group)
        else:
            self._order.append(self._names[parameter])
            self._start_alone(parameter)

    def _choose_buckets(self) -> None:
        """Once in a step: steps of other optimizers may come in between."""
        self._has_begun = True
        self._buckets = self._usage.buckets() if self._usage is not None else None
        if self._buckets is None:
            self._usage = None

    def _start_alone(self, parameter: Parameter) -> None:
        gradient, name = _gradient_of(parameter), self._names[parameter]
        if gradient.is_sparse:
            self._sparse.add(name)
            if not self.sparse_as_dense:
                wait = sparse_allreduce_async(gradient, name, self.op, self.process_set)
                self._under_way.append(lambda: self._take_sparse(gradient, wait()))
                return
        dense = gradient.to_dense() if gradient.is_sparse else gradient.contiguous()
        sent, context = self.compression.compress(dense)
        handle = allreduce_async_(sent, name=name, op=self.op, prescale_factor=1 / self.predivide_factor,
                                  postscale_factor=self.predivide_factor, process_set=self.process_set)
        self._under_way.append(lambda: self._take(gradient, synchronize(handle), context))

    def _start_group(self, group: Tuple[Parameter, ...]) -> None:
        gradients = [_gradient_of(parameter) for parameter in group]
        pairs = [self.compression.compress(gradient.contiguous()) for gradient in gradients]
        handle = grouped_allreduce_async_([sent for sent, _ in pairs], name=self._names[group[0]], op=self.op,
                                          prescale_factor=1 / self.predivide_factor,
                                          postscale_factor=self.predivide_factor, process_set=self.process_set)
        self._under_way.append(lambda: self._take_group(gradients, handle, [context for _, context in pairs]))

    def _take_group(self, gradients: Sequence[torch.Tensor], handle: Handle, contexts: Sequence[Any]) -> None:
        for gradient, output, context in zip(gradients, synchronize(handle), contexts):
            self._take(gradient, output, context)

    def _take(self, gradient: torch.Tensor, output: torch.Tensor, context: Any) -> None:
        output = self.compression.decompress(output, context)
        if gradient.is_sparse:
            self._take_sparse(gradient, output.to_sparse())
        elif output.data_ptr() != gradient.data_ptr():
            gradient.copy_(output)

    @staticmethod
    def _take_sparse(gradient: torch.Tensor, output: torch.Tensor) -> None:
        gradient.zero_().add_(output)

    def finish(self) -> None:
        """Waits for all of the step; gradients then hold the result."""
        under_way = self._under_way
        # Another step may begin even where this one fails.
        order = self._order
        self.reset()
        for finish in under_way:
            finish()
        if self._buckets is not None:
            self._buckets.wait()
            if self._buckets.is_over:
                Usage.some_rank_joins()
            else:
                self._usage.count_step()
        elif self._may_use_buckets:
            self._agree_on_buckets(order)

    def _agree_on_buckets(self, order: List[str]) -> None:
        """Behind a step on the engine: buckets in rank 0's order, unless a rank has joined or lacks a parameter."""
        if allreduce_(torch.ones(1), op=Sum, name="kolo.torch: ranks in this step").item() != _kolo.size():
            return
        orders_and_sparse = allgather_object((order, self._sparse), name="kolo.torch: order of gradients")
        sparse = set().union(*(sparse for _, sparse in orders_and_sparse))
        names = [name for name in orders_and_sparse[0][0] if name not in sparse]
        if not names or any(set(other) != set(order) for other, _ in orders_and_sparse):
            self._may_use_buckets = False
            return
        by_name = {name: parameter for parameter, name in self._names.items()}
        buckets = GradientBuckets([(name, by_name[name]) for name in names], self.op)
        buckets.adopt(self._names)
        self._usage = Usage(buckets)
        self._usage.count_step()
