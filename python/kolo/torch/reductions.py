"""Reductions of tensors, as horovod.torch has them: asynchronous, into new tensors or (with a last _) in place."""

import warnings
from typing import Callable, List, Optional, Sequence

import torch

import kolo
from kolo import _kolo
from kolo.torch.handles import Handle, horovods_errors, synchronize, tell_refusal, tells_refusals
from kolo.torch.memory import check, integer_scaled, memory_of, tensor_of
from kolo.torch.moves import gathered_rows_async
from kolo.torch.process_sets import ProcessSet, global_process_set, native_of
from kolo.torch.staging import through_the_host

Average, Sum, Adasum, Min, Max, Product = "average", "sum", "adasum", "min", "max", "product"


def chosen_op(op: Optional[str], average: Optional[bool]) -> str:
    """Of the parameter that is and the one that was: Horovod's rule."""
    if average is None:
        return Average if op is None else op
    if op is not None:
        raise ValueError("The op parameter supersedes average. Please provide only one of them.")
    warnings.warn("Parameter `average` has been replaced with `op` and will be removed in v1.0", DeprecationWarning,
                  stacklevel=3)
    return Average if average else Sum


class _Plan:
    """What the engine reduces, and what is done to it here: integers are neither averaged nor scaled by the engine."""

    def __init__(self, tensors: Sequence[torch.Tensor], op: str, prescale: float, postscale: float,
                 process_set: ProcessSet):
        is_floating = all(tensor.dtype.is_floating_point for tensor in tensors)
        if op == Adasum and process_set is not global_process_set:
            raise NotImplementedError("Adasum does not support non-global process sets yet.")
        self.here = not is_floating and (op == Average or prescale != 1 or postscale != 1)
        is_average_here = self.here and op == Average
        of_bools = [tensor.dtype is torch.bool for tensor in tensors]
        if is_average_here and any(of_bools) and not all(of_bools):
            raise ValueError("a group of bool and other types has no average; two groups would be right")
        # The average of bools, rounded down as that of integers, is whether all are true.
        self.op = (Min if any(of_bools) else Sum) if is_average_here else op
        self.ranks = process_set.size() if self.op == Sum and is_average_here else 1
        self.scales = (1.0, 1.0) if self.here else (prescale, postscale)
        self.prescale, self.postscale = prescale, postscale

    def before(self, tensor: torch.Tensor) -> torch.Tensor:
        return integer_scaled(tensor, self.prescale) if self.here and self.prescale != 1 else tensor

    def after(self, tensor: torch.Tensor) -> torch.Tensor:
        if not self.here:
            return tensor
        if self.ranks > 1:
            tensor = torch.div(tensor, self.ranks, rounding_mode=None if tensor.is_floating_point() else "trunc")
        return integer_scaled(tensor, self.postscale) if self.postscale != 1 else tensor


@through_the_host("allreduce")
@tells_refusals("allreduce", "allreduce.")
def _start(tensor: torch.Tensor, in_place: bool, name: Optional[str], op: str, prescale: float, postscale: float,
           process_set: ProcessSet) -> Handle:
    # The way of gradients, kept short.
    output = tensor if in_place else check(tensor).detach().clone()
    memory = memory_of(output)
    native = native_of(process_set)
    full_name = "allreduce." + name if name else ""
    if tensor.dtype.is_floating_point and op != Adasum:
        try:
            return Handle(_kolo.allreduce(memory, op, prescale, postscale, full_name, native), lambda _: output)
        except kolo.Error:
            with horovods_errors():
                raise
    plan = _Plan([tensor], op, prescale, postscale, process_set)
    if plan.here and plan.prescale != 1:
        output.copy_(plan.before(output))
    with horovods_errors():
        pending = _kolo.allreduce(memory, plan.op, *plan.scales, full_name, native)
    return Handle(pending, lambda _: output.copy_(plan.after(output)) if plan.here else output)


def allreduce_async(tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
                    process_set=global_process_set) -> Handle:
    """The tensors of all ranks combined by `op` (Average), as a new tensor; × prescale before, × postscale after."""
    return _start(tensor, False, name, chosen_op(op, average), prescale_factor, postscale_factor, process_set)


def allreduce_async_(tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
                     process_set=global_process_set) -> Handle:
    """The same, in the tensor's own memory."""
    return _start(tensor, True, name, chosen_op(op, average), prescale_factor, postscale_factor, process_set)


def allreduce_(tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
               process_set=global_process_set) -> torch.Tensor:
    """The same, waited for."""
    return synchronize(_start(tensor, True, name, chosen_op(op, average), prescale_factor, postscale_factor,
                              process_set))


