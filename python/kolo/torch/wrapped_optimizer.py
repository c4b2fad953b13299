"""What the optimizers of kolo.torch have in common: each is the optimizer that it wraps, seen through another class."""

import copy
import copyreg
from typing import Any, Callable, Dict, List, Set, Tuple

import torch

from kolo.errors import InvalidArgumentError
from kolo.torch.objects import allgather_object
from kolo.torch.process_sets import ProcessSet

Parameter = torch.nn.Parameter
Named = List[Tuple[str, Parameter]]

COMPUTED_TOO_OFTEN = ("Gradients were computed more than backward_passes_per_step times before call to step(). "
                      "Increase backward_passes_per_step to accumulate gradients locally.")
ZEROED_TOO_EARLY = ("optimizer.zero_grad() was called after loss.backward() but before optimizer.step() or "
                    "optimizer.synchronize(). This is prohibited as it can cause a race condition.")


def wrapped(optimizer: torch.optim.Optimizer, face: type) -> torch.optim.Optimizer:
    """An object of `face` before the optimizer's class, with the optimizer's own attributes: what is set on either, by a
    schedule or by load_state_dict(), is set on both."""
    distributed = object.__new__(type(type(optimizer).__name__, (face, type(optimizer)), {"__module__": __name__}))
    distributed.__dict__ = optimizer.__dict__
    distributed._inner = optimizer
    distributed._counted_step = None
    return distributed


