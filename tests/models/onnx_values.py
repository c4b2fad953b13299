"""Checks FOLDER/model.onnx with onnx.checker, computes it of x with NumPy, op by op, and compares with y.

Usage: onnx_values.py FOLDER    where x and y are NAME.raw, the elements, and NAME.shape
"""
import math
import os
import sys

import numpy as np
import onnx
from onnx import numpy_helper

FOLDER = sys.argv[1]
TYPES = {onnx.TensorProto.FLOAT: np.float32, onnx.TensorProto.INT32: np.int32, onnx.TensorProto.INT64: np.int64}


def tensor(name, kind):
    with open(os.path.join(FOLDER, name + ".shape"), encoding="utf-8") as file:
        shape = [int(word) for word in file.read().split()]
    return np.fromfile(os.path.join(FOLDER, name + ".raw"), dtype=kind).reshape(shape)


def attributes(node):
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute} | {"outputs": len(node.output)}


def windows(x, kernel, strides, auto_pad, value):
    """[N,C,rows,cols,kh,kw] of a window that slides over x as ONNX's auto_pad says."""
    padded = [(0, 0), (0, 0)]
    for size, window, stride in zip(x.shape[2:], kernel, strides):
        outputs = -(-size // stride)
        total = max(0, (outputs - 1) * stride + window - size) if auto_pad == b"SAME_UPPER" else 0
        padded.append((total // 2, total - total // 2))
    x = np.pad(x, padded, constant_values=value)
    view = np.lib.stride_tricks.sliding_window_view(x, tuple(kernel), axis=(2, 3))
    return view[:, :, ::strides[0], ::strides[1]]


def conv(a, x, w):
    assert a["group"] == 1 and a["kernel_shape"] == list(w.shape[2:])
    return np.einsum("ncrskl,ockl->nors", windows(x, w.shape[2:], a["strides"], a["auto_pad"], 0), w, optimize=True)


def conv_transpose(a, x, w):
    """Adds each element's image of the window at its place; then cuts what "pads" says, with zeros beyond."""
    (sr, sc), (kr, kc), (top, left, bottom, right) = a["strides"], a["kernel_shape"], a["pads"]
    assert [kr, kc] == list(w.shape[2:])
    (rows, cols), (more_rows, more_cols) = x.shape[2:], a["output_padding"]
    y = np.zeros((x.shape[0], w.shape[1], sr * (rows - 1) + kr + more_rows, sc * (cols - 1) + kc + more_cols))
    for r in range(rows):
        for c in range(cols):
            y[:, :, sr * r:sr * r + kr, sc * c:sc * c + kc] += np.einsum("nc,cokl->nokl", x[:, :, r, c], w)
    return y[:, :, top:y.shape[2] - bottom, left:y.shape[3] - right].astype(np.float32)


def places(a, size, results):
    i = np.arange(results)
    return {b"asymmetric": i * (size / results), b"half_pixel": (i + 0.5) * (size / results) - 0.5,
            b"align_corners": i * ((size - 1) / (results - 1))}[a["coordinate_transformation_mode"]]


def resize(a, x, roi, scales, sizes):
    assert roi is None and scales is None and list(sizes[:2]) == list(x.shape[:2])
    for axis in (2, 3):
        size, at = x.shape[axis], places(a, x.shape[axis], int(sizes[axis]))
        if a["mode"] == b"nearest":
            at = {b"floor": np.floor(at), b"round_prefer_ceil": np.floor(at + 0.5)}[a["nearest_mode"]]
            x = np.take(x, np.clip(at, 0, size - 1).astype(int), axis)
            continue
        assert a["mode"] == b"linear"
        below = np.floor(at).astype(int)
        share = (at - below).reshape([-1] + [1] * (3 - axis))
        x = (np.take(x, np.clip(below, 0, size - 1), axis) * (1 - share) +
             np.take(x, np.clip(below + 1, 0, size - 1), axis) * share)
    return x.astype(np.float32)


def slices(a, x, starts, ends, axes=None, steps=None):
    where = [slice(None)] * x.ndim
    for k, (start, end) in enumerate(zip(starts, ends)):
        axis, step = int(axes[k]) if axes is not None else k, int(steps[k]) if steps is not None else 1
        before_first = step < 0 and end < -x.shape[axis]
        where[axis] = slice(int(start), None if before_first else int(end), step)
    return x[tuple(where)]


def max_pool(a, x):
    return windows(x, a["kernel_shape"], a["strides"], a["auto_pad"], -np.inf).max(axis=(4, 5))


def average_pool(a, x):
    assert not a.get("count_include_pad")
    counted = windows(np.ones_like(x), a["kernel_shape"], a["strides"], a["auto_pad"], 0).sum(axis=(4, 5))
    return windows(x, a["kernel_shape"], a["strides"], a["auto_pad"], 0).sum(axis=(4, 5)) / counted


def batch_normalization(a, x, scale, offset, mean, variance):
    scale, offset, mean, variance = (v.reshape([-1] + [1] * (x.ndim - 2)) for v in (scale, offset, mean, variance))
    return (x - mean) / np.sqrt(variance + a["epsilon"]) * scale + offset


def layer_normalization(a, x, scale, offset):
    assert a["axis"] == -1
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + a["epsilon"]) * scale + offset


def softmax(a, x):
    e = np.exp(x - x.max(a["axis"], keepdims=True))
    return e / e.sum(a["axis"], keepdims=True)


def reshape(a, x, shape):
    shape = [int(d) for d in shape]
    if not a.get("allowzero"):
        shape = [x.shape[i] if d == 0 else d for i, d in enumerate(shape)]
    return x.reshape(shape)


def split(a, x, sizes=None):
    return np.split(x, a["outputs"] if sizes is None else np.cumsum(sizes)[:-1], axis=a["axis"])


def unsqueeze(a, x, axes):
    return np.expand_dims(x, tuple(int(axis) for axis in axes))


def pad(a, x, pads, value):
    half = len(pads) // 2
    return np.pad(x, list(zip(pads[:half], pads[half:])), constant_values=value)


def reduction(function):
    def computed(a, x, axes=None):
        axes = a.get("axes") if axes is None else axes
        return function(x, axis=None if axes is None else tuple(int(i) for i in axes), keepdims=bool(a["keepdims"]))
    return computed


def selu(a, x):
    alpha, gamma = 1.67326319217681884765625, 1.05070102214813232421875  # ONNX's defaults
    return gamma * np.where(x > 0, x, alpha * np.expm1(x))


OPS = {
    "Abs": lambda a, x: np.abs(x),
    "Add": lambda a, x, y: x + y,
    "AveragePool": average_pool,
    "BatchNormalization": batch_normalization,
    "Clip": lambda a, x, low, high: np.clip(x, low, high),
    "Concat": lambda a, *xs: np.concatenate(xs, a["axis"]),
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "Elu": lambda a, x: np.where(x > 0, x, a["alpha"] * np.expm1(x)),
    "Equal": lambda a, x, y: x == y,
    "Erf": lambda a, x: np.vectorize(math.erf, otypes=[np.float32])(x),
    "Expand": lambda a, x, shape: x * np.ones([int(d) for d in shape], x.dtype),
    "Gather": lambda a, x, indices: np.take(x, indices, axis=a["axis"]),
    "Greater": lambda a, x, y: x > y,
    "GreaterOrEqual": lambda a, x, y: x >= y,
    "Identity": lambda a, x: x,
    "LayerNormalization": layer_normalization,
    "LeakyRelu": lambda a, x: np.where(x > 0, x, a["alpha"] * x),
    "Less": lambda a, x, y: x < y,
    "LessOrEqual": lambda a, x, y: x <= y,
    "LogSoftmax": lambda a, x: np.log(softmax(a, x)),
    "MatMul": lambda a, x, y: x @ y,
    "Max": lambda a, x, y: np.maximum(x, y),
    "MaxPool": max_pool,
    "Min": lambda a, x, y: np.minimum(x, y),
    "Mul": lambda a, x, y: x * y,
    "Neg": lambda a, x: -x,
    "Pow": lambda a, x, y: np.power(x, y),
    "Pad": pad,
    "ReduceMean": reduction(np.mean),
    "ReduceSum": reduction(np.sum),
    "Relu": lambda a, x: np.maximum(x, 0),
    "Reshape": reshape,
    "Resize": resize,
    "Selu": selu,
    "Shape": lambda a, x: np.array(x.shape[a.get("start", 0):a.get("end")], np.int64),
    "Sigmoid": lambda a, x: 1 / (1 + np.exp(-x)),
    "Slice": slices,
    "Softmax": softmax,
    "Softplus": lambda a, x: np.log1p(np.exp(x)),
    "Split": split,
    "Sqrt": lambda a, x: np.sqrt(x),
    "Squeeze": lambda a, x, axes: np.squeeze(x, tuple(int(axis) for axis in axes)),
    "Sub": lambda a, x, y: x - y,
    "Tanh": lambda a, x: np.tanh(x),
    "Tile": lambda a, x, repeats: np.tile(x, [int(r) for r in repeats]),
    "Transpose": lambda a, x: np.transpose(x, a["perm"]),
    "Unsqueeze": unsqueeze,
    "Where": lambda a, c, x, y: np.where(c, x, y),
}

model = onnx.load(os.path.join(FOLDER, "model.onnx"))
onnx.checker.check_model(model, full_check=True)
values = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
(given,), (wanted,) = model.graph.input, model.graph.output
assert given.name == "x" and given.type.tensor_type.shape.dim[0].dim_param == "N", given
values["x"] = tensor("x", TYPES[given.type.tensor_type.elem_type])
for node in model.graph.node:
    results = OPS[node.op_type](attributes(node), *(values[name] if name else None for name in node.input))
    for name, result in zip(node.output, results if len(node.output) > 1 else [results]):
        values[name] = result
found, expected = values[wanted.name], tensor("y", np.float32)
assert found.shape == expected.shape, (found.shape, expected.shape)
worst = np.abs(found - expected).max() / np.abs(expected).max()
print(f"{len(model.graph.node)} nodes, {found.size} values, the largest difference is {worst:.2g} of the largest")
sys.exit(0 if worst < 1e-5 else f"the largest difference is {worst:.3g} of the largest value")
