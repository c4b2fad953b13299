"""A program for Horovod: PyTorch fits y = 3x + 1, each rank with samples of its own. kolo runs it unchanged.

mpirun -n 2 python3 -m kolo.horovod horovod_line.py
"""
import horovod.torch as hvd
import torch

hvd.init()
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * hvd.size())
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
hvd.broadcast_parameters(model.state_dict(), root_rank=0)

x = torch.linspace(-1, 1, 64)[hvd.rank()::hvd.size(), None]
for step in range(200):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), 3 * x + 1)
    loss.backward()
    optimizer.step()

loss = hvd.allreduce(loss.detach())
if hvd.rank() == 0:
    print(f"{hvd.size()} ranks: y = {model.weight.item():.3f} x + {model.bias.item():.3f}, loss {loss.item():.6f}")
