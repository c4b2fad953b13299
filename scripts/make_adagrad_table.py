#!/usr/bin/python3
"""Makes tests/optimizer/adagrad_table.json: the losses of the MLP under PyTorch's Adagrad, for kolo's to be compared with.

Usage: scripts/make_adagrad_table.py [--data DIR] [--weights FILE] [--output FILE]
Needs python3-torch and python3-numpy. The tests read the table and need neither.

Model: 784-1024-1024-10 with relu, mean cross-entropy. Optimizer: torch.optim.Adagrad(lr=0.01,
initial_accumulator_value=0.1, eps=0). 50 steps of 128 samples: the first 6,400 training digits in the order of the file,
pixels / 255. Each loss is that of a step's batch before its update.

The first weights come from a formula, so that nothing of 7 MB need be stored. For tensor t (fc1/w, fc1/b, fc2/w, fc2/b,
fc3/w, fc3/b are 0 to 5) and element i (row by row, dense weights as [inputs, outputs]):
  z = SplitMix64's output for the state (2^32 t + i + 1) * 0x9E3779B97F4A7C15
  weight = ((z >> 40) - 2^23) / 2^23 * f32(sqrt(6 / (inputs + outputs)))     in f32; exact but for the last product
  bias = 0
--weights also writes them as safetensors.
"""
import argparse
import gzip
import json
import os
import struct
import sys
import zlib

import numpy
import torch

STEPS, BATCH = 50, 128
LAYERS = [("fc1", 784, 1024), ("fc2", 1024, 1024), ("fc3", 1024, 10)]
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")


def first_weights(tensor, inputs, outputs):
    state = numpy.arange(1, inputs * outputs + 1, dtype=numpy.uint64) + numpy.uint64(tensor << 32)
    z = state * numpy.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    z ^= z >> numpy.uint64(31)
    unit = ((z >> numpy.uint64(40)).astype(numpy.int64) - 2**23).astype(numpy.float32) / numpy.float32(2**23)
    bound = numpy.float32(numpy.sqrt(6.0 / (inputs + outputs)))
    return (unit * bound).reshape(inputs, outputs)


def first_values():
    values = {}
    for index, (name, inputs, outputs) in enumerate(LAYERS):
        values[name + "/w"] = first_weights(2 * index, inputs, outputs)
        values[name + "/b"] = numpy.zeros(outputs, numpy.float32)
    return values


def write_safetensors(path, values):
    header, offset = {}, 0
    for name, value in sorted(values.items()):
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [offset, offset + value.nbytes]}
        offset += value.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, value in sorted(values.items()):
            file.write(value.astype("<f4").tobytes())


def read_idx(path):
    with gzip.open(path) as file:
        content = file.read()
    dimensions = struct.unpack(f">{content[3]}I", content[4 : 4 + 4 * content[3]])
    return numpy.frombuffer(content, numpy.uint8, offset=4 + 4 * content[3]).reshape(dimensions)


def losses_of(images, labels, values):
    parameters = {name: torch.nn.Parameter(torch.from_numpy(value.copy())) for name, value in values.items()}
    optimizer = torch.optim.Adagrad(parameters.values(), lr=0.01, initial_accumulator_value=0.1, eps=0)
    losses = []
    for step in range(STEPS):
        samples = slice(step * BATCH, (step + 1) * BATCH)
        x = torch.from_numpy(images[samples].reshape(BATCH, 784).astype(numpy.float32) / numpy.float32(255))
        y = torch.from_numpy(labels[samples].astype(numpy.int64))
        for name, _, _ in LAYERS:
            x = x @ parameters[name + "/w"] + parameters[name + "/b"]
            if name != LAYERS[-1][0]:
                x = torch.relu(x)
        loss = torch.nn.functional.cross_entropy(x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(round(float(loss.detach()), 6))
    return losses


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", default=os.path.join(ROOT, "../shared/data/mnist"))
    parser.add_argument("--weights", help="also write the first weights to this safetensors file")
    parser.add_argument("--output", default=os.path.join(ROOT, "tests/optimizer/adagrad_table.json"))
    options = parser.parse_args()

    torch.set_num_threads(1)
    images = read_idx(os.path.join(options.data, "train-images-idx3-ubyte.gz"))
    labels = read_idx(os.path.join(options.data, "train-labels-idx1-ubyte.gz"))
    values = first_values()
    if options.weights:
        write_safetensors(options.weights, values)
    table = {
        "source": f"scripts/make_adagrad_table.py, PyTorch {torch.__version__}, one thread",
        "pixels_crc32": zlib.crc32(images[: STEPS * BATCH].tobytes()),
        "losses": losses_of(images, labels, values),
    }
    with open(options.output, "w", encoding="utf-8") as file:
        json.dump(table, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    sys.exit(main())
