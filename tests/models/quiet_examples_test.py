"""No example warns of anything in a normal run: a warning that always comes hides the one that matters.

Usage: quiet_examples_test.py SOURCE_FOLDER MPIRUN_TEST FOLDER_OF_PROGRAMS
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCES, MPIRUN_TEST, PROGRAMS = sys.argv[1:4]
sys.path.insert(0, os.path.join(SOURCES, "tests", "support"))
from quiet import warning
EXAMPLES = pathlib.Path(SOURCES) / "models" / "examples"


def program(name):
    return os.path.join(PROGRAMS, name)


def ranks(count, name, *args):
    return [MPIRUN_TEST, str(count), program(name), *args]


def cluster(jobs, name, *args):
    return [program("kolorun"), "-q", "--cluster", jobs, "--", program(name), *args]


# A folder to predict from, and one picture of zeros as numpy.save writes it.
PREDICT = f"""{program("kolo-train")} --model mlp --data generated --steps 1 --checkpoint-dir ck &&
{sys.executable} -c 'import sys; sys.stdout.buffer.write(b"\\x93NUMPY\\1\\0v\\0" +
    b"{{\\"descr\\": \\"|u1\\", \\"fortran_order\\": False, \\"shape\\": (1, 1, 28, 28), }}".ljust(118) + bytes(784))' > x.npy &&
{program("predict_arrays")} ck x.npy"""

# Each example as its head says, shortened; and the virtual GPUs that it needs.
RUNS = {
    "beside_a_simulation": [(ranks(4, "beside_a_simulation"), "0")],
    "between_graph_mnist": [(cluster("ps=2,worker=2", "between_graph_mnist", "40", "generated"), "0"),
                            (cluster("ps=2,worker=2", "between_graph_mnist", "sync", "40", "generated"), "0")],
    "control_dependencies": [([program("control_dependencies")], "0")],
    "integer_variable": [([program("integer_variable")], "1")],
    "keras_functional": [([program("keras_functional"), "1", "generated"], "0")],
    "keras_mnist": [(ranks(2, "keras_mnist", "1", "generated"), "0")],
    "keras_multi_gpu": [([program("keras_multi_gpu"), "1", "generated"], "8")],
    "multi_tower": [([program("multi_tower")], "4")],
    "own_training_loop": [(ranks(2, "own_training_loop"), "0")],
    "predict_arrays": [(["sh", "-c", PREDICT], "0")],
    "remote_session": [([program("remote_session")], "0")],
    "sharded_embedding": [(cluster("ps=2,worker=1", "sharded_embedding"), "0")],
    "shared_pools": [([program("shared_pools")], "0")],
    "train_mnist": [(ranks(2, "train_mnist", "40", "generated"), "0")],
    "variables_on_cpu": [([program("variables_on_cpu")], "1x512MiB")],
    "write_text": [(ranks(2, "write_text", os.path.join(SOURCES, "docs", "tutorial.md"), "20"), "0")],
    "your_own": [(ranks(2, "your_own"), "0")],
}


class QuietExamples(unittest.TestCase):
    def test_none_is_forgotten(self):
        self.assertEqual(sorted(RUNS), sorted(source.stem for source in EXAMPLES.glob("*.cc")))

    def test_none_warns(self):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("KOLO_", "CUDA_", "OMPI_", "PMIX_"))}
        for example, runs in RUNS.items():
            for command, gpus in runs:
                if not os.path.exists(program(example)):
                    continue  # a build without gRPC
                with self.subTest(example=example), tempfile.TemporaryDirectory() as folder:
                    done = subprocess.run(command, cwd=folder, env={**kept, "KOLO_VIRTUAL_GPUS": gpus, "OMP_NUM_THREADS": "1"},
                                          capture_output=True, text=True, errors="replace", timeout=280, stdin=subprocess.DEVNULL)
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                    self.assertIsNone(warning(done.stdout, done.stderr), done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
