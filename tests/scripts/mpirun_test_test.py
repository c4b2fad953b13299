"""scripts/mpirun_test: exit codes, the number of ranks, and an end for what hangs."""
import os
import subprocess
import time
import unittest

SCRIPT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", "scripts", "mpirun_test"))


def run(*arguments, **environment):
    return subprocess.run([SCRIPT, *arguments], capture_output=True, text=True, timeout=60,
                          env={**os.environ, **environment})


class MpirunTest(unittest.TestCase):
    def test_starts_as_many_ranks_as_asked(self):
        done = run("3", "sh", "-c", "echo rank $OMPI_COMM_WORLD_RANK")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(done.stdout.split("\n")), ["", "rank 0", "rank 1", "rank 2"])

    def test_fails_when_one_rank_fails(self):
        done = run("2", "sh", "-c", 'exit "$OMPI_COMM_WORLD_RANK"')
        self.assertEqual(done.returncode, 1, done.stderr)

    def test_ends_a_job_that_hangs(self):
        begin = time.monotonic()
        done = run("2", "sleep", "50", MPIRUN_TEST_SECONDS="1")
        self.assertNotEqual(done.returncode, 0)
        self.assertLess(time.monotonic() - begin, 30)

    def test_says_how_to_call_it_when_the_program_is_missing(self):
        done = run("2")
        self.assertEqual(done.returncode, 2)
        self.assertIn("Usage: scripts/mpirun_test RANKS PROGRAM", done.stderr)


if __name__ == "__main__":
    unittest.main()
