"""A training loop with NumPy alone: each rank has samples of its own, gradients are averaged by kolo.

mpirun -n 2 python3 numpy_loop.py fits y = 3x + 1 as one rank with all samples would.
"""
import numpy as np

import kolo

kolo.init()
rank, size = kolo.rank(), kolo.size()

model = kolo.broadcast(np.array([0.5, 0.0]) if rank == 0 else np.zeros(2), 0)  # all begin where rank 0 does
x = np.arange(rank, 12, size) / 6 - 1  # this rank's samples
for step in range(300):
    error = model[0] * x + model[1] - (3 * x + 1)
    gradient = np.array([(2 * error * x).sum(), (2 * error).sum()])
    # The loss travels while the gradient does; both are in one message.
    loss = kolo.allreduce_async(np.array([(error**2).sum()]), "sum", name="loss")
    kolo.allreduce(gradient, "sum", name="gradient", in_place=True)
    last_loss = loss.wait()[0]
    model -= 0.05 * gradient
if rank == 0:
    print(f"y = {model[0]:.3f} x + {model[1]:.3f}, loss {last_loss:.6f}")
