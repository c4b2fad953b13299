"""DistributedOptimizer: between a backward pass and step() the gradients are combined over the ranks."""

import contextlib
import warnings
from typing import Any, Dict, Optional

import torch

from kolo.torch.adasum_optimizer import AdasumOptimizer
from kolo.torch.compression import Compression
from kolo.torch.gradient_exchange import GradientExchange
from kolo.torch.job import size
from kolo.torch.process_sets import global_process_set
from kolo.torch.reductions import Adasum, Average
from kolo.torch.wrapped_optimizer import Named, Parameter, WrappedOptimizer, wrapped


def checked_names(optimizer: torch.optim.Optimizer, named_parameters) -> Named:
    """(name, parameter) of every parameter. Raises ValueError for a name that comes twice or is missing."""
    if named_parameters is None:
        named = [(f"allreduce.noname.{g}.{i}", parameter) for g, group in enumerate(optimizer.param_groups)
                 for i, parameter in enumerate(group["params"])]
    else:
        named = list(named_parameters)
    if any(not isinstance(pair, tuple) for pair in named):
        raise ValueError("named_parameters should be a sequence of tuples (name, parameter), usually produced by "
                         "model.named_parameters().")
    names = [name for name, _ in named]
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise ValueError("Parameter names in named_parameters must be unique. Found duplicates: " + ", ".join(twice))
    known = {id(parameter) for _, parameter in named}
    unnamed = [tuple(parameter.shape) for group in optimizer.param_groups for parameter in group["params"]
               if id(parameter) not in known]
    if unnamed:
        raise ValueError("named_parameters was specified, but one or more model parameters were not named. Shapes of "
                         f"these: {unnamed}")
    return named


class _DistributedOptimizer(WrappedOptimizer):
    __slots__ = ("process_set", "_exchange", "_synchronized", "_should_synchronize", "_is_alone")

    def _distribute(self, named: Named, passes: int, exchange: GradientExchange) -> None:
        self.process_set = exchange.process_set
        self._exchange = exchange
        self._synchronized = False
        self._should_synchronize = True
        self._is_alone = size() == 1 or not exchange.process_set.included()
        self._watch(named, passes, self._is_alone)
        if not self._is_alone:
            exchange.begin([(self._parameter_names[parameter], parameter) for parameter in self._trained],
                           min(self._parameter_names.values(), default=""))

    def _wrap_again(self, inner: torch.optim.Optimizer, copies: Dict[Parameter, Parameter]) -> torch.optim.Optimizer:
        distributed = wrapped(inner, _DistributedOptimizer)
        named = [(name, copies[parameter]) for parameter, name in self._parameter_names.items() if parameter in copies]
        distributed._distribute(named, self.backward_passes_per_step, self._exchange.like_it(copies))
        return distributed

    def _computed(self, parameter: Parameter) -> None:
        self._exchange.start(parameter)

    def load_state_dict(self, *arguments, **options):
        self._exchange.reset()
        self._synchronized = False
        self._should_synchronize = True
        return super().load_state_dict(*arguments, **options)

    def synchronize(self) -> None:
        """Waits until all gradients are combined; those that no backward pass computed take part as they stand. One that
        no rank has is None afterwards. Collective. Raises InvalidArgumentError, on every rank, for a parameter that
        begins to train and is not on all ranks."""
        if not self._is_alone:
            self._take_gradients_back()
            for parameter in self._trained:
                self._exchange.start(parameter)
            later = self._later()
            if self._exchange.finish(is_complete=not later):
                self._exchange.add(self._take_in(later, self.process_set))
                self._exchange.finish(is_complete=True, is_rest=True)
            if self._unhooked:
                self._hook()
            self._begin_step()
        self._synchronized = True

    @contextlib.contextmanager
    def skip_synchronize(self):
        """step() inside it does not call synchronize(), which the program has done:

            optimizer.synchronize()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1)
            with optimizer.skip_synchronize():
                optimizer.step()
        """
        self._should_synchronize = False
        try:
            yield
        finally:
            self._should_synchronize = True

    def _step(self, closure=None):
        if closure is not None:
            return self._step_with(closure)
        if self._should_synchronize:
            if self._synchronized:
                warnings.warn("optimizer.step() called without optimizer.skip_synchronize() context after "
                              "optimizer.synchronize(). This can cause training slowdown. You may want to consider "
                              "using optimizer.skip_synchronize() context if you use optimizer.synchronize() in your "
                              "code.")
            self.synchronize()
        self._synchronized = False
        return self._inner.step()

    def _step_with(self, closure):
        """Combines the gradients each time that the wrapped optimizer calls the closure: LBFGS does so several times in a
        step. A closure that clips calls synchronize() itself, before it clips."""
        if not self._should_synchronize:
            raise ValueError("step(closure) inside skip_synchronize(): what the closure computes would stay each rank's "
                             "own; step(closure) without skip_synchronize() would be right")

        def combined():
            self._synchronized = False
            with torch.enable_grad():
                loss = closure()
            if not self._synchronized:
                self.synchronize()
            return loss if self._is_alone or self._only_returns_the_loss() else self._exchange.combined_loss(loss)

        loss = self._inner.step(combined)
        self._synchronized = False
        return loss

    def _only_returns_the_loss(self) -> bool:
        """Others may decide by it, which all ranks must do alike."""
        inner = type(self._inner)
        return inner.__module__.startswith("torch.optim.") and not issubclass(inner, torch.optim.LBFGS)


