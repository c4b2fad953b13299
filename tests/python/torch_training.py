"""What tests of training with PyTorch share: a net, and the samples of all ranks, of which each rank has its own."""
import pytest
import torch
from torch_device import here

SAMPLES = 6  # of each rank


class Net(torch.nn.Module):
    """Its second branch is used where `wide` says so."""

    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(4, 8), torch.nn.Linear(8, 3)
        self.extra = torch.nn.Linear(8, 8)

    def forward(self, x, wide=True):
        hidden = torch.tanh(self.first(x))
        return self.last(hidden + torch.tanh(self.extra(hidden)) if wide else hidden)


@pytest.fixture
def net():
    torch.manual_seed(1)
    return Net().double()


def loss_of(net, x, **how):
    return (net(x, **how) ** 2).mean()


def batches(size, steps):
    generator = torch.Generator().manual_seed(5)
    return [here(torch.randn(size * SAMPLES, 4, generator=generator, dtype=torch.float64, device="cpu")) for _ in range(steps)]


def own(x, rank):
    return x[rank * SAMPLES: (rank + 1) * SAMPLES]


def train(net, optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def expect_equal(net, reference):
    for found, expected in zip(net.parameters(), reference.parameters()):
        torch.testing.assert_close(found, expected)


def sgd(net):
    return torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
