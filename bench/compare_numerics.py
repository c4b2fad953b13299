#!/usr/bin/python3
"""Training steps of kolo beside PyTorch's from the same weights, on the same batch: gradients of step 1 and the losses.

  bench/compare_numerics.py [--program build/release/bin/kolo-numerics] [--models mlp,lenet,resnet20,gpt] [--steps 20]

Prints a Markdown table: the largest ||kolo's gradient - PyTorch's|| / ||PyTorch's|| of a model's variables, and the largest
relative difference of a loss. Exit code 1 where a gradient is off by more than 1e-4 or a loss by more than 1e-3, 77 without PyTorch
(Debian: python3-torch). What a variable is called and how it lies in memory is kolo's way.
"""
import argparse
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
MOST_OF_A_GRADIENT, MOST_OF_A_LOSS = 1e-4, 1e-3
TYPES = {"F32": torch.float32, "I32": torch.int32}


def read_safetensors(path):
    data = path.read_bytes()
    length, = struct.unpack("<Q", data[:8])
    tensors = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        if name != "__metadata__":
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            tensors[name] = torch.frombuffer(bytearray(data[begin:end]), dtype=TYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensors


def linear(w, x, name):
    y = x @ w[f"{name}/w"]
    return y + w[f"{name}/b"] if f"{name}/b" in w else y


def mlp(w, x):
    h = x.flatten(1)
    for name in ("fc1", "fc2"):
        h = F.relu(linear(w, h, name))
    return linear(w, h, "fc3")


def lenet(w, x):
    for name in ("conv1", "conv2"):
        x = F.max_pool2d(F.relu(F.conv2d(x, w[f"{name}/w"], w[f"{name}/b"], padding=2)), 2)
    return linear(w, F.relu(linear(w, x.flatten(1), "fc1")), "fc2")


def resnet20(w, x):
    def normed(x, name, stride=1):
        kernel = w[f"{name}/w"]
        # Padding::same: one row and column fewer in front than PyTorch's padding has where the stride is 2.
        padding = max(0, kernel.shape[2] - stride)
        y = F.conv2d(F.pad(x, [padding // 2, padding - padding // 2] * 2), kernel, stride=stride)
        return F.batch_norm(y, None, None, w[f"{name}_norm/gamma"], w[f"{name}_norm/beta"], training=True, eps=1e-5)

    h = F.relu(normed(x, "conv1"))
    for stage in (1, 2, 3):
        for i in (1, 2, 3):
            block, stride = f"stage{stage}/block{i}", 2 if stage > 1 and i == 1 else 1
            y = normed(F.relu(normed(h, f"{block}/conv1", stride)), f"{block}/conv2")
            h = F.relu(y + (normed(h, f"{block}/shortcut", stride) if f"{block}/shortcut/w" in w else h))
    return linear(w, h.mean((2, 3)), "fc")


def gpt(w, tokens, heads=4):
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


MODELS = {"mlp": mlp, "lenet": lenet, "resnet20": resnet20, "gpt": gpt}


def compare(name, program, steps, folder):
    """The worst gradient (its variable, how far it is off), and the worst loss."""
    path = folder / f"{name}.safetensors"
    subprocess.run([program, name, str(steps), path], check=True, timeout=600)
    kolo = read_safetensors(path)
    weights = {key.removeprefix("initial/"): value.clone().requires_grad_() for key, value in kolo.items() if key.startswith("initial/")}
    optimizer = torch.optim.SGD(weights.values(), lr=0.01, momentum=0.9)
    of_gradients, of_losses = {}, []
    for step in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(MODELS[name](weights, kolo["samples"]), kolo["labels"].long())
        loss.backward()
        if step == 0:
            for variable, value in weights.items():
                of_gradients[variable] = float((kolo[f"gradient/{variable}"] - value.grad).norm() / value.grad.norm())
        of_losses.append(abs(float(kolo["losses"][step]) - loss.item()) / abs(loss.item()))
        optimizer.step()
    worst = max(of_gradients, key=of_gradients.get)
    return worst, of_gradients[worst], max(of_losses)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=SOURCE / "build" / "release" / "bin" / "kolo-numerics")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    good = True
    print(f"| model | worst gradient | off by | worst loss of {options.steps} off by |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.models.split(","):
            variable, gradient, loss = compare(name, options.program, options.steps, pathlib.Path(folder))
            print(f"| {name} | {variable} | {gradient:.1e} | {loss:.1e} |", flush=True)
            # Not "greater": NaN is off, too.
            good = good and gradient <= MOST_OF_A_GRADIENT and loss <= MOST_OF_A_LOSS
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
