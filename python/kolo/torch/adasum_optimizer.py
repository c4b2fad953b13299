"""DistributedOptimizer for Adasum, which combines what the optimizers of the ranks would change, not gradients."""

import contextlib
from typing import Any, Dict, List, Set, Tuple

import torch

from kolo.torch.handles import Handle, synchronize
from kolo.torch.reductions import Adasum, allreduce_async_

Parameter = torch.nn.Parameter


class AdasumOptimizer:
    """Stands before the class of the optimizer that it wraps.

    As soon as a gradient is complete the wrapped optimizer takes its step on that parameter alone; the change is
    combined by Adasum and added to where the parameter was (Maleki et al., MLSys 2021, section 4).
    """

    def distribute(self, named: List[Tuple[str, Parameter]], compression: Any, passes: int) -> None:
        self._parameter_names = {parameter: name for name, parameter in named}
        self.backward_passes_per_step = passes
        self._compression = compression
        self._trained = [parameter for group in self.param_groups for parameter in group["params"]
                         if parameter.requires_grad]
        self._passes_left = dict.fromkeys(self._trained, passes)
        self._seen: Set[Parameter] = set()
        self._starts: Dict[Parameter, torch.Tensor] = {}
        self._under_way: Dict[Parameter, Tuple[Handle, Any]] = {}
        self._accumulators: List[Any] = []
        for parameter in self._trained:
            accumulator = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
            accumulator.register_hook(self._hook_of(parameter))
            self._accumulators.append(accumulator)

    def _hook_of(self, parameter: Parameter):
        def computed(*_):
            left = self._passes_left[parameter]
            if left <= 0:
                raise AssertionError("Gradients were computed more than backward_passes_per_step times before call "
                                     "to step(). Increase backward_passes_per_step to accumulate gradients locally.")
            self._seen.add(parameter)
            self._passes_left[parameter] = left - 1
            if left == 1:
                self._start(parameter)

        return computed

    def set_backward_passes_per_step(self, passes: int) -> None:
        """From the next step on."""
        self.backward_passes_per_step = passes
        self._passes_left = dict.fromkeys(self._trained, passes)

    def _step_on(self, parameter: Parameter) -> None:
        groups = [group["params"] for group in self.param_groups]
        for group in self.param_groups:
            group["params"] = [parameter] if any(parameter is other for other in group["params"]) else []
        super().step()
        for group, parameters in zip(self.param_groups, groups):
            group["params"] = parameters

    def _start(self, parameter: Parameter) -> None:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter.data)
        self._starts[parameter] = parameter.data.clone()
        self._step_on(parameter)
        sent, context = self._compression.compress(parameter.data - self._starts[parameter])
        handle = allreduce_async_(sent, name=self._parameter_names[parameter], op=Adasum)
        self._under_way[parameter] = (handle, context)

    def synchronize(self) -> None:
        """Nothing: step() does all."""

    @contextlib.contextmanager
    def skip_synchronize(self):
        raise AssertionError("Skipping synchronization is not supported when using Adasum optimizer.")

    def step(self, closure=None):
        """Waits for the combined changes and makes them."""
        loss = None if closure is None else closure()
        for parameter in self._trained:
            if parameter not in self._under_way:
                self._start(parameter)
        for parameter, (handle, context) in self._under_way.items():
            change = self._compression.decompress(synchronize(handle), context)
            parameter.data.copy_(self._starts[parameter] + change)
        self._under_way.clear()
        self._seen.clear()
        self._passes_left = dict.fromkeys(self._trained, self.backward_passes_per_step)
        return loss

    def step_of_this_rank(self) -> None:
        """The step of the wrapped optimizer alone."""
        super().step()

    def zero_grad(self, *arguments, **options):
        if self._seen:
            raise AssertionError("optimizer.zero_grad() was called after loss.backward() but before optimizer.step() "
                                 "or optimizer.synchronize(). This is prohibited as it can cause a race condition.")
        return super().zero_grad(*arguments, **options)
