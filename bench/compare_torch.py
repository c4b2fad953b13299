"""kolo.torch beside PyTorch's own DistributedDataParallel and all_reduce over gloo, turn about in the same processes.

Usage: mpirun -n 2 python3 bench/compare_torch.py [--models lenet,resnet20,gpt] [--rounds 7] [--json]

Prints, on rank 0, for each network the time of a training step, and for each size that of an allreduce: median and
minimum over the rounds, of the slowest rank; and what a call costs for 1 KiB. Host memory, one thread a rank.
"""
import argparse
import json
import os
import statistics
import time

import torch
import torch.distributed as gloo
from torch.nn import functional

import kolo.torch as hvd
from torch_models import MODELS

SIZES = [4 << 10, 64 << 10, 1 << 20, 8 << 20, 64 << 20]


def begin():
    torch.set_num_threads(1)
    hvd.init()
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29517")
    gloo.init_process_group("gloo", rank=hvd.rank(), world_size=hvd.size())


def seconds_of(work, times):
    """Of one call, on the rank that takes longest."""
    hvd.barrier()
    start = time.perf_counter()
    for _ in range(times):
        work()
    own = torch.tensor((time.perf_counter() - start) / times, dtype=torch.float64)
    return hvd.allreduce(own, op=hvd.Max).item()


def turn_about(works, rounds, seconds_each):
    """name → seconds of each round; the first round, which warms up, is not counted."""
    times = {name: max(1, int(seconds_each / seconds_of(work, 2))) for name, work in works.items()}
    times = hvd.broadcast_object(times, 0)
    found = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            found[name].append(seconds_of(work, times[name]))
    return found


def training_step(network, samples, is_kolo):
    torch.manual_seed(1)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    if is_kolo:
        hvd.broadcast_parameters(model.state_dict(), 0)
        optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
    else:
        model = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    x, y = samples()

    def step():
        optimizer.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step


def allreduces(bytes_of_tensor):
    own, other = torch.ones(bytes_of_tensor // 4), torch.ones(bytes_of_tensor // 4)
    return {"kolo": lambda: hvd.allreduce_(own, op=hvd.Max, name="compared"),
            "gloo": lambda: gloo.all_reduce(other, op=gloo.ReduceOp.MAX)}


def row(what, found):
    medians = {name: statistics.median(times) for name, times in found.items()}
    return {"what": what, **{f"{name}_us": round(1e6 * medians[name], 1) for name in found},
            **{f"{name}_min_us": round(1e6 * min(times), 1) for name, times in found.items()},
            "times_faster": round(medians["gloo"] / medians["kolo"], 2)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", default=",".join(MODELS), help="of " + ", ".join(MODELS))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true", help="each line is a JSON object")
    options = parser.parse_args()
    begin()

    def show(what, works, seconds_each):
        found = row(what, turn_about(works, options.rounds, seconds_each))
        if hvd.rank() == 0:
            print(json.dumps(found) if options.json else
                  f"{found['what']:>18}  kolo {found['kolo_us']:>10} µs (min {found['kolo_min_us']})   "
                  f"gloo {found['gloo_us']:>10} µs (min {found['gloo_min_us']})   {found['times_faster']} times as fast",
                  flush=True)
        return found["times_faster"]

    factors = []
    for name in filter(None, options.models.split(",")):
        network, samples = MODELS[name]
        factors.append(show(f"step of {name}", {"kolo": training_step(network, samples, True),
                                                "gloo": training_step(network, samples, False)}, 1.0))
    if factors and hvd.rank() == 0 and not options.json:
        print(f"steps: geometric mean {statistics.geometric_mean(factors):.2f}")
    for size in [1 << 10, *SIZES]:
        show(f"allreduce {size >> 10} KiB", allreduces(size), 0.3)


main()
