#!/usr/bin/env python3
"""scripts/gpu_check: its rows, its deadlines, and each of its parts once, over a GPU that is not there."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from environment_test import has_driver
from fake_gpu import GPU, FakeGpuTest, write_digits
from programs import BIN, SOURCE, environment


PARTS_OF_SECOND = ["build", "goals", "torch", "torch_tests", "ranks", "kill", "nccl", "memory", "peers", "losses", "order", "tuned", "sanitizer"]


class GpuCheck(FakeGpuTest):
    """scripts/gpu_check: what can be asked of a GPU that is not there."""

    def check(self, *args, programs=BIN, **env):
        """The rows are on stdout, and behind those of earlier calls in the file."""
        rows = self.folder / "rows"
        before = rows.read_text() if rows.exists() else ""
        done = subprocess.run([SOURCE / "scripts" / "gpu_check", *args, "--out", rows], capture_output=True, text=True, timeout=120,
                              env=environment(PATH=f"{programs}:{os.environ['PATH']}", KOLO_DATA_DIR=self.folder, **env))
        if done.returncode == 0:
            self.assertEqual(rows.read_text(), before + done.stdout)
        return done

    @unittest.skipIf(has_driver(), "there is a driver")
    def test_without_a_gpu_every_row_says_so(self):
        done = self.check()
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertGreater(len(rows), 10)
        self.assertEqual({(row["status"], row["unit"]) for row in rows}, {("skipped", "no CUDA device")})

    def test_rows_of_a_gpu_are_judged(self):
        rows = [json.loads(line) for line in self.check("--only", "memory", **GPU).stdout.splitlines()]
        self.assertEqual([(row["test"], row["status"]) for row in rows], [("numerics/memory", "passed"), ("memory", "passed")])
        self.assertIn("is out of memory", rows[0]["unit"])

    def test_what_python_lacks_is_told(self):
        """In the words of the first module that is missing, or that there is no GPU."""
        modules = self.folder / "modules"
        (modules / "kolo" / "torch").mkdir(parents=True)
        python = self.folder / "python3"
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')  # with nothing installed
        python.chmod(0o755)
        rows = []

        def ask(part):
            done = self.check("--only", part, programs=f"{self.folder}:{BIN}", PYTHONPATH=modules, **GPU)
            rows.extend((row["test"], row["status"], row["unit"]) for row in map(json.loads, done.stdout.splitlines()))

        ask("torch")
        (modules / "kolo" / "torch" / "__init__.py").write_text("import torch\n")
        ask("torch")
        (modules / "torch.py").write_text("class cuda:\n    is_available = staticmethod(lambda: False)\n")
        ask("torch_tests")
        ask("torch")
        lacks = "not run: python3: ModuleNotFoundError: No module named '{}'"
        self.assertEqual(rows[1:], [("torch", "skipped", lacks.format("torch")), ("torch_tests", "skipped", lacks.format("pytest")),
                                    ("torch", "skipped", "not run: python3: torch finds no GPU")])

    def check_torch(self, part, device):
        """(test, status, value) of each row, with kolo.torch on a device that is here."""
        package = BIN.parent / "python"
        for python in ("python3", "/usr/bin/python3"):
            needs = subprocess.run([python, "-c", "import torch, pytest, cloudpickle, kolo"], capture_output=True,
                                   env={**os.environ, "PYTHONPATH": str(package)})
            if needs.returncode == 0:
                break
        else:
            self.skipTest("no python3 has kolo, PyTorch and pytest")
        (self.folder / "python3").write_text(f'#!/bin/sh\nexec {shutil.which(python)} "$@"\n')
        (self.folder / "python3").chmod(0o755)
        done = self.check("--only", part, programs=f"{self.folder}:{BIN}", PYTHONPATH=package, TEST_DEVICE=device, **GPU)
        return [(row["test"], row["status"], row["value"]) for row in map(json.loads, done.stdout.splitlines())]

    def test_kolo_torch_is_told_what_it_trains(self):
        rows = self.check_torch("torch", "cpu")
        self.assertEqual([row[:2] for row in rows], [("torch_1", "passed"), ("torch_2", "passed"), ("torch", "passed")])
        self.assertGreater(min(row[2] for row in rows[:2]), 1)

    def test_kolo_torchs_own_tests_are_told(self):
        rows = self.check_torch("torch_tests", "stand-in")
        self.assertEqual([row[:2] for row in rows], [("torch_tests", "passed")], (self.folder / "rows.log").read_text())
        self.assertGreater(rows[0][2], 200)

    def test_what_has_passed_with_this_build_is_not_asked_again(self):
        kept = self.folder / "kept"
        rows = self.check("--only", "build", **GPU).stdout
        kept.write_text(rows + '{"test":"memory","status":"passed","value":null,"unit":"","ceiling":null}\n')
        self.assertEqual(self.check("--only", "memory", "--have", kept, **GPU).stdout, "")
        kept.write_text(kept.read_text().replace('"value":', '"value":1', 1))
        done = self.check("--only", "memory", "--have", kept, **GPU)
        self.assertEqual([json.loads(line)["test"] for line in done.stdout.splitlines()], ["numerics/memory", "memory"])
        self.assertIn(f"gpu_check: the rows in {kept} are of another build: all parts are asked again", done.stderr)

    def test_one_of_two_ranks_is_killed(self):
        (self.folder / "mnist").mkdir()
        write_digits(self.folder / "mnist")
        rows = [json.loads(line) for line in self.check("--only", "kill", **GPU).stdout.splitlines()]
        self.assertEqual([(row["test"], row["status"]) for row in rows], [("kill", "passed")], (self.folder / "rows.log").read_text())

    def test_a_part_that_fails_or_has_no_time_says_so(self):
        for part, seconds, status, word in (("losses", "60", "failed", "no MNIST data"), ("ranks", "5", "skipped", "not run: no time left")):
            with self.subTest(part=part):
                rows = [json.loads(line) for line in self.check("--only", part, "--seconds", seconds, **GPU).stdout.splitlines()]
                self.assertEqual([(row["test"], row["status"]) for row in rows], [(part, status)])
                self.assertIn(word, rows[0]["unit"])

    def check_where_all_hangs(self, *args):
        """test, status, unit of each row, on a machine that has a driver and programs that do not end."""
        programs = self.folder / "programs"
        programs.mkdir()
        for name in ("gpu_probe", "gpu_numerics", "kolo-train", "kolorun", "kolo-bench", "check_order", "nccl_probe", "compute-sanitizer"):
            (programs / name).write_text("#!/bin/sh\nexec sleep 500\n")
        (programs / "kolo-inspect").write_text("#!/bin/sh\necho 'CUDA: here: driver'\n")
        for program in programs.iterdir():
            program.chmod(0o755)
        rows = [json.loads(line) for line in self.check(*args, programs=programs).stdout.splitlines()]
        return [(row["test"], row["status"], re.sub(r"after \d s", "after N s", row["unit"])) for row in rows]

    def test_all_parts_together_have_a_deadline(self):
        """Their own ones are of more than a minute each."""
        cut, none = ("skipped", "cut off after N s: no time left"), ("skipped", "not run: no time left")
        rows = self.check_where_all_hangs("--seconds", "7")
        self.assertEqual(rows[:2], [("build", "passed", "sum of the libraries"), ("probe", *cut)])
        self.assertEqual({row[1:] for row in rows[2:]}, {none})
        self.assertEqual(len(rows), 20)

    def test_a_part_leaves_later_ones_their_shares(self):
        """Of 280 s goals has the first 85, ranks may begin with the 151st."""
        rows = self.check_where_all_hangs("--part", "second", "--seconds", "20")
        cut, none = ("skipped", "cut off after N s: no time left"), ("skipped", "not run: no time left")
        self.assertEqual([row for row in rows if row[0] in ("goals_gpt", "ranks", "sanitizer")],
                         [("goals_gpt", *cut), ("goals_gpt", *none), ("ranks", *cut), ("sanitizer", *none)])
        names = [row[0] for row in rows]
        self.assertEqual([name for name in names if name in PARTS_OF_SECOND], PARTS_OF_SECOND)

    def test_what_follows_in_a_part_that_is_cut_off_is_not_run(self):
        cut, none = ("skipped", "cut off after N s: no time left"), ("skipped", "not run: no time left")
        rows = self.check_where_all_hangs("--only", "sanitizer", "--seconds", "7")
        on_cpus = [("speed/cpu/" + who, "skipped", "not run: mlp lenet resnet20 gpt resnet50 vgg16") for who in ("kolo1", "kolo8", "torch1", "torch8")]
        self.assertEqual([row for row in rows if row not in on_cpus],
                         [("sanitizer_memcheck", *cut), ("sanitizer_racecheck", *none), ("sanitizer_initcheck", *none)])

    def test_a_part_that_there_is_not_is_refused(self):
        done = self.check("--only", "nothing")
        self.assertEqual((done.returncode, done.stderr), (2, 'gpu_check: there is no part "nothing"; --help lists them\n'))


# Programs that answer as the real ones do, in less time: what they print is the real one's, of a small model under the name
# that was asked for. So a field that gets another name is missing here, too. Asked once more in the same words, the real one
# would print the same: it is started once.
REMEMBER = """#!{python}
import hashlib, json, os, pathlib, subprocess, sys
def printed_by(command):
    words = repr((command, sorted(item for item in os.environ.items() if item[0].startswith("KOLO_") and item[0] != "KOLO_DATA_DIR")))
    kept = pathlib.Path("{kept}") / hashlib.sha256(words.encode()).hexdigest()
    if not kept.exists():
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if done.returncode != 0: sys.exit(done.returncode)
        kept.write_text(done.stdout)
    return kept.read_text().splitlines()
