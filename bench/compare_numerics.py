#!/usr/bin/python3
"""Training steps of kolo beside PyTorch's from the same weights, on the same batch: gradients of step 1 and the losses.

  bench/compare_numerics.py [--program build/release/bin/kolo-numerics] [--models mlp,lenet,resnet20,resnet50,vgg16,gpt] [--steps 20] [--samples N]

PyTorch computes in f64, and its rectifiers and max poolings let through what kolo's let through in the same step: by the sign of numbers
near 0, and by the larger of two that are nearly equal, which any two orders of a sum give differently, a net with many of them has
different gradients (bench/README.md). That they decided rightly is checked on its own: where f64 decides otherwise, the number must be
next to 0, or to the largest. Dropout, which draws, is kolo's as well.

Prints a Markdown table: the largest ||kolo's gradient - PyTorch's|| / ||PyTorch's|| of a model's variables, the largest relative
difference of a loss, how many numbers kolo decided otherwise in step 1, and how far the worst of those was off, in root mean squares of
what its rectifier or pooling read. Exit code 1 where a gradient or such a number (of resnet50: 1e-3) is off by more than 1e-4 or a loss by
more than 1e-3, 77 without PyTorch (Debian: python3-torch). What a variable is called and how it lies in memory is kolo's way.
"""
import argparse
import itertools
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    print("skipped: this Python has no torch")
    sys.exit(77)

SOURCE = pathlib.Path(__file__).resolve().parents[1]
# With ten times as much resnet50's loss jumps up and down, and what f32 rounds off grows with each step.
RATES = {"resnet50": 1e-6}
MOST_OF_A_GRADIENT, MOST_OF_A_LOSS = 1e-4, 1e-3
# Of resnet50 the worst of millions of numbers is further off than its gradients; what decides wrongly is off by about 1.
MOST_OF_A_FLIP = {"resnet50": 1e-3}
TYPES = {"F32": torch.float32, "I32": torch.int32, "U8": torch.uint8}


