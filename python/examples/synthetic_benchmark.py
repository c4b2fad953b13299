"""Images a second of a training with made-up images: with kolo.torch, and with PyTorch's DDP over gloo beside it.

mpirun -n 2 python3 synthetic_benchmark.py                       # both, turn about
mpirun -n 2 python3 synthetic_benchmark.py --with kolo --fp16    # gradients travel as 16 bits
mpirun -n 2 python3 synthetic_benchmark.py --device cuda         # on GPUs; a rank's is that of its local rank, in turns
"""
import argparse
import os
import statistics
import time

import torch
from torch import nn
from torch.nn import functional

import kolo.torch as hvd


class Block(nn.Module):
    """Two convolutions and a way around them (He et al., 2015)."""

    def __init__(self, inputs, outputs):
        super().__init__()
        stride = 1 if inputs == outputs else 2
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)])
        self.around = nn.Identity() if stride == 1 else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x):
        h = functional.relu(self.norms[0](self.first(x)))
        return functional.relu(self.norms[1](self.second(h)) + self.around(x))


def resnet(blocks):
    """6 · blocks + 2 layers for images of 32 × 32."""
    layers, inputs = [nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()], 16
    for outputs in [16] * blocks + [32] * blocks + [64] * blocks:
        layers.append(Block(inputs, outputs))
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def training_step(options, engine):
    """A function that trains on one batch."""
    torch.manual_seed(1)
    model = resnet(options.blocks).to(options.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    if engine == "kolo":
        optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters(),
                                             compression=hvd.Compression.fp16 if options.fp16 else hvd.Compression.none)
        hvd.broadcast_parameters(model.state_dict(), 0)
        hvd.broadcast_optimizer_state(optimizer, 0)
    else:
        model = nn.parallel.DistributedDataParallel(model)
    images = torch.randn(options.batch_size, 3, 32, 32).to(options.device)
    labels = torch.randint(10, (options.batch_size,)).to(options.device)

    def step():
        optimizer.zero_grad()
        functional.cross_entropy(model(images), labels).backward()
        optimizer.step()

    return step


def images_per_second(step, options):
    """Of one rank, when all have made so many batches."""
    hvd.barrier()
    start = time.perf_counter()
    for _ in range(options.batches):
        step()
    if options.device == "cuda":
        torch.cuda.synchronize()
    hvd.barrier()
    return options.batch_size * options.batches / (time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--with", dest="engines", choices=["kolo", "gloo", "both"], default="both")
    parser.add_argument("--blocks", type=int, default=3, help="of each of three widths: 6 · blocks + 2 layers")
    parser.add_argument("--batch-size", type=int, default=32, help="of each rank")
    parser.add_argument("--batches", type=int, default=10, help="that are timed together")
    parser.add_argument("--rounds", type=int, default=5, help="of each; the first one, which warms up, is not counted")
    parser.add_argument("--fp16", action="store_true", help="kolo's gradients travel as 16 bits")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    options = parser.parse_args()

    hvd.init()
    if options.device == "cuda":
        torch.cuda.set_device(hvd.local_rank() % torch.cuda.device_count())
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 1)))  # a rank has its share of the cores
    engines = ["kolo", "gloo"] if options.engines == "both" else [options.engines]
    if "gloo" in engines:
        os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
        os.environ.setdefault("MASTER_PORT", "29518")
        torch.distributed.init_process_group("gloo", rank=hvd.rank(), world_size=hvd.size())
    steps = {engine: training_step(options, engine) for engine in engines}
    found = {engine: [] for engine in engines}
    for _ in range(options.rounds + 1):
        for engine, step in steps.items():
            found[engine].append(images_per_second(step, options))
    if hvd.rank() == 0:
        for engine, rounds in found.items():
            each = statistics.median(rounds[1:])
            print(f"{engine}: {each:.1f} images/s on each of {hvd.size()} ranks, {each * hvd.size():.1f} in all "
                  f"(median of {options.rounds} rounds, {min(rounds[1:]):.1f} … {max(rounds[1:]):.1f})", flush=True)


main()