@through_the_host("grouped_allreduce")
@tells_refusals("grouped_allreduce", "grouped_allreduce.")
def _start_group(tensors: Sequence[torch.Tensor], in_place: bool, name: Optional[str], op: str, prescale: float,
                 postscale: float, process_set: ProcessSet) -> Handle:
    plan = _Plan(tensors, op, prescale, postscale, process_set)
    outputs = list(tensors) if in_place else [check(tensor).detach().clone() for tensor in tensors]
    memory = [memory_of(output) for output in outputs]
    if plan.here:
        for output in outputs:
            output.copy_(plan.before(output))
    with horovods_errors():
        pending = _kolo.grouped_allreduce(memory, plan.op, *plan.scales,
                                          "grouped_allreduce." + name if name else "", native_of(process_set))
    return Handle(pending, lambda _: [output.copy_(plan.after(output)) for output in outputs] if plan.here else outputs)


def grouped_allreduce_async(tensors, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
                            process_set=global_process_set) -> Handle:
    """allreduce of several tensors, begun when all are ready on every rank; all or none. A list."""
    return _start_group(tensors, False, name, chosen_op(op, average), prescale_factor, postscale_factor, process_set)


def grouped_allreduce_async_(tensors, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
                             process_set=global_process_set) -> Handle:
    """The same, in the tensors' own memory."""
    return _start_group(tensors, True, name, chosen_op(op, average), prescale_factor, postscale_factor, process_set)


def grouped_allreduce_(tensors, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
                       process_set=global_process_set) -> List[torch.Tensor]:
    """The same, waited for."""
    return synchronize(grouped_allreduce_async_(tensors, average, name, op, prescale_factor, postscale_factor,
                                                process_set))


def sparse_allreduce_async(tensor, name, op, process_set=global_process_set) -> Callable[[], torch.Tensor]:
    """The sum, or average, of sparse tensors: the rows of all ranks, not yet added up. Call the result to wait."""
    try:
        sent = tensor._indices().t().contiguous(), tensor._values()
    except Exception as error:
        for part in ("indices", "values"):
            tell_refusal("allgather", f"rows.{name}.{part}", error, process_set)
        raise
    indices = gathered_rows_async(sent[0], f"{name}.indices", process_set)
    values = gathered_rows_async(sent[1], f"{name}.values", process_set)

    def wait() -> torch.Tensor:
        gathered = synchronize(values)
        rows = synchronize(indices).t()
        if op == Average:
            gathered = gathered / process_set.size()
        return torch.sparse_coo_tensor(rows, gathered, tensor.size())

    return wait


def _check_scatterable(op: str) -> None:
    if op not in (Average, Sum, Min, Max, Product):
        raise NotImplementedError(f"reducescatter has no op {op}; Average, Sum, Min, Max and Product would be right")


@through_the_host("reducescatter")
@tells_refusals("reduce_scatter", "reducescatter.")
def reducescatter_async(tensor, name=None, op=Average, process_set=global_process_set, prescale_factor=1.0,
                        postscale_factor=1.0) -> Handle:
    """This rank's rows of the tensors combined: of n rows the first n mod R ranks get one more than the others."""
    _check_scatterable(op)
    plan = _Plan([tensor], op, prescale_factor, postscale_factor, process_set)
    memory = memory_of(plan.before(tensor))
    with horovods_errors():
        pending = _kolo.reduce_scatter(memory, plan.op, *plan.scales, "reducescatter." + name if name else "",
                                       native_of(process_set))
    return Handle(pending, lambda rows: plan.after(tensor_of(rows, tensor.dtype)))


@through_the_host("grouped_reducescatter")
@tells_refusals("grouped_reduce_scatter", "grouped_reducescatter.")
def grouped_reducescatter_async(tensors, name=None, op=Average, process_set=global_process_set, prescale_factor=1.0,
                                postscale_factor=1.0) -> Handle:
    """reducescatter of several tensors, all or none. A list."""
    _check_scatterable(op)
    plan = _Plan(tensors, op, prescale_factor, postscale_factor, process_set)
    memory = [memory_of(plan.before(tensor)) for tensor in tensors]
    with horovods_errors():
        pending = _kolo.grouped_reduce_scatter(memory, plan.op, *plan.scales,
                                               "grouped_reducescatter." + name if name else "", native_of(process_set))
    return Handle(pending, lambda results: [plan.after(tensor_of(rows, tensor.dtype))
                                            for rows, tensor in zip(results, tensors)])
