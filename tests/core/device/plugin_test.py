#!/usr/bin/env python3
"""How a process comes by real GPUs, or says why it does not: real processes, drivers and plug-ins made for the test."""
import ctypes
import os
import pathlib
import re
import subprocess
import unittest

TESTS = pathlib.Path(os.environ["KOLO_TEST_FOLDER"])
BIN = pathlib.Path(os.environ["KOLO_BIN_DIR"])
REAL_PLUGIN = os.environ.get("KOLO_REAL_PLUGIN", "")
STUB = os.environ.get("KOLO_CUDA_STUB", "")


def has_driver():
    try:
        ctypes.CDLL("libcuda.so.1")
        return True
    except OSError:
        return False


def run(*command, driver=None, **variables):
    """driver: the folder of the libcuda.so.1 that the process finds."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("KOLO_", "CUDA_"))}
    if driver is not None:
        kept["LD_LIBRARY_PATH"] = f"{driver}:{kept.get('LD_LIBRARY_PATH', '')}"
    return subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
                          env={**kept, **{k: str(v) for k, v in variables.items()}})


class ProbeTest(unittest.TestCase):
    def probe(self, driver=None, **variables):
        done = run(TESTS / "device_probe", driver=driver, **variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = {}
        for line in done.stdout.splitlines():
            word, rest = line.split(" ", 1)
            said.setdefault(word, set()).add(rest)
        return said, done.stderr.splitlines()

    def assert_refused(self, said, log, *words):
        """The CPU alone, no kernel of the plug-in, and one line that holds these words."""
        self.assertEqual(said["device"], {"CPU:0"})
        self.assertEqual(said["kernel"], {"CPU"})
        self.assertEqual(len(log), 1, log)
        for word in ("CUDA: none (", *words):
            self.assertIn(word, log[0])


class Plugin(ProbeTest):
    @unittest.skipIf(has_driver(), "there is a driver")
    def test_without_a_driver_nothing_of_cuda_is_opened(self):
        said, log = self.probe()
        self.assert_refused(said, log, "libcuda.so.1 not found")
        self.assertEqual([path for path in said["mapped"] if re.search("cuda|cudnn|cublas|nccl", path)], [])

    def test_a_plug_in_hands_over_gpus_and_kernels(self):
        said, _ = self.probe(TESTS / "driver_13", KOLO_CUDA_PLUGIN=TESTS / "plugin_own" / "libfake.so")
        self.assertEqual(said["device"], {"CPU:0", "GPU:0"})
        self.assertEqual(said["kernel"], {"CPU", "GPU"})

    def test_a_plug_in_of_another_build_is_refused(self):
        said, log = self.probe(TESTS / "driver_13", KOLO_CUDA_PLUGIN=TESTS / "plugin_other" / "libfake.so")
        self.assert_refused(said, log, "libfake.so is of another build than libkolo")

    def test_a_file_that_is_no_plug_in_is_refused(self):
        said, log = self.probe(TESTS / "driver_13", KOLO_CUDA_PLUGIN=TESTS / "driver_13" / "libcuda.so.1")
        self.assert_refused(said, log, "has no function kolo_cuda_plugin")

    def test_a_plug_in_that_is_missing_is_named(self):
        said, log = self.probe(TESTS / "driver_13", KOLO_CUDA_PLUGIN="/no/such/plugin.so")
        self.assert_refused(said, log, "/no/such/plugin.so")

    def test_virtual_gpus_leave_the_plug_in_alone(self):
        plugin = TESTS / "plugin_own" / "libfake.so"
        said, _ = self.probe(TESTS / "driver_13", KOLO_CUDA_PLUGIN=plugin, KOLO_VIRTUAL_GPUS=2)
        self.assertEqual(said["device"], {"CPU:0", "GPU:0", "GPU:1"})
        self.assertEqual(said["kernel"], {"CPU"})
        self.assertEqual([path for path in said["mapped"] if "libfake" in path or "libcuda" in path], [])

    def test_a_kernel_that_comes_after_a_reader_of_the_table_is_an_error(self):
        said, _ = self.probe()
        self.assertIn("the kernel of Add at device_probe.cc", said["late"].pop())

    def test_training_on_a_gpu_that_is_not_there_ends_with_one_line(self):
        plugin = TESTS / "plugin_other" / "libfake.so"
        done = run(BIN / "kolo-train", "--device", "gpu", "--model", "mlp", "--steps", "1", driver=TESTS / "driver_13",
                   KOLO_CUDA_PLUGIN=plugin)
        self.assertEqual(done.returncode, 1, done.stderr)
        own = [line for line in done.stderr.splitlines() if line.startswith("kolo-train:")]
        self.assertEqual(len(own), 1, done.stderr)
        self.assertIn("there is no GPU in this process", own[0])


@unittest.skipUnless(REAL_PLUGIN, "this build has no plug-in (KOLO_CUDA)")
class CudaPlugin(ProbeTest):
    def lines(self, driver=None, **variables):
        done = run(BIN / "kolo-inspect", "gpu", driver=driver, **variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        return dict(line.split(": ", 1) for line in done.stdout.splitlines())

    def test_a_driver_of_an_older_cuda_is_told_with_both_versions(self):
        log = self.probe(TESTS / "driver_old")[1]
        words = ["the driver is for CUDA 11.4, this build is of CUDA ", " and needs driver "]
        self.assertEqual(len(log), 1, log)
        for word in words:
            self.assertIn(word, log[0])
            self.assertIn(word, self.lines(TESTS / "driver_old")["CUDA"])

    def test_the_stub_of_the_toolkit_is_told_from_a_driver(self):
        said, log = self.probe(pathlib.Path(STUB))
        self.assertEqual(said["device"], {"CPU:0"})
        self.assertEqual(len(log), 1, log)
        for word in ("cudaErrorStubLibrary, 34", "the toolkit's stub"):
            self.assertIn(word, log[0])

    @unittest.skipIf(has_driver(), "there is a driver")
    def test_the_build_is_described_without_a_driver(self):
        lines = self.lines()
        self.assertRegex(lines["CUDA"], r"^built with \d+\.\d+ for sm_80 .*\(PTX 8\.0\), driver ≥ \d+; here: none "
                                        r"\(libcuda\.so\.1 not found\)$")
        for name in ("cuDNN", "NCCL", "cuBLASLt"):
            self.assertRegex(lines[name], r"^built with(out| [\d.]+); here: not looked for \(no driver\)$")
        self.assertEqual(lines["plug-in"], REAL_PLUGIN)

    def test_libraries_are_looked_for_where_the_environment_says(self):
        """What is found there is of CUDA 12, or no library at all, and is passed over."""
        lines = self.lines(TESTS / "driver_old", KOLO_CUDA_LIBRARIES=TESTS / "libraries_12")
        self.assertRegex(lines["cuDNN"], r"/libraries_12/libcudnn\.so\.9: for CUDA 12, \d+ is asked for")

    def test_the_plug_in_exports_its_entry_and_nothing_of_cuda(self):
        symbols = subprocess.run(["nm", "-D", "--defined-only", REAL_PLUGIN], capture_output=True, text=True, check=True)
        names = [line.split()[-1] for line in symbols.stdout.splitlines()]
        self.assertIn("kolo_cuda_plugin", names)
        self.assertEqual([name for name in names if name.startswith(("cuda", "cu", "__cuda"))], [])


if __name__ == "__main__":
    unittest.main()
