#!/usr/bin/env python3
"""Training steps of the zoo's networks in PyTorch, with the switches and the fields of `kolo-bench train --json`.

Usage: torch_rows.py --device cpu|gpu --models LIST [--precision f32|tf32|bf16|default] [--variant eager|graph|compile]
                     [--batch N] [--feed none|host] [--fetch never|each] [--seconds S] [--threads T]

LISTs are separated by commas: of each precision, variant, feed and fetch there is a row. Forward, loss, backward and
SGD with momentum on made-up samples. feed host: a batch in each step, from two in pinned memory; fetch each: the loss
of each step, else the end is waited for once in ten steps. graph: the whole step as PyTorch's notes on CUDA graphs
capture one; images are channels last but on CPUs. precision default: what PyTorch does if nobody says anything.
"""
import argparse
import contextlib
import json
import pathlib
import resource
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from torch_models import LeNet, resnet20  # noqa: E402

STEPS_OF_A_WINDOW = 10  # where nobody fetches


class Layer(nn.Module):
    """As models/gpt.cc: attention and two dense layers, norms first."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.norm1, self.norm2 = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attend(self, x):
        n, places, width = x.shape
        q, k, v = (t.view(n, places, self.heads, -1).transpose(1, 2) for t in self.qkv(x).split(width, 2))
        if hasattr(functional, "scaled_dot_product_attention"):
            seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            mask = torch.full((places, places), float("-inf"), device=x.device).triu(1)
            seen = torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + mask, -1) @ v
        return self.out(seen.transpose(1, 2).reshape(n, places, width))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, vocabulary=65, layers=4, width=256, heads=4, places=128):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Parameter(torch.zeros(places, width))
        self.layers = nn.Sequential(*[Layer(width, heads) for _ in range(layers)])
        self.norm, self.last = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, x):
        return self.last(self.norm(self.layers(self.tokens(x) + self.places))).flatten(0, 1)


def mlp():
    return nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))


def of_torchvision(name):
    import torchvision
    return getattr(torchvision.models, name)()


# Name → network, batch, shape of a sample (tokens where it is one number), classes.
MODELS = {
    "mlp": (mlp, 128, (784,), 10),
    "lenet": (LeNet, 64, (1, 28, 28), 10),
    "resnet20": (resnet20, 64, (3, 32, 32), 10),
    "resnet50": (lambda: of_torchvision("resnet50"), 8, (3, 224, 224), 1000),
    "vgg16": (lambda: of_torchvision("vgg16"), 4, (3, 224, 224), 1000),
    "gpt": (Gpt, 16, 128, 65),
    "gpt124m": (lambda: Gpt(50257, 12, 768, 12, 1024), 8, 1024, 50257),
}


def made_up(name, batch):
    _, usual, sample, classes = MODELS[name]
    batch = batch or usual
    if isinstance(sample, int):
        return torch.randint(classes, (batch, sample)), torch.randint(classes, (batch * sample,))
    return torch.rand(batch, *sample), torch.randint(classes, (batch,))


class Training:
    """One network on its device, and one step of it."""

    def __init__(self, name, options, precision, variant, feed, fetch):
        torch.manual_seed(1)
        self.cuda = options.device == "gpu"
        device = torch.device("cuda" if self.cuda else "cpu")
        self.model = MODELS[name][0]().to(device)
        self.params = sum(p.numel() for p in self.model.parameters())
        x, y = made_up(name, options.batch)
        if self.cuda and x.dim() == 4:
            self.model, x = self.model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
        self.batch, self.layout = x.shape[0], "NHWC" if self.cuda and x.dim() == 4 else "NCHW" if x.dim() == 4 else ""
        self.sources = [(x.clone(), y.clone()) for _ in range(2)]
        if self.cuda:
            self.sources = [(a.pin_memory(), b.pin_memory()) for a, b in self.sources]
        self.x, self.y = x.to(device), y.to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.01, 0.9)
        self.computes = torch.compile(self.model) if variant == "compile" else self.model
        self.precision, self.feeds, self.fetches, self.steps = precision, feed == "host", fetch == "each", 0
        self.graph = self.capture() if variant == "graph" else None

    def amp(self, keeps_casts=True):
        if self.precision != "bf16":
            return contextlib.nullcontext()
        return torch.autocast("cuda" if self.cuda else "cpu", torch.bfloat16, cache_enabled=keeps_casts)

    def compute(self, keeps_casts=True):
        with self.amp(keeps_casts):
            loss = functional.cross_entropy(self.computes(self.x), self.y)
        loss.backward()
        self.optimizer.step()
        return loss

    def capture(self):
        """PyTorch's notes, CUDA semantics, "Whole-network capture"."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.optimizer.zero_grad(set_to_none=True)
                self.compute(False)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        self.optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph):
            self.loss = self.compute(False)
        return graph

    def step(self):
        if self.feeds:
            x, y = self.sources[self.steps % 2]
            self.x.copy_(x, non_blocking=True)
            self.y.copy_(y, non_blocking=True)
        self.steps += 1
        if self.graph is not None:
            self.graph.replay()
        else:
            self.optimizer.zero_grad()
            self.loss = self.compute()
        if self.fetches:
            self.loss.item()

    def wait(self):
        if self.cuda:
            torch.cuda.synchronize()


