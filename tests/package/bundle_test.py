#!/usr/bin/env python3
"""The archive of scripts/make_bundle in a root that holds a C library and /bin/sh, and nothing else.

Usage: tests/package/bundle_test.py BUILD_FOLDER [FOLDER]     FOLDER: of the C library to take, else this machine's
Skipped (77) without patchelf, or where it may not change its root or mount /proc there.
"""
import json, os, pathlib, re, shutil, subprocess, sys, tempfile, unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv.pop(1))
C_LIBRARY = sys.argv.pop(1) if len(sys.argv) > 1 and pathlib.Path(sys.argv[1]).is_dir() else None
LIBRARIES = ["ld-linux-x86-64.so.2", "libc.so.6", "libm.so.6", "libmvec.so.1", "libdl.so.2", "librt.so.1", "libpthread.so.0",
             "libutil.so.1", "libresolv.so.2"]


class Bundle(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.archive = pathlib.Path(cls.folder.name) / "kolo.tar.xz"
        subprocess.run([SOURCE / "scripts" / "make_bundle", BUILD, cls.archive], check=True, env={**os.environ, "XZ_OPT": "-1 -T0"})
        cls.root = pathlib.Path(cls.folder.name) / "root"
        for name in ("bin", "lib64", "lib", "tmp", "dev", "proc", "sys", "opt"):
            (cls.root / name).mkdir(parents=True)
        shutil.copy("/bin/sh", cls.root / "bin" / "sh")
        found = dict(re.findall(r"(\S+) \(libc6,x86-64.*\) => (\S+)", subprocess.run(["/sbin/ldconfig", "-p"], check=True,
                                                                                   capture_output=True, text=True).stdout))
        for name in LIBRARIES:
            shutil.copy(os.path.realpath(os.path.join(C_LIBRARY, name) if C_LIBRARY else found[name]), cls.root / ("lib64" if name.startswith("ld-") else "lib") / name)
        subprocess.run(["tar", "-C", cls.root / "opt", "-xJf", cls.archive], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_inside(self, *command, seconds=120):
        # What the kernel shows on every machine. Mounted for this command alone.
        inside = 'for d in dev proc sys; do mount --rbind /$d "$0/$d" || exit; done; exec chroot "$0" "$@"'
        return subprocess.run(["unshare", "--mount", "sh", "-c", inside, self.root, *map(str, command)], capture_output=True, text=True,
                              timeout=seconds, cwd="/", env={"OMP_NUM_THREADS": "1", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})

    def test_is_small_enough_to_be_carried(self):
        self.assertLess(self.archive.stat().st_size, 50 * 2**20)

    def test_makes_kolo_torch_for_a_python_of_the_machine(self):
        """Without the tree that it comes from. Two ranks train, and tests of kolo.torch run."""
        kolo = self.root / "opt" / "kolo"
        python = next((python for python in ("python3", "/usr/bin/python3") if shutil.which(python) and subprocess.run(
            [python, "-c", "import torch, pytest, cloudpickle"], capture_output=True).returncode == 0), None)
        if python is None or not (kolo / "share" / "python").exists():
            self.skipTest("no python3 with PyTorch, or no package kolo in the build")
        script = """mount -t tmpfs none "$BUILD" && "$KOLO/bin/build_python" "$PYTHON" && export PYTHONPATH="$KOLO/python" &&
            "$KOLO/bin/kolorun" -n 2 "$PYTHON" "$KOLO/share/python/synthetic_benchmark.py" --with kolo --rounds 1 --batches 1 &&
            TEST_DEVICE=cpu "$KOLO/bin/kolorun" -n 2 "$PYTHON" -m pytest -q -p no:cacheprovider "$KOLO/share/python/tests/torch_operations_test.py"
            """
        done = subprocess.run(["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True, timeout=600, cwd="/",
                              env={"PATH": "/usr/bin:/bin", "HOME": "/", "OMP_NUM_THREADS": "1", "BUILD": BUILD, "KOLO": kolo, "PYTHON": shutil.which(python)})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"kolo: [\d.]+ images/s on each of 2 ranks")
        self.assertRegex(done.stdout, r"\d+ passed")

    def test_trains_on_two_ranks(self):
        done = self.run_inside("/opt/kolo/bin/kolorun", "-n", 2, "kolo-train", "--model", "lenet", "--steps", 5, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        last = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual((last["global_step"], last["ranks"], last["data"]), (5, 2, "mnist"))

    def test_trains_without_a_launcher(self):
        done = self.run_inside("/opt/kolo/bin/kolo-train", "--model", "mlp", "--steps", 2)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_says_of_every_gpu_row_that_there_is_none(self):
        done = self.run_inside("/opt/kolo/bin/gpu_check", "--out", "/tmp/rows", seconds=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual({(row["status"], row["unit"]) for row in rows}, {("skipped", "no CUDA device")})
        self.assertEqual((self.root / "tmp" / "rows").read_text(), done.stdout)


if not shutil.which("patchelf") or subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
    print("skipped: make_bundle asks for patchelf, the empty root for the right to mount")
    sys.exit(77)
unittest.main()