def _check_groups(groups) -> None:
    if not isinstance(groups, list):
        if groups <= 0:
            raise ValueError("groups should be a non-negative integer or a list of list of torch.Tensor.")
        return
    seen = set()
    for group in groups:
        for parameter in group:
            if not isinstance(parameter, torch.Tensor):
                raise ValueError("groups must consist of torch.Tensor.")
            if id(parameter) in seen:
                raise ValueError("A parameter can only appear once in groups.")
            seen.add(id(parameter))


def DistributedOptimizer(optimizer: torch.optim.Optimizer, named_parameters=None, compression=Compression.none,
                         backward_passes_per_step: int = 1, op: str = Average, gradient_predivide_factor: float = 1.0,
                         num_groups: int = 0, groups: Optional[Any] = None, sparse_as_dense: bool = False,
                         process_set=global_process_set) -> torch.optim.Optimizer:
    """`optimizer`, whose step() first combines the gradients of all ranks; they leave while the backward pass goes on.

    named_parameters: (name, parameter) pairs, as model.named_parameters(); the same names on all ranks.
    compression: of hvd.Compression. backward_passes_per_step: gradients are added up over so many passes first.
    op: Average, Sum or Adasum. gradient_predivide_factor: an average divides by it before the sum and by the rest after.
    groups: a number of groups, or lists of parameters, whose gradients leave together. sparse_as_dense: sparse gradients
    are summed as dense ones. process_set: the ranks whose gradients are combined; others apply their own.
    Raises ValueError for parameters without a name, a name that comes twice, and values that do not fit.

    step(closure) returns the closure's loss, of this rank; of LBFGS, and of optimizers that are not PyTorch's, the loss
    combined as the gradients are. What trains later, a group that is added or a layer that was frozen, takes part from
    its first step on; it must begin in the same step on all ranks.
    """
    if gradient_predivide_factor != 1.0 and op != Average:
        raise ValueError("gradient_predivide_factor not supported with op != Average")
    if num_groups != 0:
        warnings.warn("Parameter `num_groups` has been replaced by `groups` and will be removed in v0.23.0.",
                      DeprecationWarning, stacklevel=2)
        groups = num_groups if groups is None else groups
    if backward_passes_per_step <= 0:
        raise ValueError("backward_passes_per_step must be > 0")
    named = checked_names(optimizer, named_parameters)
    if op == Adasum and size() > 1:
        if process_set is not global_process_set:
            raise NotImplementedError("Adasum does not support non-global process sets yet.")
        if isinstance(optimizer, torch.optim.LBFGS):
            raise ValueError("Adasum combines what a step on each parameter alone changes, and LBFGS takes its steps on all "
                             "parameters together; op=Average would be right")
        distributed = wrapped(optimizer, AdasumOptimizer)
        distributed.distribute(named, compression, backward_passes_per_step)
        return distributed
    if groups is not None:
        _check_groups(groups)
    distributed = wrapped(optimizer, _DistributedOptimizer)
    exchange = GradientExchange(compression, op, gradient_predivide_factor, groups, sparse_as_dense, process_set)
    distributed._distribute(named, backward_passes_per_step, exchange)
    return distributed
