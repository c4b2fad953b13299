"""python/examples as a user starts them, on two ranks. None warns of anything in such a run."""
import glob
import os
import re
import subprocess
import sys

import pytest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
from quiet import warning

DATA = os.path.join(os.environ.get("KOLO_DATA_DIR", os.path.join(ROOT, "data")), "mnist")


def example(name, *options, module=()):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("KOLO_", "OMPI_", "PMIX_"))}
    command = [os.path.join(ROOT, "scripts", "mpirun_test"), "2", sys.executable, *module,
               os.path.join(ROOT, "python", "examples", name), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert warning(done.stdout, done.stderr) is None, done.stderr
    return done.stdout


def train(folder, epochs):
    return example("mnist.py", "--data", DATA, "--samples", "3000", "--epochs", str(epochs), "--checkpoint-dir",
                   str(folder))


def right(output):
    return [float(share) for share in re.findall(r"right ([\d.]+) %", output)]


def test_digits_are_learned_and_gone_on_with(tmp_path):
    if not os.path.isdir(DATA):
        pytest.skip(f"no digits in {DATA}; KOLO_DATA_DIR says where they are")
    first = train(tmp_path, 1)
    second = train(tmp_path, 2)
    assert "resumed" not in first and "resumed behind epoch 1" in second
    assert 30 < right(first)[0] < right(second)[0]


def test_the_benchmark_tells_images_per_second_of_both_engines():
    output = example("synthetic_benchmark.py", "--blocks", "1", "--batch-size", "2", "--batches", "2", "--rounds", "2")
    for engine in ("kolo", "gloo"):
        each, together = map(float, re.search(engine + r": ([\d.]+) images/s on each of 2 ranks, ([\d.]+) in all",
                                              output).groups())
        assert each > 0 and abs(together - 2 * each) < 0.2


def test_a_program_for_horovod_runs_unchanged():
    output = example("horovod_line.py", module=("-m", "kolo.horovod"))
    assert "2 ranks: y = 3.000 x + 1.000, loss 0.0000" in output


def test_a_loop_of_numpy_averages_its_gradients():
    assert "y = 3.000 x + 1.000, loss 0.0000" in example("numpy_loop.py")


def test_none_is_forgotten():
    with open(__file__, encoding="utf-8") as file:
        started = set(re.findall(r'example\("(\w+\.py)"', file.read()))
    assert started == {os.path.basename(path) for path in glob.glob(os.path.join(ROOT, "python", "examples", "*.py"))}


def test_ddp_and_kolo_train_the_same_weights():
    difference = re.search(r"2 ranks: the weights of DDP and kolo differ by (\S+) at most", example("from_ddp.py")).group(1)
    assert float(difference) < 1e-5
