"""kolo's checkpoints as PyTorch's state_dicts. Horovod has nothing of the kind."""

from typing import Dict, Mapping, Optional

import torch

from kolo import checkpoints
from kolo.torch.memory import DTYPES, memory_of, tensor_of

_TORCH_TYPES = {name: dtype for dtype, name in DTYPES.items()}


def load_checkpoint(path: str, names: Optional[Mapping[str, str]] = None) -> Dict[str, torch.Tensor]:
    """What model.load_state_dict takes, from a checkpoint of kolo: kolo.load_checkpoint with tensors, bf16 among them.

    names: by variable of kolo, the name in the state_dict; a Linear's weight is {"fc1/w": "fc1.weight.T"}, since kolo
    holds [in, out]. Convolutions are [out, in, rows, cols] in both. Strings are left out.
    """
    tensors, _ = checkpoints.read(path, names)
    return {name: tensor_of(memory, _TORCH_TYPES[memory.dtype]) for name, memory in tensors.items()}


def save_checkpoint(path: str, state_dict: Mapping[str, torch.Tensor], global_step: Optional[int] = None,
                    names: Optional[Mapping[str, str]] = None) -> None:
    """kolo.save_checkpoint of a state_dict: with `names`, as kolo's own programs have the weights. One rank calls it.

    Raises ValueError for a tensor of a type that kolo does not have.
    """
    memory = {name: memory_of(tensor.detach().cpu().contiguous()) for name, tensor in state_dict.items()}
    checkpoints.write(path, memory, {}, global_step, names)