class WrappedOptimizer:
    """Stands before the class of the optimizer that it wraps. Its own attributes are slots, so that they are not among
    those which it shares."""

    __slots__ = ("_inner", "_counted_step", "backward_passes_per_step", "_parameter_names", "_trained", "_passes_left",
                 "_seen", "_unhooked", "_accumulators", "_given")

    def _watch(self, named: Named, passes: int, is_alone: bool = False) -> None:
        """From now on _computed() is called when the gradient of a parameter that trains is complete; on a rank that is
        alone nobody counts."""
        self._parameter_names: Dict[Parameter, str] = {parameter: name for name, parameter in named}
        self.backward_passes_per_step = passes
        self._trained: List[Parameter] = [parameter for group in self.param_groups for parameter in group["params"]
                                          if parameter.requires_grad]
        self._passes_left: Dict[Parameter, int] = dict.fromkeys(self._trained, passes)
        self._seen: Set[Parameter] = set()  # a backward pass has computed its gradient in this step
        self._unhooked: List[Parameter] = [] if is_alone else list(self._trained)
        self._accumulators: List[Any] = []  # PyTorch keeps hooks as long as these live
        self._given: Dict[Parameter, torch.Tensor] = {}  # gradients that no backward pass has made
        self._hook()

    def _give_gradients(self, sparse: Set[int]) -> None:
        """Of zeros, to those that train and have none. sparse: ids of parameters that get none."""
        for parameter in self._trained if self._accumulators else ():
            if parameter.grad is None and parameter.requires_grad and id(parameter) not in sparse:
                parameter.grad = self._given[parameter] = torch.zeros_like(parameter.data)

    def _take_gradients_back(self) -> None:
        for parameter, gradient in self._given.items():
            if parameter.grad is gradient and parameter not in self._seen:
                parameter.grad = None
        self._given = {}

    def _hook(self) -> None:
        with torch.enable_grad():
            for parameter in self._unhooked:
                if parameter.requires_grad:
                    accumulator = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
                    accumulator.register_hook(self._hook_of(parameter))
                    self._accumulators.append(accumulator)
        self._unhooked = [parameter for parameter in self._unhooked if not parameter.requires_grad]

    def _hook_of(self, parameter: Parameter) -> Callable[..., None]:
        def computed(*_):
            left = self._passes_left[parameter]
            if left <= 0:
                raise AssertionError(COMPUTED_TOO_OFTEN)
            self._seen.add(parameter)
            self._passes_left[parameter] = left - 1
            if left == 1:
                self._computed(parameter)

        return computed

    def _begin_step(self) -> None:
        self._seen.clear()
        for parameter in self._passes_left:
            self._passes_left[parameter] = self.backward_passes_per_step

    def _later(self) -> List[Parameter]:
        """Those that train since a later day than the first: of a group that was added, or frozen until now."""
        return [parameter for group in self.param_groups for parameter in group["params"]
                if parameter not in self._passes_left and (parameter.requires_grad or parameter.grad is not None)]

    def _take_in(self, later: List[Parameter], process_set: ProcessSet) -> Named:
        """All ranks: the parameters that train on some rank since this step. Collective. Raises InvalidArgumentError on
        every rank for one that is not on all of them."""
        here: Dict[str, Parameter] = {}
        for g, group in enumerate(self.param_groups):
            for i, parameter in enumerate(group["params"]):
                here[self._parameter_names.setdefault(parameter, f"allreduce.noname.{g}.{i}")] = parameter
        shapes = {name: tuple(parameter.shape) for name, parameter in here.items()}
        ranks = allgather_object(([self._parameter_names[parameter] for parameter in later], shapes),
                                 "kolo.torch: parameters that train now", process_set)
        names = list(dict.fromkeys(name for new, _ in ranks for name in new))
        for name in names:
            found = {rank: shapes.get(name) for rank, (_, shapes) in zip(process_set.ranks, ranks)}
            if len(set(found.values())) > 1:
                listed = ", ".join(f"rank {rank} has {list(shape) if shape is not None else 'none'}"
                                   for rank, shape in found.items())
                raise InvalidArgumentError(f'"{name}" trains since this step, and {listed}; requires_grad and '
                                           "add_param_group() must be the same on all ranks")
        taken = [(name, here[name]) for name in names if here[name] not in self._passes_left]
        for _, parameter in taken:
            self._trained.append(parameter)
            self._passes_left[parameter] = self.backward_passes_per_step
            self._unhooked.append(parameter)
        return taken

    def set_backward_passes_per_step(self, passes: int) -> None:
        """From the next step on."""
        self.backward_passes_per_step = passes
        self._passes_left = dict.fromkeys(self._trained, passes)

    def zero_grad(self, *arguments, **options):
        if self._seen:
            raise AssertionError(ZEROED_TOO_EARLY)
        return super().zero_grad(*arguments, **options)

    def load_state_dict(self, *arguments, **options):
        """Of the wrapped optimizer. What has begun of a step is forgotten."""
        self._begin_step()
        return self._inner.load_state_dict(*arguments, **options)

    # A schedule puts a function that counts into the attribute `step` of the optimizer that it is made for. The attributes
    # are one for both, and both have their own `step`.
    @property
    def step(self) -> Callable[..., Any]:
        """synchronize(), and the step of the wrapped optimizer: step(closure=None)."""
        return self._step if self._counted_step is None else self._counted_step

    @step.setter
    def step(self, counted: Callable[..., Any]) -> None:
        self._counted_step = counted

    def __reduce_ex__(self, protocol: int):
        """The wrapped optimizer is what is pickled; wrap it again after loading."""
        make, arguments, *rest = self._inner.__reduce_ex__(2)
        if make is copyreg.__newobj__:  # pickle wants the class of this object there
            make, arguments = copyreg._reconstructor, (arguments[0], object, None)
        return (make, arguments, *rest)

    def __copy__(self):
        raise TypeError("a shallow copy would send the same gradients again; copy.deepcopy would be right")

    def __deepcopy__(self, memo: Dict[int, Any]):
        inner = copy.deepcopy(self._inner, memo)
        copies = {old: new for old_group, new_group in zip(self.param_groups, inner.param_groups)
                  for old, new in zip(old_group["params"], new_group["params"])}
        distributed = self._wrap_again(inner, copies)
        memo[id(self)] = distributed
        return distributed
