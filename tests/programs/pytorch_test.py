#!/usr/bin/python3
"""Weights of a PyTorch program in kolo-train, and kolo's checkpoints in PyTorch. Skipped without Debian's python3-torch."""
import json
import struct
import sys
import unittest

from data_test import npy
from programs import ProgramTest, run

try:
    import torch
    from torch import nn
except ImportError:
    print("skipped: this Python has no torch (Debian: python3-torch)")
    sys.exit(77)

TYPES = {torch.float32: "F32"}
# What a layer of PyTorch's is called there, and in kolo's lenet.
LAYERS = {"0": "conv1", "3": "conv2", "7": "fc1", "9": "fc2"}


def lenet():
    torch.manual_seed(1)
    return nn.Sequential(nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3136, 1024), nn.ReLU(), nn.Linear(1024, 10))


def names_of(net):
    """kolo's variable → PyTorch's tensor, transposed where PyTorch keeps a matrix the other way round."""
    names = {}
    for theirs, ours in LAYERS.items():
        names[f"{ours}/w"] = f"{theirs}.weight" + (".T" if net.state_dict()[f"{theirs}.weight"].dim() == 2 else "")
        names[f"{ours}/b"] = f"{theirs}.bias"
    return names


def save(path, tensors):
    """As the safetensors package for Python does, which Debian has not."""
    header, data = {}, b""
    for name, tensor in tensors.items():
        piece = tensor.detach().contiguous().numpy().tobytes()
        header[name] = {"dtype": TYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(piece)]}
        data += piece
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def load(path):
    data = path.read_bytes()
    length, = struct.unpack("<Q", data[:8])
    tensors = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            tensors[name] = torch.frombuffer(bytearray(data[begin:end]), dtype=torch.float32).reshape(entry["shape"])
    return tensors


class PyTorch(ProgramTest):
    def train(self, folder, steps, *options):
        return self.assert_ok(run("kolo-train", "--model", "lenet", "--data", "generated", "--optimizer", "sgd", "--threads", 1, "--steps", steps,
                                  "--json", "--log-steps", 1, "--checkpoint-dir", folder, *options))

    def begin_with(self, net):
        save(self.folder / "net.safetensors", net.state_dict())
        (self.folder / "names.json").write_text(json.dumps(names_of(net)))
        return "--init-from", self.folder / "net.safetensors", "--init-names", self.folder / "names.json"

    def test_a_state_dict_begins_a_training_and_its_checkpoint_goes_back(self):
        net = lenet()
        # So small a rate leaves the weights where they are.
        self.train(self.folder / "ck", 1, *self.begin_with(net), "--learning-rate", 1e-30)
        held = load(self.folder / "ck" / "model.ckpt-1.safetensors")
        for ours, theirs in names_of(net).items():
            tensor = net.state_dict()[theirs.removesuffix(".T")]
            self.assertTrue(torch.equal(held[ours], tensor.T if theirs.endswith(".T") else tensor), ours)

    def test_predictions_are_those_of_pytorch_with_the_same_weights(self):
        net = lenet()
        self.train(self.folder / "ck", 1, *self.begin_with(net), "--learning-rate", 1e-30)
        pixels = torch.randint(0, 256, (5, 1, 28, 28), dtype=torch.uint8)
        (self.folder / "x.npy").write_bytes(npy("|u1", "(5, 1, 28, 28)", pixels.numpy().tobytes()))
        with torch.no_grad():
            shares = torch.softmax(net(pixels / 255), 1)
        lines = self.assert_ok(run("kolo-train", "--checkpoint-dir", self.folder / "ck", "--predict", self.folder / "x.npy", "--top", 10, "--json", "--threads", 1)).out
        for line, row in zip(lines.splitlines(), shares, strict=True):
            top = {int(one["class"]): one["share"] for one in json.loads(line)["top"]}
            torch.testing.assert_close(torch.tensor([top[i] for i in range(10)]), row, rtol=0, atol=2e-5)
            self.assertEqual(int(json.loads(line)["class"]), row.argmax().item())

    def test_a_checkpoint_that_went_through_pytorch_trains_on_as_if_it_had_not(self):
        self.train(self.folder / "ck", 30)
        trained = load(self.folder / "ck" / "model.ckpt-30.safetensors")
        net = lenet()
        net.load_state_dict({theirs.removesuffix(".T"): trained[ours].T if theirs.endswith(".T") else trained[ours]
                             for ours, theirs in names_of(net).items()})
        there_and_back = self.train(self.folder / "back", 1, *self.begin_with(net), "--seed", 3)
        at_home = self.train(self.folder / "home", 1, "--init-from", self.folder / "ck", "--seed", 3)
        self.assertEqual(there_and_back.events[0]["loss"], at_home.events[0]["loss"])


class SeveralLabels(ProgramTest):
    """A step of an mlp by --loss bce and by torch.nn.BCEWithLogitsLoss, and what it then says of the samples."""

    def net(self):
        torch.manual_seed(2)
        return nn.Sequential(nn.Linear(3, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 4))

    def test_are_learnt_as_in_pytorch(self):
        net, names = self.net(), {}
        for theirs, ours in {"0": "fc1", "2": "fc2", "4": "fc3"}.items():
            names[f"{ours}/w"], names[f"{ours}/b"] = f"{theirs}.weight.T", f"{theirs}.bias"
        save(self.folder / "net.safetensors", net.state_dict())
        (self.folder / "names.json").write_text(json.dumps(names))
        x = torch.randn(32, 3)
        y = (torch.rand(32, 4) < 0.3).float()
        for split in ("train", "test"):
            (self.folder / f"x_{split}.npy").write_bytes(npy("<f4", "(32, 3)", x.numpy().tobytes()))
            (self.folder / f"y_{split}.npy").write_bytes(npy("|u1", "(32, 4)", y.to(torch.uint8).numpy().tobytes()))
        loss = nn.BCEWithLogitsLoss()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
        for _ in range(3):
            optimizer.zero_grad()
            before = loss(net(x), y)
            before.backward()
            optimizer.step()
        for ranks in (1, 2):
            ck = self.folder / f"ck{ranks}"
            done = self.assert_ok(run("kolo-train", "--model", "mlp", "--data", self.folder, "--init-from", self.folder / "net.safetensors", "--init-names",
                                      self.folder / "names.json", "--optimizer", "sgd", "--learning-rate", 0.5, "--steps", 3, "--batch-size", 32 // ranks,
                                      "--checkpoint-dir", ck, "--threads", 1, "--json", ranks=ranks)).done
            with torch.no_grad():
                logits = net(x)
            self.assertAlmostEqual(done["loss"], before.item(), places=5)
            self.assertAlmostEqual(done["test_loss"], loss(logits, y).item(), places=5)
            self.assertEqual(done["test_exact_match"], ((logits > 0) == (y == 1)).all(1).float().mean().item())
            lines = self.assert_ok(run("kolo-train", "--checkpoint-dir", ck, "--predict", self.folder / "x_test.npy", "--json", "--threads", 1, ranks=ranks)).out
            found = torch.tensor([[one["probability"] for one in json.loads(line)["labels"]] for line in lines.splitlines()])
            torch.testing.assert_close(found, torch.sigmoid(logits), rtol=0, atol=2e-5)


if __name__ == "__main__":
    unittest.main()
