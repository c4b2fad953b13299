"""How the gradients of one optimizer travel: through the engine, by name, until the ranks know each other's order;
from then on in buckets where nothing stands against it."""

import contextlib
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch

from kolo import _kolo
from kolo.errors import InvalidArgumentError
from kolo.torch.compression import NoneCompressor
from kolo.torch.drift_check import DriftCheck
from kolo.torch.errors import HorovodInternalError
from kolo.torch.gpu_buckets import buckets_for, can_be_in_buckets
from kolo.torch.gradient_buckets import GradientBuckets, Usage
from kolo.torch.handles import Handle, synchronize
from kolo.torch.objects import allgather_object, broadcast_object
from kolo.torch.process_sets import ProcessSet, global_process_set, native_of
from kolo.torch.reductions import (Average, Sum, allreduce_, allreduce_async_, grouped_allreduce_async_,
                                   sparse_allreduce_async)
from kolo.torch.step_word import StepWord

Parameter = torch.nn.Parameter
# What is under way, and what to do with it when it is over.
Finish = Callable[[], None]


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
        self._label = ""
        self._order_of_groups: Optional[List[str]] = None  # rank 0's
        self._group_of: Dict[Parameter, Tuple[Parameter, ...]] = {}
        self._waiting_in: Dict[Tuple[Parameter, ...], int] = {}  # how many of a group have not started
        self._started: Dict[Parameter, bool] = {}
        self._has_begun = False       # some parameter has
        self._absent: List[str] = []  # of this step: names of gradients that this rank does not have
        self._under_way: List[Finish] = []
        self._usage: Optional[Usage] = None
        self._buckets: Optional[GradientBuckets] = None  # of this step
        self._order: List[str] = []   # of this step
        self._drift = DriftCheck(process_set)
        self._sparse: set = set()     # names of gradients that were sparse once
        self._may_ever_use_buckets = (op in (Average, Sum) and self.predivide_factor == 1.0 and groups is None and
                                 compression is NoneCompressor and process_set is global_process_set)
        self._may_use_buckets = self._may_ever_use_buckets

    def begin(self, named: Sequence[Tuple[str, Parameter]], label: str) -> None:
        """Before the first step. label: of this optimizer, the same on all ranks. With groups: collective."""
        self._names = {parameter: name for name, parameter in named}
        self._label = label
        if self.groups is not None:
            self._form_groups([parameter for _, parameter in named])
        self.reset()

    def like_it(self, copies: Dict[Parameter, Parameter]) -> "GradientExchange":
        """The same for the copies of its parameters. Not collective."""
        groups = self.groups
        if isinstance(groups, list):
            groups = [[copies.get(parameter, parameter) for parameter in group] for group in groups]
        other = GradientExchange(self.compression, self.op, self.predivide_factor, groups, self.sparse_as_dense,
                                 self.process_set)
        other._order_of_groups = self._order_of_groups
        return other

    def add(self, named: Sequence[Tuple[str, Parameter]]) -> None:
        """Parameters that train from this step on, and starts them. On all ranks in the same order, when the others'
        gradients are over. The ranks agree on buckets anew behind the next step."""
        if self._usage is not None:
            self._usage.retire()
        self._usage = None
        self._may_use_buckets = self._may_ever_use_buckets
        for name, parameter in named:
            self._names[parameter] = name
            if self.groups is not None:
                self._group_of[parameter] = (parameter,)
        self.reset()
        for _, parameter in named:
            self.start(parameter)

    def reset(self) -> None:
        """A new step. What is under way of the old one goes on, unheeded."""
        self._has_begun = False
        self._started = dict.fromkeys(self._names, False)
        self._waiting_in = {group: len(group) for group in self._group_of.values()}
        self._under_way = []
        self._order = []
        self._absent = []

    def _form_groups(self, parameters: List[Parameter]) -> None:
        # All ranks take rank 0's order.
        by_name = {self._names[parameter]: parameter for parameter in parameters}
        if self._order_of_groups is None:
            self._name_difference()
            root = self.process_set.ranks[0]
            self._order_of_groups = broadcast_object(list(by_name), root, process_set=self.process_set)
        ordered = [by_name[name] for name in self._order_of_groups]
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

    def _gradient_of(self, parameter: Parameter) -> torch.Tensor:
        """Zeros where this rank has computed none: other ranks may have."""
        if parameter.grad is None:
            self._absent.append(self._names[parameter])
            zeros = torch.zeros_like(parameter.data)
            goes_as_rows = self._names[parameter] in self._sparse and not self.sparse_as_dense
            parameter.grad = zeros.to_sparse(1) if goes_as_rows else zeros
        return parameter.grad

    def _start_alone(self, parameter: Parameter) -> None:
        gradient, name = self._gradient_of(parameter), self._names[parameter]
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
        gradients = [self._gradient_of(parameter) for parameter in group]
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

    def finish(self, is_complete: bool, is_rest: bool = False) -> bool:
        """Waits for all of the step; gradients then hold the result, None for one that no rank has. is_complete: nothing
        trains on this rank but what was started. is_rest: what add() has started. Returns whether some rank says that
        more trains there. Raises FailedPreconditionError, on every rank, where the ranks' weights differ."""
        if not self._has_begun:
            self._choose_buckets()
        under_way, order, absent = self._under_way, self._order, self._absent
        number = None if is_rest else self._drift.number(self._names)
        self.reset()
        word = None
        try:
            if self._buckets is None:
                word = self._exchange_word(is_complete, absent, number)
        except Exception:
            with contextlib.suppress(HorovodInternalError):
                self._wait_for_all(under_way)
            raise
        self._wait_for_all(under_way)
        if self._buckets is not None:
            self._buckets.wait(is_complete, number)
            word = self._buckets.word
            if self._buckets.is_over:
                Usage.some_rank_joins()
            else:
                self._usage.count_step()
        else:
            self._drop_absent(word)
            is_whole = len(order) == len(self._names)
            if self._may_use_buckets and is_whole and word.is_complete() and word.all_take_part():
                self._agree_on_buckets(order)
        if not is_rest:
            self._drift.end_step(number, word)
        return not word.is_complete()

    @staticmethod
    def _wait_for_all(under_way: List[Finish]) -> None:
        """Also behind an error: another step may begin where this one fails."""
        failed = None
        for finish in under_way:
            try:
                finish()
            except HorovodInternalError as error:
                failed = failed or error
        if failed is not None:
            raise failed

    def _exchange_word(self, is_complete: bool, absent: List[str], number: Optional[int]) -> StepWord:
        names = sorted(self._names.values())
        word = StepWord(len(names), torch.float32, float(self.process_set.size()))
        word.write(is_complete, [names.index(name) for name in absent], number)
        try:
            allreduce_(word.memory, op=Sum, name="kolo.torch: step of " + self._label, process_set=self.process_set)
        except HorovodInternalError as error:
            if isinstance(error.__cause__, InvalidArgumentError):  # words of different lengths
                self._name_difference()
            raise
        return word

    def _name_difference(self) -> None:
        """Ends what this rank lacks on the others, which wait for it, and raises. Collective."""
        own = set(self._names.values())
        ranks = allgather_object(own, "kolo.torch: gradients of " + self._label, self.process_set)
        different = sorted(set().union(*ranks) - set.intersection(*ranks))
        if not different:
            return
        have = [rank for rank, names in zip(self.process_set.ranks, ranks) if different[0] in names]
        lack = [rank for rank in self.process_set.ranks if rank not in have]
        text = (f'"{different[0]}" trains on ranks {have}, and not on ranks {lack}; requires_grad and the parameters of an '
                "optimizer must be the same on all ranks")
        for name in set(different) - own:
            _kolo.refuse_call("allreduce", text, "allreduce." + name, native_of(self.process_set))
        raise InvalidArgumentError(text)

    def _drop_absent(self, word: StepWord) -> None:
        absent = word.absent_everywhere()
        if absent:
            names = sorted(self._names.values())
            absent_names = {names[gradient] for gradient in absent}
            for parameter, name in self._names.items():
                if name in absent_names:
                    parameter.grad = None

    def _agree_on_buckets(self, order: List[str]) -> None:
        """Behind a step on the engine: buckets in rank 0's order, unless a rank lacks a parameter."""
        own = (order, self._sparse, can_be_in_buckets(list(self._names)))
        ranks = allgather_object(own, name="kolo.torch: order of gradients")
        sparse = set().union(*(sparse for _, sparse, _ in ranks))
        names = [name for name in ranks[0][0] if name not in sparse]
        if not names or any(set(other) != set(order) or not fits for other, _, fits in ranks):
            self._may_use_buckets = False
            return
        by_name = {name: parameter for parameter, name in self._names.items()}
        buckets = buckets_for([(name, by_name[name]) for name in names], self.op)
        buckets.adopt(parameter for parameter in self._names if parameter.grad is not None)
        self._usage = Usage(buckets)
        self._usage.count_step()

    def combined_loss(self, loss: Any) -> Any:
        """The losses of the ranks, combined as the gradients are; what is no number stays as it is."""
        if not isinstance(loss, (torch.Tensor, float)):
            return loss
        combined = torch.as_tensor(loss).detach().clone().to(torch.float64)
        allreduce_(combined, op=self.op, name="kolo.torch: loss of " + self._label, process_set=self.process_set)
        return combined.item() if isinstance(loss, float) else combined.to(loss.dtype)