"""
BENCH = REMEMBER + """
args, asked = sys.argv[1:], {{}}
for name in ("--models", "--precision", "--feed", "--fetch", "--threads", "--device", "--layers"):
    if name in args: asked[name] = args[args.index(name) + 1]
gpu = asked["--device"] == "gpu"
of = [word for name in ("--precision", "--feed", "--fetch") if name in args
      for word in (name, args[args.index(name) + 1])]
lines = printed_by(["{bin}/kolo-bench", "train", "--json", "--device", asked["--device"], "--models", "mlp", "--batch", "1",
                    "--steps", "3", "--threads", "1", *of])
for model in asked["--models"].split(","):
    for line in lines:
        row = json.loads(line)
        row.update(model=model, **({{"threads": int(asked["--threads"])}} if not gpu else {{}}),
                   **({{"params": 124e6}} if asked.get("--layers") == "12" else {{}}),
                   **({{"batch": int(args[args.index("--batch") + 1])}} if "--batch" in args else {{}}))
        print(json.dumps(row, separators=(",", ":")))
"""
TORCH = REMEMBER + """
args = sys.argv[1:]
if args[0] == "-c": sys.exit(0)
def of(name, default=""): return args[args.index(name) + 1] if name in args else default
rows = pathlib.Path(args[0])
os.chdir(rows.parent)
first = json.loads(printed_by(["{torch}", rows.name, "--device", "cpu", "--models", "mlp", "--batch", "1", "--seconds", "0.01", "--threads", "1",
                               "--precision", "f32", "--feed", "none", "--fetch", "never", "--variant", "eager"])[-1])
