#!/usr/bin/env python3
"""A training in PyTorch over two hosts, whose rank is killed: kolorun starts it again, and it resumes."""
import os
import pathlib
import subprocess
import tempfile
import unittest

import hosts

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = os.environ.get("KOLO_TEST_PYTHON", "")
DATA = pathlib.Path(os.environ.get("KOLO_DATA_DIR", ROOT / "data")) / "mnist"


class PythonOverHosts(unittest.TestCase):
    def test_resumes_after_a_rank_was_killed(self):
        if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True, check=False).returncode:
            self.skipTest(f"{PYTHON} has no PyTorch; scripts/install_deps.sh --python installs it")
        if not DATA.is_dir():
            self.skipTest(f"no digits in {DATA}; KOLO_DATA_DIR says where they are")
        with tempfile.TemporaryDirectory() as folder, hosts.Hosts(2, slots=1) as cluster:
            result = cluster.run([
                hosts.BIN / "kolorun", "-n", "2", "--hostfile", cluster.hostfile, "--restarts", "1", "-x", "PYTHONPATH",
                "-x", "OMP_NUM_THREADS", "--",
                PYTHON, ROOT / "tests/hosts/killed_once.py", folder, ROOT / "python/examples/mnist.py", "--data", DATA,
                "--samples", "1000", "--epochs", "2", "--checkpoint-dir", folder], deadline=240)
            self.assertEqual(result.code, 0, result)
            self.assertIn("resumed behind epoch 1", result.out)
            self.assertIn("epoch 2:", result.out)


if __name__ == "__main__":
    hosts.main()
