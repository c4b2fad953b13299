"""One training twice: with PyTorch's DDP over gloo, and with kolo.torch. Both end with the same weights.

mpirun -n 2 python3 from_ddp.py
"""
import os

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

import kolo.torch as hvd


def make_model():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(4, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))


def train(model, optimizer):
    """On this rank's rows of 256."""
    x = torch.randn(256, 4, generator=torch.Generator().manual_seed(2))
    y = x.sin().sum(1, keepdim=True)
    x, y = x[hvd.rank()::hvd.size()], y[hvd.rank()::hvd.size()]
    for _ in range(100):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()


def with_ddp():
    distributed.init_process_group("gloo", rank=hvd.rank(), world_size=hvd.size())
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    train(DistributedDataParallel(model), optimizer)
    return model


def with_kolo():
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    train(model, optimizer)
    return model


hvd.init()
os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
os.environ.setdefault("MASTER_PORT", "29519")
ours, theirs = with_kolo(), with_ddp()
difference = max((a - b).abs().max().item() for a, b in zip(ours.parameters(), theirs.parameters()))
if hvd.rank() == 0:
    print(f"{hvd.size()} ranks: the weights of DDP and kolo differ by {difference:.1e} at most")
