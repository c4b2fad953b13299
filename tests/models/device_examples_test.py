"""The examples on devices print what they say, on virtual GPUs.

Usage: device_examples_test.py FOLDER_OF_PROGRAMS
"""
import os
import subprocess
import sys
import unittest

PROGRAMS = sys.argv[1]
LOCAL = "/job:localhost/replica:0/task:0/device:"


def run(example, virtual_gpus="0"):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("KOLO_", "CUDA_"))}
    return subprocess.run([os.path.join(PROGRAMS, example)], env={**kept, "KOLO_VIRTUAL_GPUS": virtual_gpus},
                          capture_output=True, text=True, timeout=60)


class DeviceExamples(unittest.TestCase):
    def lines(self, done):
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout.splitlines()

    def test_towers_of_two_gpus_are_added_on_the_cpu(self):  # row 35 of the worked examples
        done = run("multi_tower", "4")
        lines = self.lines(done)
        self.assertEqual(lines[-1], "[[44,56],[98,128]]")
        self.assertEqual(lines[0], "Device mapping:")
        self.assertIn(f"{LOCAL}GPU:3 -> device: 3, name: virtual GPU, pci bus id: 0000:03:00.0", lines)
        self.assertIn(f"tower/product: (MatMul): {LOCAL}GPU:2", lines)
        self.assertIn(f"tower_1/product: (MatMul): {LOCAL}GPU:3", lines)
        self.assertIn(f"tower_1/a: (Const): {LOCAL}GPU:3", lines)
        self.assertIn(f"sum: (AddN): {LOCAL}CPU:0", lines)
        self.assertIn("Found device 0 with properties: ", done.stderr)
        self.assertIn("Creating kolo device (/gpu:2) -> (device: 2, name: virtual GPU, pci bus id: ", done.stderr)

    def test_towers_say_which_gpu_is_missing(self):
        done = run("multi_tower", "3")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("Could not satisfy explicit device specification '/device:GPU:3'", done.stderr)

    def test_without_gpus_they_say_how_to_run_them(self):
        for example, gpus in (("multi_tower", 4), ("variables_on_cpu", 1)):
            done = run(example)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(f"KOLO_VIRTUAL_GPUS={gpus} {example}\n", done.stderr)
            self.assertNotIn("terminate called", done.stderr)

    def test_a_device_function_keeps_variables_on_the_cpu(self):  # row 15
        lines = self.lines(run("variables_on_cpu", "1x512MiB"))
        self.assertEqual(lines[-1], "12")
        self.assertIn(f"a: (Variable): {LOCAL}CPU:0", lines)
        self.assertIn(f"b: (Const): {LOCAL}GPU:0", lines)
        self.assertIn(f"c: (Mul): {LOCAL}GPU:0", lines)

    def test_a_whole_number_variable_finds_its_place_softly(self):
        lines = self.lines(run("integer_variable", "1"))
        self.assertIn("refused: Cannot assign a device to node 'counter': Could not satisfy explicit device "
                      "specification '/device:GPU:0' because no supported kernel for GPU devices is available.",
                      lines[0])
        self.assertIn(f"counter: (Variable): {LOCAL}CPU:0", lines)
        self.assertEqual(lines[-1], "3")

    def test_control_dependencies_run(self):  # row 36
        self.assertEqual(self.lines(run("control_dependencies")),
                         ["z is 7", "b has run 1 times", "z is 7", "b has run 2 times"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
