"""DistributedOptimizer: between a backward pass and step() the gradients are combined over the ranks."""

import contextlib
import warnings
from typing import Any, Dict, List, Optional, Set, Tuple

import torch

from kolo.torch.adasum_optimizer import AdasumOptimizer
from kolo.torch.compression import Compression
from kolo.torch.gradient_exchange import GradientExchange
from kolo.torch.job import size
from kolo.torch.process_sets import global_process_set
from kolo.torch.reductions import Adasum, Average

Named = List[Tuple[str, torch.nn.Parameter]]

COMPUTED_TOO_OFTEN = ("Gradients were computed more than backward_passes_per_step times before call to step(). "
                      "Increase backward_passes_per_step to accumulate gradients locally.")
ZEROED_TOO_EARLY = ("optimizer.zero_grad() was called after loss.backward() but before optimizer.step() or "
                    "optimizer.synchronize(). This is prohibited as it can cause a race condition.")


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


class _DistributedOptimizer:
    """Stands before the class of the optimizer that it wraps, whose state, groups and methods it keeps."""

    def _distribute(self, named: Named, passes: int, exchange: GradientExchange, is_alone: bool) -> None:
        self._parameter_names = {parameter: name for name, parameter in named}
        self.backward_passes_per_step = passes
        self.process_set = exchange.process_set
        self._exchange = exchange
        self._trained = [parameter for group in self.param_groups for parameter in group["params"]
                         if parameter.requires_grad]
        self._passes_left: Dict[torch.nn.Parameter, int] = dict.fromkeys(self._trained, passes)
        self._seen: Set[torch.nn.Parameter] = set()  # a backward pass has computed its gradient in this step
        self._synchronized = False
        self._should_synchronize = True
        self._is_alone = is_alone
        self._accumulators: List[Any] = []  # PyTorch keeps hooks as long as these live
        if not is_alone:
            exchange.begin([(self._parameter_names[parameter], parameter) for parameter in self._trained])
            for parameter in self._trained:
                accumulator = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
                accumulator.register_hook(self._hook_of(parameter))
                self._accumulators.append(accumulator)

    def _hook_of(self, parameter: torch.nn.Parameter):
        def computed(*_):
            left = self._passes_left[parameter]
            if left <= 0:
                raise AssertionError(COMPUTED_TOO_OFTEN)
            self._seen.add(parameter)
            self._passes_left[parameter] = left - 1
            if left == 1:
                self._exchange.start(parameter)

        return computed

    def set_backward_passes_per_step(self, passes: int) -> None:
        """From the next step on."""
        self.backward_passes_per_step = passes
        self._passes_left = dict.fromkeys(self._trained, passes)

    def load_state_dict(self, *arguments, **options):
        self._exchange.reset()
        self._begin_step()
        self._synchronized = False
        self._should_synchronize = True
        return super().load_state_dict(*arguments, **options)

    def _begin_step(self) -> None:
        self._seen.clear()
        for parameter in self._passes_left:
            self._passes_left[parameter] = self.backward_passes_per_step

    def synchronize(self) -> None:
        """Waits until all gradients are combined; those that no backward pass computed take part as they stand."""
        if not self._is_alone:
            for parameter in self._trained:
                self._exchange.start(parameter)
            self._exchange.finish()
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

    def step(self, closure=None):
        """synchronize(), and the step of the wrapped optimizer."""
        if self._should_synchronize:
            if self._synchronized:
                warnings.warn("optimizer.step() called without optimizer.skip_synchronize() context after "
                              "optimizer.synchronize(). This can cause training slowdown. You may want to consider "
                              "using optimizer.skip_synchronize() context if you use optimizer.synchronize() in your "
                              "code.")
            self.synchronize()
        self._synchronized = False
        return super().step(closure)

    def step_of_this_rank(self) -> None:
        """The step of the wrapped optimizer alone."""
        super().step()

    def zero_grad(self, *arguments, **options):
        if self._seen:
            raise AssertionError(ZEROED_TOO_EARLY)
        return super().zero_grad(*arguments, **options)


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


def wrapped(optimizer: torch.optim.Optimizer, face: type) -> torch.optim.Optimizer:
    """`optimizer` as it is, of a class that is its own with `face` before it. They share state and groups."""
    distributed = object.__new__(type(type(optimizer).__name__, (face, type(optimizer)), {"__module__": __name__}))
    # A learning rate schedule has put its own step() there.
    distributed.__dict__.update({name: value for name, value in vars(optimizer).items() if name != "step"})
    return distributed


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
        distributed = wrapped(optimizer, AdasumOptimizer)
        distributed.distribute(named, compression, backward_passes_per_step)
        return distributed
    if groups is not None:
        _check_groups(groups)
    distributed = wrapped(optimizer, _DistributedOptimizer)
    exchange = GradientExchange(compression, op, gradient_predivide_factor, groups, sparse_as_dense, process_set)
    distributed._distribute(named, backward_passes_per_step, exchange, size() == 1 or not process_set.included())
    return distributed
