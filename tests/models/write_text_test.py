#!/usr/bin/env python3
"""write_text on two ranks: learns, goes on from its checkpoint, writes. Usage: write_text_test.py MPIRUN PROGRAM"""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

MPIRUN, PROGRAM = sys.argv.pop(1), sys.argv.pop(1)
TEXT = "the quick brown fox jumps over the lazy dog and back again.\n" * 400


class WriteText(unittest.TestCase):
    def run_program(self, folder, steps, *weights):
        done = subprocess.run([MPIRUN, "2", PROGRAM, "text", str(steps), *weights], cwd=folder, capture_output=True, text=True, timeout=200)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        first, written = done.stdout.split("\n", 1)
        step, loss = re.fullmatch(r"step (\d+): ([\d.]+) nats a character", first).groups()
        return int(step), float(loss), written

    def test_learns_goes_on_and_writes(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "text").write_text(TEXT)
            step, before, written = self.run_program(folder, 2)
            self.assertEqual(step, 2)
            self.assertEqual(len(written), 301)
            self.assertLessEqual(set(written), set(TEXT))
            step, after, written = self.run_program(folder, 6)
            self.assertEqual(step, 6)
            self.assertLess(after, before)
            # From the same weights, without a step, the same text.
            (pathlib.Path(folder) / "text_logs").rename(pathlib.Path(folder) / "trained")
            self.assertEqual(self.run_program(folder, 0, "trained"), (0, after, written))

    def test_says_what_it_wants(self):
        done = subprocess.run([PROGRAM], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn("give a text", done.stderr)


if __name__ == "__main__":
    unittest.main()
