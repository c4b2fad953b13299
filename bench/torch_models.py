"""The networks that compare_torch.py trains, in PyTorch, with samples drawn at random."""
import torch
from torch import nn
from torch.nn import functional


class LeNet(nn.Module):
    """As models/lenet.cc: two convolutions and a dense layer that has nearly all parameters."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 32, 5, padding=2), nn.Conv2d(32, 64, 5, padding=2)
        self.hidden, self.last = nn.Linear(64 * 7 * 7, 1024), nn.Linear(1024, 10)

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.first(x)), 2)
        x = functional.max_pool2d(functional.relu(self.second(x)), 2)
        return self.last(functional.relu(self.hidden(x.flatten(1))))


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)])
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False) if stride > 1 else nn.Identity()

    def forward(self, x):
        y = functional.relu(self.norms[0](self.first(x)))
        return functional.relu(self.norms[1](self.second(y)) + self.shortcut(x))


def resnet20():
    """He et al., 2015, section 4.2, with 1×1 convolutions where the size changes."""
    layers = [nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    inputs = 16
    for outputs in (16, 32, 64):
        for i in range(3):
            layers.append(Block(inputs, outputs, 2 if inputs != outputs else 1))
            inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


class Gpt(nn.Module):
    """Four layers of 128 over 64 characters."""

    def __init__(self, characters=65, length=64, width=128, layers=4):
        super().__init__()
        self.tokens, self.places = nn.Embedding(characters, width), nn.Parameter(torch.zeros(length, width))
        self.layers = nn.ModuleList(
            [nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
             for _ in range(layers)])
        self.last = nn.Linear(width, characters)
        self.register_buffer("mask", torch.triu(torch.full((length, length), float("-inf")), 1))

    def forward(self, x):
        h = self.tokens(x) + self.places
        for layer in self.layers:
            h = layer(h, src_mask=self.mask)
        return self.last(h).flatten(0, 1)


# Name → network, samples and labels of one rank.
MODELS = {
    "lenet": (LeNet, lambda: (torch.randn(16, 1, 28, 28), torch.randint(0, 10, (16,)))),
    "resnet20": (resnet20, lambda: (torch.randn(8, 3, 32, 32), torch.randint(0, 10, (8,)))),
    "gpt": (Gpt, lambda: (torch.randint(0, 65, (4, 64)), torch.randint(0, 65, (4 * 64,)))),
}
