"""GPUs that are not there: the plug-in's code as it is, over a table of CUDA's functions that checks each call and ends the
process where one is wrong, or where something is not given back (exit code 70)."""
import os
import pathlib
import random
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "programs"))
from programs import ProgramTest, run  # noqa: E402

FAKE = pathlib.Path(os.environ["KOLO_FAKE_CUDA"])
CHECKER = os.environ["KOLO_ORDER_CHECKER"]
DRIVER = os.environ["KOLO_FAKE_DRIVER"]  # the folder of a libcuda.so.1
GPU = {
    "KOLO_CUDA_PLUGIN": FAKE / "libkolo_cuda_fake.so",
    "KOLO_CUDA_LIBRARIES": FAKE / "libraries",
    "LD_LIBRARY_PATH": f"{DRIVER}:{os.environ.get('LD_LIBRARY_PATH', '')}",
}
SMALL = ("--json", "--log-steps", 1, "--threads", 1, "--batch-size", 8)
# Steps so small that the last bits of gradients, which are added in another order than the CPU's, stay last bits.
CALM = ("--optimizer", "sgd", "--learning-rate", 0.001)
HOSTS_RATE = ("--schedule", "cosine")  # which the host computes of the GPU's step: a fence waits for that


WHOLE = os.environ.get("KOLO_TEST_WHOLE") == "1"  # by night: sweeps try every place, not some of each kind


def of_each_kind(calls, first=1, last=None):
    """Numbers, from 1, of the calls from `first` to `last` that a sweep lets fail: of each function the first, the one in the
    middle and the last, by night all."""
    places = {}
    for k in range(first, len(calls) + 1 if last is None else last + 1):
        places.setdefault(calls[k - 1], []).append(k)
    return sorted({k for of_name in places.values() for k in (of_name if WHOLE else (of_name[0], of_name[len(of_name) // 2], of_name[-1]))})


def write_digits(folder, count=128):
    """Images with a bright bar where the label says, and no test samples: host twins are slow to evaluate."""
    chance = random.Random(1)
    labels = bytes(chance.randrange(10) for _ in range(count))
    pixels = (255 if i // 28 // 3 == label else chance.randrange(64) for label in labels for i in range(28 * 28))
    (folder / "train-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, count) + labels)
    (folder / "train-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 2051, count, 28, 28) + bytes(pixels))


class FakeGpuTest(ProgramTest):
    def setUp(self):
        super().setUp()
        write_digits(self.folder)

    def train(self, device, *args, ranks=1, **env):
        gpu = GPU if device == "gpu" else {}
        return run("kolo-train", "--data", self.folder, *SMALL, "--device", device, *args, ranks=ranks, **{**gpu, **env})

    def losses(self, *args, **options):
        result = self.assert_ok(self.train(*args, **options))
        return {e["global_step"]: e["loss"] for e in result.events if e["event"] == "progress"}

    def assert_close(self, ours, theirs, delta=1e-4):
        self.assertEqual(ours.keys(), theirs.keys())
        for step, loss in ours.items():
            self.assertAlmostEqual(loss / theirs[step], 1, delta=delta, msg=f"step {step}")

    def assert_ordered(self, log, fences):
        """The order checker finds nothing in the log, and something where a wait is taken away."""
        checked = subprocess.run([CHECKER, log], capture_output=True, text=True, timeout=60)
        self.assertEqual((checked.returncode, checked.stdout), (0, ""))
        lines = log.read_text().splitlines()
        waits = [i for i, line in enumerate(lines) if line.startswith("wait\tGPU")]
        of_fences = [i for i, line in enumerate(lines) if line.startswith("begin") and "\tend:" in line
                     and lines[i + 1].startswith("wait")]
        self.assertGreater(len(waits), 0)
        self.assertEqual(len(of_fences) > 0, fences)
        without = self.folder / "without"
        for i in waits + of_fences:
            nothing = [lines[i].rpartition("\t")[0] + "\tnothing"] if i in of_fences else []
            without.write_text("\n".join(lines[:i] + nothing + lines[i + 1:]))
            self.assertEqual(subprocess.run([CHECKER, without], capture_output=True, timeout=60).returncode, 1, lines[i])
