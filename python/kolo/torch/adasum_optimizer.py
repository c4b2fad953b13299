"""DistributedOptimizer for Adasum, which combines what the optimizers of the ranks would change, not gradients."""

import contextlib
from typing import Any, Dict, Tuple

import torch

from kolo.errors import FailedPreconditionError
from kolo.torch.drift_check import DriftCheck
from kolo.torch.handles import Handle, synchronize
from kolo.torch.process_sets import global_process_set
from kolo.torch.reductions import Adasum, Sum, allreduce_, allreduce_async_
from kolo.torch.step_word import StepWord
from kolo.torch.wrapped_optimizer import Named, Parameter, WrappedOptimizer, wrapped


class AdasumOptimizer(WrappedOptimizer):
    """As soon as a gradient is complete the wrapped optimizer takes its step on that parameter alone; the change is
    combined by Adasum and added to where the parameter was (Maleki et al., MLSys 2021, section 4). A rank without a
    gradient of a parameter changes nothing of it.
    """

    __slots__ = ("_compression", "_drift", "_starts", "_under_way")

    def distribute(self, named: Named, compression: Any, passes: int) -> None:
        self._compression = compression
        self._drift = DriftCheck(global_process_set)
        self._starts: Dict[Parameter, torch.Tensor] = {}
        self._under_way: Dict[Parameter, Tuple[Handle, Any]] = {}
        self._watch(named, passes)

    def _wrap_again(self, inner: torch.optim.Optimizer, copies: Dict[Parameter, Parameter]) -> torch.optim.Optimizer:
        distributed = wrapped(inner, AdasumOptimizer)
        named = [(name, copies[parameter]) for parameter, name in self._parameter_names.items() if parameter in copies]
        distributed.distribute(named, self._compression, self.backward_passes_per_step)
        return distributed

    def _step_on(self, parameter: Parameter) -> None:
        groups = [group["params"] for group in self.param_groups]
        for group in self.param_groups:
            group["params"] = [parameter] if any(parameter is other for other in group["params"]) else []
        try:
            self._inner.step()
        finally:
            for group, parameters in zip(self.param_groups, groups):
                group["params"] = parameters

    def _computed(self, parameter: Parameter) -> None:
        self._starts[parameter] = parameter.data.clone()
        if parameter.grad is not None:
            self._step_on(parameter)
        sent, context = self._compression.compress(parameter.data - self._starts[parameter])
        handle = allreduce_async_(sent, name=self._parameter_names[parameter], op=Adasum)
        self._under_way[parameter] = (handle, context)

    def _start_all(self) -> None:
        self._take_gradients_back()
        for parameter in self._trained:
            if parameter not in self._under_way:
                self._computed(parameter)
        later = self._later()
        word = StepWord(0, torch.float32, float(global_process_set.size()))
        # This rank's own step has changed the parameters already.
        number = self._drift.number({self._starts[parameter]: self._parameter_names[parameter]
                                     for parameter in self._trained})
        word.write(not later, [], number)
        allreduce_(word.memory, op=Sum, name="kolo.torch: step of " + min(self._parameter_names.values()))
        try:
            self._drift.end_step(number, word)
        except FailedPreconditionError:
            # All ranks raise it, and each has begun these: who trains again gives them the same names.
            for handle, _ in self._under_way.values():
                synchronize(handle)
            self._under_way.clear()
            raise
        if word.is_complete():
            return
        for _, parameter in self._take_in(later, global_process_set):
            self._computed(parameter)
        self._hook()

    def synchronize(self) -> None:
        """Nothing: step() does all."""

    @contextlib.contextmanager
    def skip_synchronize(self):
        raise AssertionError("Skipping synchronization is not supported when using Adasum optimizer.")

    def _step(self, closure=None):
        """Waits for the combined changes and makes them."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self._start_all()
        for parameter, (handle, context) in self._under_way.items():
            change = self._compression.decompress(synchronize(handle), context)
            parameter.data.copy_(self._starts[parameter] + change)
        self._under_way.clear()
        self._begin_step()
        return loss

    def load_state_dict(self, *arguments, **options):
        self._under_way.clear()
        return super().load_state_dict(*arguments, **options)
