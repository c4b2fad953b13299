"""Where the tests of kolo.torch have their tensors: on the device that TEST_DEVICE names, else on a GPU of PyTorch's
where there is one, else on the host. "stand-in" is the GPU of stand_in_cuda.py.

A test file that imports `on_device` runs there: what it makes without naming a device lies there, as under
torch.set_default_device()."""
import contextlib
import os

import pytest
import torch

import kolo
import stand_in_cuda

DEVICE = os.environ.get("TEST_DEVICE") or ("cuda" if torch.cuda.is_available() else "cpu")


def here(tensor):
    """A tensor of the host, on the device."""
    return stand_in_cuda.on_gpu(tensor) if DEVICE == "stand-in" else tensor.to(DEVICE)


@pytest.fixture(autouse=True)
def on_device(started):
    if DEVICE == "stand-in":
        with pytest.MonkeyPatch.context() as patch, stand_in_cuda.played(patch), stand_in_cuda.Factories():
            yield
        return
    if DEVICE.startswith("cuda"):
        torch.cuda.set_device(kolo.local_rank() % torch.cuda.device_count())
    with torch.device(DEVICE) if DEVICE != "cpu" else contextlib.nullcontext():
        yield


def not_on_gpus(reason):
    """Marks a test of what is true of the host's tensors alone."""
    return pytest.mark.skipif(DEVICE != "cpu", reason=f"on {DEVICE}: {reason}")