def times_of(training, seconds):
    """Seconds of a step, of each step or of each window."""
    at_once = 1 if training.fetches else STEPS_OF_A_WINDOW
    for _ in range(10):
        training.step()
    training.wait()
    found, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(found) < 8:
        start = time.perf_counter()
        for _ in range(at_once):
            training.step()
        if at_once > 1:
            training.wait()
        found.append((time.perf_counter() - start) / at_once)
    return found


def set_precision(precision):
    if precision == "default":
        return
    allow = precision != "f32"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allow


def measure(name, options, precision, variant, feed, fetch):
    cuda = options.device == "gpu"
    if cuda:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    training = Training(name, options, precision, variant, feed, fetch)
    found = times_of(training, options.seconds)
    median = statistics.median(found)
    row = {"model": name, "params": training.params, "ranks": 1, "threads": torch.get_num_threads(),
           "batch": training.batch, "device": options.device, "precision": precision, "layout": training.layout,
           "variant": variant, "feed": feed, "fetch": fetch, "ms": round(1e3 * median, 4), "min_ms": round(1e3 * min(found), 4),
           "samples_per_s": round(training.batch / median, 1), "steps": training.steps,
           "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}
    if cuda:
        row["peak_gpu_mib"] = round(torch.cuda.max_memory_allocated() / 2**20, 1)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cpu", choices=("cpu", "gpu"))
    parser.add_argument("--models", default="mlp,lenet", help="of " + ", ".join(MODELS))
    parser.add_argument("--precision", default="f32", help="LIST of f32, tf32, bf16, default")
    parser.add_argument("--variant", default="eager", help="LIST of eager, graph, compile")
    parser.add_argument("--feed", default="host", help="LIST of host, none; taken in pairs with --fetch")
    parser.add_argument("--fetch", default="each", help="LIST of each, never")
    parser.add_argument("--batch", type=int)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--threads", type=int)
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    torch.backends.cudnn.benchmark = True
    failed = False
    for name in options.models.split(","):
        for precision in options.precision.split(","):
            set_precision(precision)
            for variant in options.variant.split(","):
                for feed, fetch in zip(options.feed.split(","), options.fetch.split(",")):
                    try:
                        row = measure(name, options, precision, variant, feed, fetch)
                    except (RuntimeError, ImportError) as error:  # the other rows are measured all the same
                        failed = True
                        row = {"model": name, "precision": precision, "variant": variant, "feed": feed, "fetch": fetch,
                               "error": str(error).split("\n")[0]}
                    print(json.dumps(row), flush=True)
    sys.exit(1 if failed else 0)


main()
