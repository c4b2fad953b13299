"""Parameters, the state of optimizers and Python's objects, from one rank to all or from all to all."""

from typing import Any, Dict, List, Tuple

import cloudpickle
import torch

import kolo
from kolo import _kolo
from kolo.errors import InvalidArgumentError
from kolo.torch.handles import horovods_errors, synchronize, tell_refusal, tells_refusals
from kolo.torch.memory import DTYPES, check_type
from kolo.torch.moves import broadcast_async_
from kolo.torch.process_sets import global_process_set, native_of


def _whole(name: str, parameter: Any) -> Tuple[torch.Tensor, torch.Tensor]:
    """A parameter's tensor, and the same in one piece, which travels. Raises ValueError for what cannot."""
    tensor = parameter.data if isinstance(parameter, torch.nn.Parameter) else parameter
    if not torch.is_tensor(tensor):
        raise ValueError(f"broadcast_parameters: {name} is a {type(parameter).__name__}; a tensor would be right")
    whole = tensor if tensor.is_contiguous() else tensor.contiguous()
    check_type(whole)
    return tensor, whole


def broadcast_parameters(params, root_rank: int) -> None:
    """Overwrites tensors with the root's. params: a state_dict, a list of tensors or of (name, tensor)."""
    if isinstance(params, dict):
        pairs = sorted(params.items())
    elif isinstance(params, list) or hasattr(params, "__next__"):
        pairs = [pair if isinstance(pair, tuple) else (None, pair) for pair in params]
    else:
        raise ValueError(f"invalid params of type: {type(params)}")
    try:
        checked = [(name, *_whole(name, parameter)) for name, parameter in pairs]
    except Exception as error:
        for name, _ in pairs:  # the other ranks start all before they wait for one
            tell_refusal("broadcast", f"broadcast.{name}" if name else "", error, global_process_set)
        raise
    handles = [(broadcast_async_(whole, root_rank, name), tensor, whole) for name, tensor, whole in checked]
    for handle, tensor, whole in handles:
        synchronize(handle)
        if whole is not tensor:
            tensor.copy_(whole)


@tells_refusals("broadcast_object")
def broadcast_object(obj: Any, root_rank: int = 0, name: str = None, process_set=global_process_set) -> Any:
    """The root's object on every rank, pickled by cloudpickle on the way."""
    is_root = kolo.rank() == root_rank
    with horovods_errors():
        pending = _kolo.broadcast_object(cloudpickle.dumps(obj) if is_root else b"", root_rank, name or "",
                                         native_of(process_set))
        received = pending.wait()
    return obj if is_root else cloudpickle.loads(received)


@tells_refusals("allgather_object")
def allgather_object(obj: Any, name: str = None, process_set=global_process_set) -> List[Any]:
    """Every rank's object, in rank order, pickled by cloudpickle on the way."""
    with horovods_errors():
        received = _kolo.allgather_object(cloudpickle.dumps(obj), name or "", native_of(process_set)).wait()
    return [cloudpickle.loads(text) for text in received]


class _Tensor:
    """What is said of a tensor before it comes."""

    def __init__(self, tensor: torch.Tensor):
        self.dtype, self.shape, self.is_on_gpu = tensor.dtype, tuple(tensor.shape), tensor.is_cuda

    def fits(self, tensor: Any) -> bool:
        return _is_plain(tensor) and (tensor.dtype, tuple(tensor.shape)) == (self.dtype, self.shape)


def _is_plain(value: Any) -> bool:
    return torch.is_tensor(value) and not value.is_sparse and value.is_contiguous() and value.dtype in DTYPES


def _check_same_parameters(optimizer: torch.optim.Optimizer) -> None:
    own = [[tuple(parameter.shape) for parameter in group["params"]] for group in optimizer.param_groups]
    ranks = allgather_object(own, "optimizer.shapes")
    for rank, shapes in enumerate(ranks):
        if shapes != ranks[0]:
            raise InvalidArgumentError("broadcast_optimizer_state: the groups have parameters of shapes "
                                       f"{ranks[0]} on rank 0, {shapes} on rank {rank}; they must be the same")


def _sparse_parameters(model) -> set:
    return {id(parameter) for module in (model.modules() if model is not None else ())
            if isinstance(module, torch.nn.Embedding) and module.sparse for parameter in module.parameters()}


def broadcast_optimizer_state(optimizer: torch.optim.Optimizer, root_rank: int, model: torch.nn.Module = None) -> None:
    """Makes the options (learning rate, …) and the state of an optimizer equal to the root's. Collective.

    Values are written into the groups and tensors that exist: schedules that were made before go on with them. A rank
    gets what it lacks; where the root has no state yet, no rank has. model: tells which parameters have sparse gradients.
    A DistributedOptimizer's parameters have gradients afterwards, as with Horovod: zeros, which the next step takes back
    where no backward pass has written them. Raises InvalidArgumentError, on every rank, where the parameters have other
    shapes.
    """
    _check_same_parameters(optimizer)
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    states = [optimizer.state.get(parameter, {}) for parameter in parameters]
    options = [{key: value for key, value in group.items() if key != "params"} for group in optimizer.param_groups]
    said = [{name: _Tensor(value) if _is_plain(value) else value for name, value in state.items()} for state in states]
    options, said = broadcast_object((options, said), root_rank, "optimizer.options")
    tensors: Dict[str, torch.Tensor] = {}
    for group, values in zip(optimizer.param_groups, options):
        group.update(values)
    for index, (parameter, values) in enumerate(zip(parameters, said)):
        if not values:
            optimizer.state.pop(parameter, None)
            continue
        state = optimizer.state[parameter]
        for name in [name for name in state if name not in values]:
            del state[name]
        for name, value in values.items():
            if not isinstance(value, _Tensor):
                state[name] = value
                continue
            if not value.fits(state.get(name)):
                device = parameter.device if value.is_on_gpu else "cpu"  # a count of steps is on the host
                state[name] = torch.zeros(value.shape, dtype=value.dtype, device=device)
            tensors[f"state.{index}.{name}"] = state[name]
    broadcast_parameters(tensors, root_rank)
    give_gradients = getattr(optimizer, "_give_gradients", None)
    if give_gradients is not None and not isinstance(optimizer, torch.optim.SparseAdam):
        give_gradients(_sparse_parameters(model))
