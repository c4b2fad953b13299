"""The Keras examples train: on eight virtual GPUs, with two inputs and outputs, on two ranks.

Usage: keras_examples_test.py MPIRUN_TEST FOLDER_OF_PROGRAMS
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

MPIRUN_TEST, PROGRAMS = sys.argv[1:3]


class KerasExamples(unittest.TestCase):
    def run_in(self, folder, *command, gpus="0"):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("KOLO_", "CUDA_"))}
        return subprocess.run(command, cwd=folder, env={**kept, "KOLO_VIRTUAL_GPUS": gpus}, capture_output=True,
                              text=True, timeout=280)

    def number(self, done, pattern):
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return float(re.search(pattern, done.stdout).group(1))

    def test_eight_gpus_share_a_batch_out(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.run_in(folder, os.path.join(PROGRAMS, "keras_multi_gpu"), "1", "generated", gpus="8")
            self.assertGreater(self.number(done, r"accuracy ([\d.]+)\n$"), 0.5)
            self.assertEqual(sorted(os.listdir(folder)), ["multi_gpu.json", "multi_gpu.safetensors"])

    def test_without_gpus_it_says_how_to_run_it(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.run_in(folder, os.path.join(PROGRAMS, "keras_multi_gpu"), "1", "generated")
            self.assertEqual(done.returncode, 1)
            self.assertIn("KOLO_VIRTUAL_GPUS=8 keras_multi_gpu\n", done.stderr)

    def test_two_inputs_and_outputs_share_a_layer(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.run_in(folder, os.path.join(PROGRAMS, "keras_functional"), "1", "generated")
            self.assertGreater(self.number(done, r"test digit_acc ([\d.]+)\n"), 0.5)
            self.assertIn("Connected to", done.stdout)
            self.assertIn("test distance_loss", done.stdout)

    def test_two_ranks_train_kerass_network(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.run_in(folder, MPIRUN_TEST, "2", os.path.join(PROGRAMS, "keras_mnist"), "1", "generated")
            self.assertGreater(self.number(done, r"accuracy ([\d.]+)\n$"), 0.5)
            self.assertIn("checkpoint-1.safetensors", os.listdir(folder))
            self.assertRegex(done.stdout, r"\[={30}\]")
            self.assertNotIn("ETA", done.stdout, "mpirun gives ranks a terminal, but this is a pipe")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
