"""Programs that end badly: what the other ranks see of it, and how soon. Each test starts a job of its own."""
import os
import signal
import subprocess
import sys
import time

import pytest

from jobs import DEADLINE, environment, finished

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
BEGIN = """
import os, signal, sys, threading, time
import numpy as np
import kolo
kolo.init()
rank, size = kolo.rank(), kolo.size()
def say(text):
    print(text, flush=True)
"""


def start(program, ranks, *mpirun_options):
    """A job of `ranks` ranks."""
    launch = ["mpirun", "--oversubscribe", "--bind-to", "none", "--allow-run-as-root", *mpirun_options, "-n", str(ranks)]
    return subprocess.Popen([*launch, sys.executable, "-c", BEGIN + program], env=environment(KOLO_FLIGHT_DIR="/tmp"),
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)


def test_a_rank_that_is_killed_is_an_exception_on_the_others():
    code, output, errors = finished(start("""
if rank == 1:
    kolo.barrier()
    os.kill(os.getpid(), signal.SIGKILL)
kolo.barrier()
begin = time.monotonic()
try:
    kolo.allreduce(np.ones(3), name="lonely")
except kolo.errors.UnavailableError as error:
    say(f"rank {rank}: {error} after {time.monotonic() - begin:.1f} s")
os._exit(3)
""", 3, "--mca", "orte_enable_recovery", "1"))
    said = [line for line in output.splitlines() if "is gone" in line]
    assert len(said) == 2, output + errors
    for line in said:
        assert "lonely" in line and "rank 1 on" in line
        assert float(line.split()[-2]) < 10


def test_an_uncaught_exception_ends_the_job():
    begin = time.monotonic()
    code, output, errors = finished(start("""
if rank == 1:
    raise ValueError("the data is not there")
kolo.barrier()
""", 2))
    assert code != 0 and "the data is not there" in errors
    assert time.monotonic() - begin < DEADLINE / 2


def test_a_forked_child_is_no_rank():
    code, output, errors = finished(start("""
import multiprocessing
def work():
    try:
        kolo.init()
    except kolo.errors.FailedPreconditionError as error:
        say(f"refused: {error}")
child = multiprocessing.get_context("fork").Process(target=work)
child.start()
child.join()
say(f"sum {kolo.allreduce(np.ones(1), 'sum')[0]}")
""", 2))
    assert code == 0, errors
    assert output.count("refused: init: this process was started by rank") == 2 and output.count("sum 2.0") == 2, output


def test_ctrl_c_ends_a_wait():
    job = start("""
if rank == 1:
    kolo.barrier()
    time.sleep(3)
    sys.exit(0)
kolo.barrier()
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
begin = time.monotonic()
try:
    kolo.allreduce(np.ones(3), name="never")
except KeyboardInterrupt:
    say(f"interrupted after {time.monotonic() - begin:.1f} s")
os._exit(0)
""", 2)
    code, output, errors = finished(job)
    said = [line for line in output.splitlines() if line.startswith("interrupted")]
    assert said and 0.4 < float(said[0].split()[2]) < 2, output + errors


def test_other_threads_run_while_one_waits():
    code, output, errors = finished(start("""
if rank == 0:
    handle = kolo.allreduce_async(np.ones(3), "sum", name="late")
    waiter = threading.Thread(target=lambda: say(handle.wait().tolist()))
    waiter.start()
    steps = 0
    while waiter.is_alive() and steps < 20:
        steps += 1
        time.sleep(0.01)
    say(f"{steps} steps beside the wait")
    kolo.barrier()
    waiter.join()
else:
    kolo.barrier()
    kolo.allreduce(np.ones(3), "sum", name="late")
""", 2))
    assert code == 0, errors
    assert "20 steps beside the wait" in output and "[2.0, 2.0, 2.0]" in output


def test_forked_workers_leave_the_job_alone():
    code, output, errors = finished(start("""
import multiprocessing
with multiprocessing.get_context("fork").Pool(2) as pool:
    for step in range(5):
        rows = pool.map(abs, range(-4, 0))
        total = kolo.allreduce(np.array(rows, np.float64), "sum")
    say(f"rank {rank}: {total.tolist()}")
""", 2))
    assert code == 0, errors
    for rank in range(2):
        assert f"rank {rank}: [8.0, 6.0, 4.0, 2.0]" in output


def test_stalls_are_named():
    code, output, errors = finished(start("""
if rank == 0:
    try:
        kolo.allreduce(np.ones(3), name="g")
    except kolo.errors.DeadlineExceededError as error:
        say(error)
        os._exit(0)
time.sleep(8)
os._exit(0)
""", 2, "-x", "KOLO_STALL_WARNING_S=1", "-x", "KOLO_STALL_ABORT_S=2"))
    assert "ready on [0], missing on [1]" in output, output + errors