for model in of("--models").split(","):
    for precision in of("--precision", "f32").split(","):
        for variant in of("--variant", "eager").split(","):
            row = dict(first, model=model, precision=precision, variant=variant, device=of("--device"),
                       threads=int(of("--threads", "1")), params=124e6 if model == "gpt124m" else first["params"])
            if model == "gpt124m": row["model"] = "gpt"
            print(json.dumps(row))
"""
PROBE = """#!/bin/sh
echo '{{"test":"host/wait","status":"passed","value":1,"unit":"us","ceiling":null}}'
"""
NUMERICS = """#!/bin/sh
case " $* " in *" --large "*) exec {bin}/gpu_numerics --once --tf32 --only matmul_3x5x7 ;; *) exec {bin}/gpu_numerics --once --only relu ;; esac
"""
TRAIN = """#!{python}
import subprocess, sys
args = sys.argv[1:]
args[args.index("--model") + 1] = "mlp"
if "--epochs" in args:  # to 97.5 %: what learns is the real one's matter
    args[args.index("--epochs"):args.index("--epochs") + 2] = ["--steps", "8"]
small = [] if "--batch-size" in args else ["--batch-size", "8"]
done = subprocess.run(["{bin}/kolo-train", "--threads", "1", *small, *args], stdout=subprocess.PIPE, text=True)
print(done.stdout, end="")
sys.exit(done.returncode)
"""
SANITIZER = """#!/bin/sh
while case "$1" in --*) true ;; *) false ;; esac; do case "$1" in --tool | --target-processes | --report-api-errors | --kernel-name | --error-exitcode) shift ;; esac; shift; done
exec "$@"
"""


class Parts(FakeGpuTest):
    """As an archive has it."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.kept = tempfile.mkdtemp(prefix="kolo-test-")
        cls.addClassCleanup(shutil.rmtree, cls.kept, ignore_errors=True)
        cls.torch = next((python for python in (sys.executable, "/usr/bin/python3") if shutil.which(python) and subprocess.run(
            [python, "-c", "import torch"], capture_output=True).returncode == 0), None)

    def setUp(self):
        super().setUp()
        digits = self.folder / "mnist"
        digits.mkdir()
        write_digits(digits)
        for name in ("labels-idx1-ubyte", "images-idx3-ubyte"):
            shutil.copy(digits / f"train-{name}", digits / f"t10k-{name}")
        self.bin = self.folder / "kolo" / "bin"
        self.bin.mkdir(parents=True)
        bench = self.folder / "kolo" / "share" / "bench"
        (bench / "gpu").mkdir(parents=True)
        shutil.copy(SOURCE / "bench" / "torch_models.py", bench)
        shutil.copy(SOURCE / "bench" / "gpu" / "torch_rows.py", bench / "gpu")
        self.has_torch = self.torch is not None
        scripts = {"kolo-bench": BENCH, "kolo-train": TRAIN, "gpu_probe": PROBE, "gpu_numerics": NUMERICS, "compute-sanitizer": SANITIZER}
        if self.has_torch:
            scripts["python3"] = TORCH
        for name, text in scripts.items():
            (self.bin / name).write_text(text.format(python=sys.executable, bin=BIN, torch=self.torch, kept=self.kept))
        shutil.copy(SOURCE / "scripts" / "gpu_check", self.bin)
        for program in self.bin.iterdir():
            program.chmod(0o755)
        for name in ("kolorun", "kolo-inspect", "check_order"):
            (self.bin / name).symlink_to(BIN / name)
        (self.bin / "nccl_probe").symlink_to(BIN.parent / "tests" / "nccl_probe")
        (self.folder / "kolo" / "lib").symlink_to(BIN.parent / "lib")

    def rows_of(self, part):
        """By name. On stderr the table."""
        out = self.folder / "rows"
        done = subprocess.run([self.bin / "gpu_check", "--only", part, "--out", out], capture_output=True, text=True, timeout=300,
                              env=environment(KOLO_DATA_DIR=self.folder, **GPU))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.table = done.stderr
        rows = {row["test"]: row for row in map(json.loads, done.stdout.splitlines())}
        self.assertIn(part, rows, (self.folder / "rows.log").read_text())
        return rows

    def expect(self, part, *tests, status="passed"):
        """The part passes, and these rows have a number."""
        rows = self.rows_of(part)
        self.assertEqual(rows[part]["status"], status, (self.folder / "rows.log").read_text())
        for test in tests:
            self.assertIn(test, rows)
            self.assertIsInstance(rows[test]["value"], (int, float), test)
        return rows

    def test_build(self):
        self.assertGreater(self.rows_of("build")["build"]["value"], 0)

    def test_probe(self):
        self.expect("probe", "host/wait")

    def test_numerics(self):
        rows = self.expect("numerics", "numerics/matmul_3x5x7_tf32")
        self.assertGreater(rows["numerics/matmul_3x5x7_tf32"]["value"], 1e-6)

    def test_graphs(self):
        self.assertEqual(self.expect("graphs")["graphs"]["value"], 7)

    def test_lenet(self):
        rows = self.rows_of("lenet")  # which does not learn in 8 steps: the part fails
        for test in ("lenet", "lenet_speed"):
            self.assertIsInstance(rows[test]["value"], (int, float))

    def test_resume(self):
        self.expect("resume")

    def test_speed(self):
        of = [f"{model}/{precision}/b1/{feed}/kolo" for model in ("mlp", "lenet", "resnet20", "gpt", "resnet50", "vgg16")
              for precision in ("f32", "tf32") for feed in ("host-each", "none-never")]
        self.expect("speed", *[f"speed/{name}" for name in of])
        self.assertRegex(self.table, r"vgg16/tf32/b1/none-never +[0-9.]+")

    def test_tuned(self):
        self.expect("tuned", "speed/resnet50/tf32/b1/none-never/kolo_tuned", "speed/mlp/f32/b1/none-never/kolo_tuned")

    def test_counts(self):
        rows = self.expect("counts", *[f"counts/{model}" for model in ("mlp", "lenet", "resnet20", "gpt", "resnet50", "vgg16")],
                           "choices/KOLO_CUDA_GRAPHS=0/mlp", "choices/KOLO_GPU_SPIN_US=100/gpt")
        for name in ("host_ms", "launches", "syncs", "peak_gpu_mib", "plan_gpu_mib"):
            self.assertIn(name, rows["counts/mlp"]["unit"])

    def test_peers(self):
        if not self.has_torch:
            self.skipTest("no python3 has PyTorch")
        self.expect("peers", "speed/vgg16/tf32/b1/none-never/torch_graph", "speed/mlp/f32/b1/none-never/torch_eager",
                    "speed/resnet50/default/b1/none-never/torch_eager")

    def test_goals(self):
        rows = ["speed/gpt124m/tf32/b16/none-never/kolo", "speed/gpt124m/tf32/b32/none-never/kolo",
                "speed/resnet50/tf32/b256/none-never/kolo", "speed/vgg16/tf32/b64/none-never/kolo"]
        self.expect("goals", *rows, *(["speed/gpt124m/bf16/b1/none-never/torch_graph"] if self.has_torch else []))

    def test_losses(self):
        self.expect("losses", "losses_first_20", "losses_mean_of_100")

    def test_order(self):
        self.expect("order")

    def test_ranks(self):
        value = self.rows_of("ranks")["ranks"]["value"]
        self.assertIsInstance(value, (int, float), (self.folder / "rows.log").read_text())

    def test_nccl(self):
        self.expect("nccl", "nccl/connection", "nccl/average/4KiB", "nccl/average/1024KiB")

    def test_sanitizer_and_steps_on_cpus(self):
        models = ("mlp", "lenet", "resnet20", "gpt", "resnet50", "vgg16")
        who = ("kolo_cpu8", "kolo_cpu1") + (("torch_eager_cpu8", "torch_eager_cpu1") if self.has_torch else ())
        rows = self.expect("sanitizer", *[f"speed/{model}/f32/b1/{'host-each' if by.startswith('kolo') else 'none-never'}/{by}"
                                          for model in models for by in who])
        self.assertEqual(rows["sanitizer_memcheck"]["status"], "passed")
        self.assertEqual([test for test in rows if test.startswith("speed/cpu/kolo")], [])

    def test_steps_on_cpus_that_do_not_fit_are_told(self):
        (self.bin / "kolo-bench").write_text("#!/bin/sh\nexit 1\n")
        rows = self.rows_of("sanitizer")
        self.assertEqual((rows["speed/cpu/kolo8"]["status"], rows["speed/cpu/kolo8"]["unit"]),
                         ("skipped", "not run: mlp lenet resnet20 gpt resnet50 vgg16"))


if __name__ == "__main__":
    unittest.main()
