"""The program of the design page trains on two ranks, and goes on where it stopped.

Usage: train_mnist_test.py MPIRUN_TEST TRAIN_MNIST
"""
import os
import subprocess
import sys
import tempfile
import unittest

MPIRUN_TEST, TRAIN_MNIST = sys.argv[1:3]


class TrainMnist(unittest.TestCase):
    def train(self, folder, steps, digits="generated"):
        return subprocess.run(
            [MPIRUN_TEST, "2", TRAIN_MNIST, str(steps), digits], cwd=folder, capture_output=True, text=True, timeout=100
        )

    def test_trains_and_goes_on_from_its_checkpoint(self):
        with tempfile.TemporaryDirectory() as folder:
            first = self.train(folder, 3)
            self.assertEqual(first.returncode, 0, first.stderr)
            self.assertIn("trained up to step 3", first.stdout)
            self.assertIn("model.ckpt-3.safetensors", os.listdir(os.path.join(folder, "train_logs")))
            second = self.train(folder, 5)
            self.assertEqual(second.returncode, 0, second.stderr)
            self.assertIn("model.ckpt-3", second.stderr)
            self.assertIn("trained up to step 5", second.stdout)

    def test_says_where_it_looked_for_digits(self):
        with tempfile.TemporaryDirectory() as folder:
            failed = self.train(folder, 3, os.path.join(folder, "no_digits"))
            self.assertNotEqual(failed.returncode, 0)
            self.assertIn("no_digits", failed.stderr)
            self.assertNotIn("terminate called", failed.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
