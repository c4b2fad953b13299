"""Jobs that tests start: their environment, and their end within a deadline."""
import os
import subprocess

import pytest

DEADLINE = 60 * int(os.environ.get("TEST_SLOWDOWN", "1"))


def environment(**variables):
    """This process's, without its own place in a job, and with lines written whole: unbuffered, Python writes a line's
    end by itself, and mpirun may put another rank's line before it."""
    left_out = ("OMPI_", "PMIX_", "PYTHONUNBUFFERED")
    return {**{name: value for name, value in os.environ.items() if not name.startswith(left_out)}, **variables}


def finished(job):
    """Exit code, stdout and stderr (None where it is not a pipe of its own)."""
    try:
        output, errors = job.communicate(timeout=DEADLINE)
    except subprocess.TimeoutExpired:
        job.kill()
        output, errors = job.communicate()
        pytest.fail(f"still running after {DEADLINE} s:\n{output}\n{errors}")
    return job.returncode, output, errors
