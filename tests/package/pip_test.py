#!/usr/bin/env python3
"""`pip install .`, as a user types it, in virtual environments: without NumPy one sentence, with it a package that works elsewhere.

Usage: tests/package/pip_test.py MPIRUN_TEST PYTHON     the build in build/release is gone on with
pip configures this build for each environment and back again, so that nothing else may run in it at the same time.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77
MPIRUN_TEST, PYTHON = sys.argv[1:3]
DEADLINE_S = 240


def run(*command, **options):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP_"))}
    kept["PYTHONDONTWRITEBYTECODE"] = "1"  # the checkout stays as it is
    return subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=DEADLINE_S, env=kept, **options)


def pip_install(python):
    # Nothing of the network, and nothing of a user's settings.
    return run(python, "-m", "pip", "--isolated", "install", "--no-index", "--no-build-isolation", "--no-deps", "--disable-pip-version-check", ".", cwd=ROOT)


class Pip(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory()
        self.addCleanup(work.cleanup)
        self.work = pathlib.Path(work.name)

    def environment(self, *options):
        done = run(PYTHON, "-m", "venv", *options, self.work / "venv")
        if done.returncode != 0:
            self.skipTest(f"{PYTHON} makes no virtual environment (Debian: python3-venv)")
        return self.work / "venv" / "bin" / "python"

    def test_a_plain_environment_gets_one_sentence(self):
        cache = ROOT / "build" / "release" / "CMakeCache.txt"
        before = cache.stat().st_mtime_ns
        done = pip_install(self.environment())
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stdout + done.stderr, r"kolo: \S+/venv/bin/python has no NumPy, which the package needs; install it there first, such as by pip install numpy")
        self.assertEqual(cache.stat().st_mtime_ns, before, "nothing was configured")

    def test_an_environment_with_numpy_gets_a_package_that_runs(self):
        python = self.environment("--system-site-packages")
        if run(python, "-c", "import numpy").returncode != 0:
            self.skipTest("there is no NumPy")
        configured = (ROOT / "build" / "release" / "CMakeCache.txt").read_text().split("KOLO_PYTHON:")[1].splitlines()[0]
        done = pip_install(python)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual((ROOT / "build" / "release" / "CMakeCache.txt").read_text().split("KOLO_PYTHON:")[1].splitlines()[0], configured)
        program = self.work / "sums.py"
        program.write_text("import kolo, numpy\nkolo.init()\nprint(kolo.__file__, kolo.allreduce(numpy.ones(2), 'sum').tolist(), flush=True)\n")
        done = run(MPIRUN_TEST, 2, python, program, cwd=self.work)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("[2.0, 2.0]"), 2, done.stdout)
        self.assertEqual(done.stdout.count(f"{self.work}/venv/lib"), 2, "not the checkout's package")
        self.assertIn("Name: kolo", run(python, "-m", "pip", "--isolated", "show", "kolo").stdout)


if __name__ == "__main__":
    result = unittest.main(argv=sys.argv[:1], exit=False).result
    sys.exit(SKIPPED if result.skipped and result.wasSuccessful() else not result.wasSuccessful())
