"""Parameters, the state of optimizers and Python's objects, from one rank to all or from all to all."""

from typing import Any, Dict, List

import cloudpickle
import torch

import kolo
from kolo import _kolo
from kolo.torch.handles import horovods_errors, synchronize
from kolo.torch.moves import broadcast_async_
from kolo.torch.process_sets import global_process_set, native_of


def broadcast_parameters(params, root_rank: int) -> None:
    """Overwrites tensors with the root's. params: a state_dict, a list of tensors or of (name, tensor)."""
    if isinstance(params, dict):
        pairs = sorted(params.items())
    elif isinstance(params, list) or hasattr(params, "__next__"):
        pairs = [pair if isinstance(pair, tuple) else (None, pair) for pair in params]
    else:
        raise ValueError(f"invalid params of type: {type(params)}")
    handles = []
    for name, parameter in pairs:
        tensor = parameter.data if isinstance(parameter, torch.nn.Parameter) else parameter
        if not torch.is_tensor(tensor):
            raise ValueError(f"broadcast_parameters: {name} is a {type(parameter).__name__}; a tensor would be right")
        whole = tensor if tensor.is_contiguous() else tensor.contiguous()
        handles.append((broadcast_async_(whole, root_rank, name), tensor, whole))
    for handle, tensor, whole in handles:
        synchronize(handle)
        if whole is not tensor:
            tensor.copy_(whole)


def broadcast_object(obj: Any, root_rank: int = 0, name: str = None, process_set=global_process_set) -> Any:
    """The root's object on every rank, pickled by cloudpickle on the way."""
    is_root = kolo.rank() == root_rank
    with horovods_errors():
        pending = _kolo.broadcast_object(cloudpickle.dumps(obj) if is_root else b"", root_rank, name or "",
                                         native_of(process_set))
        received = pending.wait()
    return obj if is_root else cloudpickle.loads(received)


def allgather_object(obj: Any, name: str = None) -> List[Any]:
    """Every rank's object, in rank order, pickled by cloudpickle on the way."""
    with horovods_errors():
        received = _kolo.allgather_object(cloudpickle.dumps(obj), name or "", kolo.ALL).wait()
    return [cloudpickle.loads(text) for text in received]


def _make_state(optimizer: torch.optim.Optimizer, sparse: set) -> None:
    """An optimizer makes its state in its first step: one with gradients of zero."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter.requires_grad:
                parameter.grad = torch.zeros_like(parameter.data)
                if isinstance(optimizer, torch.optim.SparseAdam) or \
                        (isinstance(optimizer, torch.optim.SGD) and id(parameter) in sparse):
                    parameter.grad = parameter.grad.to_sparse()
    getattr(optimizer, "step_of_this_rank", optimizer.step)()


def _sparse_parameters(model) -> set:
    return {id(parameter) for module in (model.modules() if model is not None else ())
            if isinstance(module, torch.nn.Embedding) and module.sparse for parameter in module.parameters()}


def broadcast_optimizer_state(optimizer: torch.optim.Optimizer, root_rank: int, model: torch.nn.Module = None) -> None:
    """Overwrites the state and the options (learning rate, …) of an optimizer with the root's. Collective.

    An optimizer without state makes it with a step over gradients of zero. model: tells which parameters have sparse
    gradients. Raises ValueError for LBFGS.
    """
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError("cannot broadcast torch.optim.LBFGS state")
    if not optimizer.state_dict()["state"]:
        before = [(parameter, parameter.data.clone()) for group in optimizer.param_groups
                  for parameter in group["params"]]
        _make_state(optimizer, _sparse_parameters(model))
        for parameter, value in before:  # a weight decay has changed it
            parameter.data.copy_(value)
    state = optimizer.state_dict()
    tensors: Dict[str, torch.Tensor] = {}
    others: Dict[str, Any] = {}
    for index, values in state["state"].items():
        for name, value in values.items():
            (tensors if torch.is_tensor(value) else others)[f"state.{index}.{name}"] = value
    options = [{key: value for key, value in group.items() if key != "params"} for group in state["param_groups"]]
    options, others = broadcast_object((options, others), root_rank, "optimizer.options")
    broadcast_parameters(tensors, root_rank)
    for group, values in zip(state["param_groups"], options):
        group.update(values)
    for index, values in state["state"].items():
        for name in values:
            values[name] = {**tensors, **others}.get(f"state.{index}.{name}", values[name])
    optimizer.load_state_dict(state)
