"""PyTorch's state_dicts in kolo's checkpoints, and a network that kolo-train has trained in PyTorch."""
import json
import os
import subprocess

import pytest
import torch

import kolo
import kolo.torch as hvd

NAMES = {"conv1/w": "conv1.weight", "conv1/b": "conv1.bias", "conv2/w": "conv2.weight", "conv2/b": "conv2.bias",
         "fc1/w": "fc1.weight.T", "fc1/b": "fc1.bias", "fc2/w": "fc2.weight.T", "fc2/b": "fc2.bias"}


class Lenet(torch.nn.Module):
    """kolo's, in PyTorch's words."""

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = torch.nn.Conv2d(1, 32, 5, padding=2), torch.nn.Conv2d(32, 64, 5, padding=2)
        self.fc1, self.fc2 = torch.nn.Linear(64 * 7 * 7, 1024), torch.nn.Linear(1024, 10)

    def forward(self, images):
        h = torch.nn.functional.max_pool2d(self.conv1(images).relu(), 2)
        h = torch.nn.functional.max_pool2d(self.conv2(h).relu(), 2)
        return self.fc2(self.fc1(h.flatten(1)).relu())


def same_bits(a, b):
    return (sorted(a) == sorted(b) and
            all(a[name].dtype == b[name].dtype and a[name].shape == b[name].shape and
                a[name].contiguous().view(torch.uint8).equal(b[name].contiguous().view(torch.uint8))
                for name in a if a[name].dim()))


def kolo_train(*options):
    program = os.path.join(os.environ["KOLO_BIN_DIR"], "kolo-train")
    if not os.path.exists(program):
        pytest.skip(f"{program} is not built")
    return subprocess.run([program, "--model", "lenet", "--data", "generated", "--batch-size", "8", "--seed", "3", *options],
                          capture_output=True, text=True, check=True)


def test_a_state_dict_goes_to_kolo_and_back_bit_by_bit(tmp_path):
    torch.manual_seed(1)
    state = Lenet().state_dict()
    hvd.save_checkpoint(tmp_path / "model.ckpt-0", state, 0, NAMES)
    own = kolo.load_checkpoint(tmp_path)
    assert sorted(own) == sorted(NAMES)
    assert own["fc1/w"].shape == (64 * 7 * 7, 1024) and own["conv1/w"].shape == (32, 1, 5, 5)
    assert (own["fc1/w"].T == state["fc1.weight"].numpy()).all()
    assert same_bits(hvd.load_checkpoint(tmp_path, NAMES), state)


def test_types_and_scalars_stay(tmp_path):
    state = {"half": torch.arange(4).to(torch.bfloat16).reshape(2, 2), "f16": torch.ones(3, dtype=torch.float16),
             "num_batches_tracked": torch.tensor(7), "mask": torch.tensor([True, False])}
    hvd.save_checkpoint(tmp_path / "m", state, names={"h": "half.T"})
    loaded = hvd.load_checkpoint(tmp_path / "m", {"h": "half.T"})
    assert same_bits(loaded, state)
    assert loaded["num_batches_tracked"].shape == () and loaded["num_batches_tracked"].item() == 7


def test_what_kolo_train_has_trained_runs_in_pytorch_and_comes_back(tmp_path):
    kolo_train("--steps", "2", "--checkpoint-dir", str(tmp_path / "ck"))
    own = kolo.load_checkpoint(tmp_path / "ck")
    others = {name: "" for name in own if name not in NAMES}  # the step and the optimizer's state
    model = Lenet()
    model.load_state_dict(hvd.load_checkpoint(tmp_path / "ck", {**NAMES, **others}))
    assert (model.fc1.weight.detach().numpy() == own["fc1/w"].T).all()
    assert (model.conv2.weight.detach().numpy() == own["conv2/w"]).all()
    (tmp_path / "back").mkdir()
    hvd.save_checkpoint(tmp_path / "back" / "model.ckpt-0", model.state_dict(), 0, NAMES)
    back = kolo.load_checkpoint(tmp_path / "back")
    assert all(back[name].tobytes() == own[name].tobytes() for name in NAMES)


def test_the_same_names_are_kolo_trains(tmp_path):
    torch.manual_seed(2)
    state = Lenet().state_dict()
    hvd.save_checkpoint(tmp_path / "theirs", state)
    (tmp_path / "names.json").write_text(json.dumps(NAMES))
    kolo_train("--steps", "1", "--learning-rate", "1e-30", "--init-from", str(tmp_path / "theirs"), "--init-names",
               str(tmp_path / "names.json"), "--checkpoint-dir", str(tmp_path / "ck"))
    trained = hvd.load_checkpoint(tmp_path / "ck", {**NAMES, "global_step": ""})
    assert all(trained[name].equal(state[name]) for name in state)


def test_an_elastic_state_makes_its_directory(rank, tmp_path):
    folder = tmp_path / "not" / "there"
    hvd.elastic.ObjectState(str(folder), step=3).commit()
    assert (folder / "elastic_state.pt").exists() == (rank == 0)
