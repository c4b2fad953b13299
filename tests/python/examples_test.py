"""python/examples/mnist.py on two ranks, stopped behind an epoch and started again."""
import os
import re
import subprocess
import sys

import pytest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
DATA = os.path.join(os.environ.get("KOLO_DATA_DIR", os.path.join(ROOT, "data")), "mnist")


def train(folder, epochs):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OMPI_", "PMIX_"))}
    command = [os.path.join(ROOT, "scripts", "mpirun_test"), "2", sys.executable,
               os.path.join(ROOT, "python", "examples", "mnist.py"), "--data", DATA, "--samples", "3000",
               "--epochs", str(epochs), "--checkpoint-dir", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout


def right(output):
    return [float(share) for share in re.findall(r"right ([\d.]+) %", output)]


def test_digits_are_learned_and_gone_on_with(tmp_path):
    if not os.path.isdir(DATA):
        pytest.skip(f"no digits in {DATA}; KOLO_DATA_DIR says where they are")
    first = train(tmp_path, 1)
    second = train(tmp_path, 2)
    assert "resumed" not in first and "resumed behind epoch 1" in second
    assert 30 < right(first)[0] < right(second)[0]
