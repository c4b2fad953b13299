"""Requests to stop: the ranks leave the loop after the same step, and the exit code tells a batch system."""
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from jobs import DEADLINE, environment, finished

KOLORUN = os.path.join(os.environ["KOLO_BIN_DIR"], "kolorun")
LOOP = """
import sys, time
import kolo
kolo.init()
for step in range(1, 3000):
    time.sleep(0.02)
    if step == 3:
        print(f"rank {kolo.rank()} is process {__import__('os').getpid()}", flush=True)
    if kolo.should_stop(step):
        break
print(f"rank {kolo.rank()} stops after step {step}", flush=True)
sys.exit(kolo.exit_code())
"""


def start(program, *options, ranks=2, **variables):
    return subprocess.Popen([KOLORUN, "-n", str(ranks), *options, "--", sys.executable, "-c", program],
                            env=environment(**variables), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True, stdin=subprocess.DEVNULL)


def processes(job, ranks=2):
    """Of the ranks, when all are in their loop; and what the job has said."""
    found, said = {}, ""
    while len(found) < ranks:
        line = job.stdout.readline()
        assert line, said
        said += line
        if match := re.search(r"rank (\d) is process (\d+)", line):
            found[int(match.group(1))] = int(match.group(2))
    return found, said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
@pytest.mark.parametrize("rank", [0, 1])
def test_a_signal_to_one_rank_stops_all_after_the_same_step(rank, number):
    job = start(LOOP, KOLO_STOPPED_EXIT_CODE="75")
    found, _ = processes(job)
    os.kill(found[rank], number)
    code, said, _ = finished(job)
    steps = re.findall(r"rank (\d) stops after step (\d+)", said)
    assert len(steps) == 2 and steps[0][1] == steps[1][1] and int(steps[0][1]) < 2999, said
    assert code == 75 and "MPI_ABORT" not in said, said


def test_sigterm_to_kolorun_stops_all():
    job = start(LOOP, "--stopped-exit-code", "9")
    processes(job)
    job.send_signal(signal.SIGTERM)
    code, said, _ = finished(job)
    assert code == 9, said
    assert len(set(re.findall(r"stops after step (\d+)", said))) == 1, said


def test_without_a_request_the_code_is_0():
    program = LOOP.replace("range(1, 3000)", "range(1, 6)")
    assert finished(start(program, KOLO_STOPPED_EXIT_CODE="75"))[0] == 0


def test_the_code_of_a_stop_without_a_stop_is_a_failure():
    """Rank 1 leaves as if it had been stopped; rank 0, which has not, is not left waiting."""
    begin = time.monotonic()
    code, said, _ = finished(start("""
import sys, time
import numpy as np, kolo
kolo.init()
if kolo.rank() == 1:
    sys.exit(75)
time.sleep(0.2)
kolo.allreduce(np.ones(3), name="lonely")
""", KOLO_STOPPED_EXIT_CODE="75"))
    assert code == 1, said
    assert re.search(r"rank 1 on \S+: exit code 75 means a stop, and nobody asked for one", said), said
    assert time.monotonic() - begin < DEADLINE / 2
