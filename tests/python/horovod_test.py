"""python3 -m kolo.horovod: programs that import horovod.torch, and Horovod's variables."""
import os
import subprocess
import sys

import pytest

from kolo.horovod import environment


PROGRAM = """
import sys, torch
import horovod, horovod.torch as hvd
from horovod.torch.mpi_ops import rank, size, allreduce_async_, synchronize
from horovod.torch.compression import Compression
from horovod.common.util import split_list, gpu_available
import horovod.torch.elastic
hvd.init()
assert hvd.__name__ == "kolo.torch" and not gpu_available("torch")
assert split_list([1, 2, 3], 2) == [[1, 2], [3]]
print(sys.argv[1:], rank(), size(), __name__, hvd.allreduce(torch.ones(1), compression=Compression.fp16).item())
"""


def run(*arguments, **variables):
    alone = {name: value for name, value in os.environ.items() if not name.startswith(("OMPI_", "PMIX_"))}
    return subprocess.run([sys.executable, "-m", "kolo.horovod", *arguments], capture_output=True, text=True, timeout=100,
                          env={**alone, **variables})


def test_a_program_runs_unchanged(tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM)
    done = run(str(tmp_path / "train.py"), "--epochs", "3")
    assert done.stdout == "['--epochs', '3'] 0 1 __main__ 1.0\n", done.stderr


def test_modules_run_too():
    done = run("-m", "timeit", "-n", "1", "import horovod.torch")
    assert done.returncode == 0 and "loop" in done.stdout, done.stderr


def test_what_cannot_be_run_is_said():
    assert run().returncode == 2
    done = run("/no/such.py")
    assert done.returncode == 2 and done.stderr == "kolo.horovod: there is no /no/such.py\n"


def test_variables_become_kolos():
    variables = {"HOROVOD_FUSION_THRESHOLD": "1024", "HOROVOD_CYCLE_TIME": "2.5", "HOROVOD_TIMELINE": "DYNAMIC",
                 "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "30", "HOROVOD_CACHE_CAPACITY": "7", "KOLO_CACHE_CAPACITY": "9",
                 "HOROVOD_DYNAMIC_PROCESS_SETS": "1", "HOROVOD_HIERARCHICAL_ALLREDUCE": "1", "PATH": "/bin"}
    assert environment.take_over(variables) == (["HOROVOD_HIERARCHICAL_ALLREDUCE"], [])
    assert {name: value for name, value in variables.items() if name.startswith("KOLO_")} == {
        "KOLO_FUSION_BYTES": "1024", "KOLO_BUCKET_BYTES": "1024", "KOLO_FIRST_BUCKET_BYTES": "1024", "KOLO_CYCLE_TIME_MS": "2.5", "KOLO_STALL_ABORT_S": "30", "KOLO_CACHE_CAPACITY": "9"}


def test_the_threshold_is_that_of_gradients_too_and_the_check_of_stalls_can_be_turned_off():
    variables = {"HOROVOD_FUSION_THRESHOLD": "67108864", "HOROVOD_STALL_CHECK_DISABLE": "1", "KOLO_STALL_ABORT_S": "5"}
    assert environment.take_over(variables) == ([], [])
    assert (variables["KOLO_BUCKET_BYTES"], variables["KOLO_FIRST_BUCKET_BYTES"]) == ("67108864", "1048576")
    assert (variables["KOLO_STALL_WARNING_S"], variables["KOLO_STALL_ABORT_S"]) == ("0", "5")
    variables = {"HOROVOD_FUSION_THRESHOLD": "0"}
    environment.take_over(variables)
    assert (variables["KOLO_FUSION_BYTES"], variables["KOLO_BUCKET_BYTES"]) == ("0", "1")


# Horovod reads numbers by strtol and strtof, which stop where the number ends; a flag is a number above 0.
@pytest.mark.parametrize("name, value, counterpart, expected", [
    ("HOROVOD_LOG_LEVEL", "trace", "KOLO_LOG_LEVEL", "debug"), ("HOROVOD_LOG_LEVEL", "FATAL", "KOLO_LOG_LEVEL", "error"),
    ("HOROVOD_LOG_LEVEL", "loud", "KOLO_LOG_LEVEL", None), ("HOROVOD_AUTOTUNE", "True", "KOLO_AUTOTUNE", None),
    ("HOROVOD_AUTOTUNE", "2", "KOLO_AUTOTUNE", "1"), ("HOROVOD_AUTOTUNE", "0", "KOLO_AUTOTUNE", "0"),
    ("HOROVOD_FUSION_THRESHOLD", "67108864.0", "KOLO_FUSION_BYTES", "67108864"),
    ("HOROVOD_FUSION_THRESHOLD", "-1", "KOLO_FUSION_BYTES", None), ("HOROVOD_CYCLE_TIME", "3.5ms", "KOLO_CYCLE_TIME_MS", "3.5"),
    ("HOROVOD_STALL_CHECK_TIME_SECONDS", "30.9", "KOLO_STALL_WARNING_S", "30"),
    ("HOROVOD_STALL_CHECK_TIME_SECONDS", "soon", "KOLO_STALL_WARNING_S", None),
])
def test_values_are_read_as_horovod_reads_them(name, value, counterpart, expected):
    variables = {name: value}
    _, not_understood = environment.take_over(variables)
    assert variables.get(counterpart) == expected
    assert not_understood == ([] if expected is not None else [f"{name}={value}"])


def test_a_value_that_nobody_understands_is_said_once_and_leaves_the_default(tmp_path):
    (tmp_path / "train.py").write_text("import horovod.torch as hvd; hvd.init()")
    done = run(str(tmp_path / "train.py"), HOROVOD_LOG_LEVEL="loud", HOROVOD_AUTOTUNE="True")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("HOROVOD_AUTOTUNE=True, HOROVOD_LOG_LEVEL=loud: ") == 1


def test_variables_without_a_counterpart_are_named_once(tmp_path):
    (tmp_path / "train.py").write_text("import horovod.torch as hvd; hvd.init()")
    done = run(str(tmp_path / "train.py"), HOROVOD_HIERARCHICAL_ALLREDUCE="1")
    assert done.returncode == 0 and done.stderr.count("HOROVOD_HIERARCHICAL_ALLREDUCE") == 1