def read_safetensors(path):
    data = path.read_bytes()
    length, = struct.unpack("<Q", data[:8])
    tensors = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        if name != "__metadata__":
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            tensors[name] = torch.frombuffer(bytearray(data[begin:end]), dtype=TYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensors


class Decisions:
    """Of one step's rectifiers, dropouts and max poolings, called in their order: each lets through what kolo's did."""

    def __init__(self, kolo, step):
        def all_of(what):
            return (kolo[f"{what}/{step}/{i}"] for i in itertools.count())

        self.passed, self.kept, self.chosen = all_of("passed"), all_of("kept"), all_of("chosen")
        self.flips, self.worst = 0, 0.0

    def count(self, off, x):
        """off: how far numbers were from being decided so, where f64 would have decided otherwise."""
        self.flips += off.numel()
        if off.numel() > 0:
            self.worst = max(self.worst, float(off.max() / x.detach().pow(2).mean().sqrt()))

    def __call__(self, x):
        passed = next(self.passed).bool()
        self.count(x.detach()[(x > 0) != passed].abs(), x)
        return x * passed

    def drop_half(self, x):
        return x * next(self.kept).bool() * 2

    def max_pool(self, x, window=2, stride=2, padding=0):
        chosen = next(self.chosen).long()
        windows = F.unfold(x, window, padding=padding, stride=stride).reshape(*x.shape[:2], window * window, -1)
        taken = windows.gather(2, chosen.flatten(2).unsqueeze(2)).squeeze(2)
        less = windows.detach().amax(2) - taken.detach()
        self.count(less[less > 0], x)
        return taken.reshape(chosen.shape)


def linear(w, x, name):
    y = x @ w[f"{name}/w"]
    return y + w[f"{name}/b"] if f"{name}/b" in w else y


def batch_norm(w, x, name):
    return F.batch_norm(x, None, None, w[f"{name}/gamma"], w[f"{name}/beta"], training=True, eps=1e-5)


def shortcut_of(w, h, block, normed, stride):
    return normed(h, f"{block}/shortcut", stride) if f"{block}/shortcut/w" in w else h


def mlp(w, x, decide):
    h = x.flatten(1)
    for name in ("fc1", "fc2"):
        h = decide(linear(w, h, name))
    return linear(w, h, "fc3")


def lenet(w, x, decide):
    for name in ("conv1", "conv2"):
        x = decide.max_pool(decide(F.conv2d(x, w[f"{name}/w"], w[f"{name}/b"], padding=2)))
    return linear(w, decide(linear(w, x.flatten(1), "fc1")), "fc2")


def resnet20(w, x, decide):
    def normed(x, name, stride=1):
        kernel = w[f"{name}/w"]
        # Padding::same: one row and column fewer in front than PyTorch's padding has where the stride is 2.
        padding = max(0, kernel.shape[2] - stride)
        y = F.conv2d(F.pad(x, [padding // 2, padding - padding // 2] * 2), kernel, stride=stride)
        return batch_norm(w, y, f"{name}_norm")

    h = decide(normed(x, "conv1"))
    for stage in (1, 2, 3):
        for i in (1, 2, 3):
            block, stride = f"stage{stage}/block{i}", 2 if stage > 1 and i == 1 else 1
            y = normed(decide(normed(h, f"{block}/conv1", stride)), f"{block}/conv2")
            h = decide(y + shortcut_of(w, h, block, normed, stride))
    return linear(w, h.mean((2, 3)), "fc")


def resnet50(w, x, decide):
    def normed(x, name, stride=1):
        kernel = w[f"{name}/w"]
        y = F.conv2d(x, kernel, stride=stride, padding=kernel.shape[2] // 2)
        return batch_norm(w, y, f"{name}_norm")

    h = decide.max_pool(decide(normed(x, "conv1", 2)), 3, 2, 1)
    for stage, blocks in enumerate((3, 4, 6, 3), 1):
        for i in range(1, blocks + 1):
            block, stride = f"stage{stage}/block{i}", 2 if stage > 1 and i == 1 else 1
            y = decide(normed(h, f"{block}/conv1"))
            y = decide(normed(y, f"{block}/conv2", stride))
            y = normed(y, f"{block}/conv3")
            h = decide(y + shortcut_of(w, h, block, normed, stride))
    return linear(w, h.mean((2, 3)), "fc")


def vgg16(w, x, decide):
    for group, convolutions in enumerate((2, 2, 3, 3, 3), 1):
        for i in range(1, convolutions + 1):
            name = f"conv{group}_{i}"
            x = decide(F.conv2d(x, w[f"{name}/w"], w[f"{name}/b"], padding=1))
        x = decide.max_pool(x)
    h = x.flatten(1)
    for name in ("fc1", "fc2"):
        h = decide.drop_half(decide(linear(w, h, name)))
    return linear(w, h, "fc3")


def gpt(w, tokens, _, heads=4):
    def norm(x, name):
        return F.layer_norm(x, x.shape[-1:], w[f"{name}/gamma"], w[f"{name}/beta"])

    def attention(x, block):
        batch, places, width = x.shape
        q, k, v = (part.reshape(batch, places, heads, -1).transpose(1, 2) for part in linear(w, x, f"{block}/qkv").split(width, 2))
        later = torch.full((places, places), float("-inf")).triu(1)
        mixed = torch.softmax(q @ k.transpose(2, 3) / q.shape[3]**0.5 + later, 3) @ v
        return linear(w, mixed.transpose(1, 2).reshape(x.shape), f"{block}/out")

    h = w["tokens/w"][tokens.long()] + w["places/w"]
    for i in (1, 2, 3, 4):
        block = f"block{i}"
        h = h + attention(norm(h, f"{block}/norm1"), block)
        h = h + linear(w, F.gelu(linear(w, norm(h, f"{block}/norm2"), f"{block}/up")), f"{block}/down")
    return linear(w, norm(h, "norm"), "head").flatten(0, 1)


MODELS = {"mlp": mlp, "lenet": lenet, "resnet20": resnet20, "resnet50": resnet50, "vgg16": vgg16, "gpt": gpt}


def compare(name, options, folder):
    """The worst gradient (its variable, how far it is off), the worst loss, the flips of step 1 and the worst of them."""
    path = folder / f"{name}.safetensors"
    rate = RATES.get(name, 0.01) if options.rate is None else options.rate
    samples = [] if options.samples is None else [str(options.samples)]
    subprocess.run([options.program, name, str(options.steps), path, str(rate), *samples], check=True, timeout=600)
    kolo = read_safetensors(path)
    batch = kolo["samples"].double() if kolo["samples"].is_floating_point() else kolo["samples"]
    weights = {key.removeprefix("initial/"): value.double().requires_grad_() for key, value in kolo.items() if key.startswith("initial/")}
    optimizer = torch.optim.SGD(weights.values(), lr=rate, momentum=0.9)
    of_gradients, of_losses, first = {}, [], None
    for step in range(options.steps):
        optimizer.zero_grad()
        decisions = Decisions(kolo, step)
        loss = F.cross_entropy(MODELS[name](weights, batch, decisions), kolo["labels"].long())
        loss.backward()
        if step == 0:
            first = decisions
            for variable, value in weights.items():
                of_gradients[variable] = float((kolo[f"gradient/{variable}"] - value.grad).norm() / value.grad.norm())
        of_losses.append(abs(float(kolo["losses"][step]) - loss.item()) / abs(loss.item()))
        optimizer.step()
    worst = max(of_gradients, key=of_gradients.get)
    return worst, of_gradients[worst], max(of_losses), first.flips, first.worst


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=SOURCE / "build" / "release" / "bin" / "kolo-numerics")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rate", type=float, help="of SGD with momentum 0.9 (default: 0.01, of resnet50 1e-6)")
    parser.add_argument("--samples", type=int, help="of the batch, instead of as many as kolo-bench takes")
    options = parser.parse_args()
    for name in options.models.split(","):
        if name not in MODELS:
            parser.error(f'--models: there is no "{name}"; it must be of {", ".join(MODELS)}')
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    good = True
    print(f"| model | worst gradient | off by | worst loss of {options.steps} off by | decided otherwise | worst of them |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.models.split(","):
            variable, gradient, loss, flips, worst_flip = compare(name, options, pathlib.Path(folder))
            print(f"| {name} | {variable} | {gradient:.1e} | {loss:.1e} | {flips} | {worst_flip:.1e} |", flush=True)
            # Not "greater": NaN is off, too.
            good = good and gradient <= MOST_OF_A_GRADIENT and loss <= MOST_OF_A_LOSS and worst_flip <= MOST_OF_A_FLIP.get(name, 1e-4)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
