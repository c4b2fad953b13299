#!/usr/bin/env python3
"""What users meet on one machine or another: drivers, GPUs and libraries that are missing, hidden, shared or too small. The
table of CUDA's functions plays the driver's answers."""
import ctypes
import glob
import json
import os
import re
import shutil
import struct
import subprocess
import unittest

from fake_gpu import CALM, FAKE, GPU, SMALL, FakeGpuTest
from programs import BIN, Result, environment, finish, kolorun, mpirun, run, start

TESTS = FAKE.parent
MLP = ("--model", "mlp", "--steps", 2)
EVERY = [f"0000:{0x3b + i:02x}:00.0" for i in range(8)]  # places on the bus of a machine's eight GPUs
THIRD = "GPU-02000000-0000-0000-0000-000000000000"


def driver(folder):
    return {"LD_LIBRARY_PATH": f"{TESTS / folder}:{os.environ.get('LD_LIBRARY_PATH', '')}"}


def has_driver():
    try:
        return ctypes.CDLL("libcuda.so.1") is not None
    except OSError:
        return False


# Shows each rank one GPU, as Slurm does with --gpus-per-task=1.
GPU_PER_TASK = ["sh", "-c", 'CUDA_VISIBLE_DEVICES=$OMPI_COMM_WORLD_LOCAL_RANK exec "$0" "$@"']


def weights_of(path):
    """The tensors of f32 in a file of safetensors: {name: values}."""
    content = path.read_bytes()
    size, = struct.unpack_from("<Q", content)
    header = {name: entry for name, entry in json.loads(content[8:8 + size]).items() if name != "__metadata__"}
    values = {}
    for name, entry in header.items():
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        if entry["dtype"] == "F32":
            values[name] = struct.unpack(f"<{(end - begin) // 4}f", content[begin:end])
    return values


def distance(ours, theirs):
    return max(abs(a - b) for a, b in zip(ours, theirs, strict=True))


def given_gpus(log):
    """The places on the bus of the GPUs that sessions were given, in the log's order."""
    return re.findall(r"Creating kolo device \(/gpu:\d+\) -> .*pci bus id: ([^,]+),", log)


class Peers(FakeGpuTest):
    def test_gpus_that_reach_each_other_copy_without_the_host(self):
        for peers in ({}, {"KOLO_FAKE_CUDA_PEERS": 1}):
            with self.subTest(peers=peers):
                log = self.folder / "calls"
                result = self.assert_ok(run("gpu_numerics", "--once", "--only", "towers", KOLO_FAKE_CUDA_GPUS=2,
                                            KOLO_FAKE_CUDA_LOG=log, **GPU, **peers))
                self.assertIn('"numerics/towers_2","status":"passed"', result.out)
                calls = log.read_text().split()
                self.assertEqual(calls.count("cudaDeviceEnablePeerAccess"), 2 if peers else 0)


class NoGpu(FakeGpuTest):
    def assert_falls_back(self, *words, **env):
        """One line that says why, and the CPU computes; --device gpu is an error of one line."""
        result = self.assert_ok(self.train("auto", *MLP, **env))
        told = [line for line in result.err.splitlines() if "CUDA: none (" in line]
        self.assertEqual(len(told), 1, result.err)
        for word in words:
            self.assertIn(word, told[0])
        self.assertEqual(given_gpus(result.err), [])
        result = run("kolo-train", "--data", self.folder, *SMALL, "--device", "gpu", *MLP, **env)
        self.assert_one_line(result, 1, "--device gpu was asked for, but there is no GPU in this process; ")

    @unittest.skipIf(has_driver(), "there is a driver")
    def test_no_driver(self):
        self.assert_falls_back("libcuda.so.1 not found")

    def test_a_driver_that_is_too_old(self):
        self.assert_falls_back("the driver is for CUDA 11.4", "needs driver", **driver("driver_old"))

    def test_the_toolkits_stub_as_driver(self):
        self.assert_falls_back("cudaErrorStubLibrary, 34", "must not be in LD_LIBRARY_PATH", **driver("driver_stub"))

    def test_a_plug_in_of_another_build(self):
        self.assert_falls_back("is of another build than libkolo",
                               **{**GPU, "KOLO_CUDA_PLUGIN": TESTS / "plugin_other" / "libfake.so"})

    def test_drivers_that_do_not_start(self):
        """The second call asks for the number of GPUs, which starts the driver."""
        for code, word in ((46, "exclusive mode"), (802, "nvidia-fabricmanager"), (803, "update without reboot"),
                           (999, "device files")):
            with self.subTest(code=code):
                self.assert_falls_back(f", {code})", word, **GPU, KOLO_FAKE_CUDA_FAIL=f"2:{code}")

    def test_every_gpu_is_hidden(self):
        for shown in ("", "GPU-ffffffff"):
            with self.subTest(CUDA_VISIBLE_DEVICES=shown):
                self.assert_falls_back("cudaErrorNoDevice, 100", "CUDA_VISIBLE_DEVICES", **GPU, CUDA_VISIBLE_DEVICES=shown)

    def test_a_gpu_of_an_old_kind_is_ignored(self):
        env = {**GPU, "KOLO_FAKE_CUDA_CAPABILITY": 7}
        result = self.assert_ok(self.train("auto", *MLP, **env))
        self.assertIn("Ignoring visible gpu device (device: 0, name: Fake, pci bus id: 0000:3b:00.0) with Cuda compute "
                      "capability 7.0. The minimum required Cuda capability is 8.0.", result.err)
        self.assertEqual(given_gpus(result.err), [])
        self.assert_one_line(self.train("gpu", *MLP, **env), 1, "no GPU in this process that kolo has code for")


class Visible(FakeGpuTest):
    def probe(self, shown, visible_device_list):
        """A session on a machine of eight GPUs."""
        env = {} if shown is None else {"CUDA_VISIBLE_DEVICES": shown}
        return Result(subprocess.run([TESTS / "device_probe", visible_device_list], capture_output=True, text=True,
                                     timeout=60, env=environment(**GPU, KOLO_FAKE_CUDA_GPUS=8, **env)))

    def test_what_the_driver_shows_is_counted_from_zero(self):
        for shown, visible, expected in (
                (None, "", EVERY), (None, "0", EVERY[:1]), (None, "5,3", [EVERY[5], EVERY[3]]),
                ("2,3", "", EVERY[2:4]), ("2,3", "0", EVERY[2:3]), ("2,3", "1", EVERY[3:4]), ("3,2", "0", EVERY[3:4]),
                (THIRD, "", EVERY[2:3]), (THIRD, "0", EVERY[2:3]), (THIRD + ",GPU-05", "1", EVERY[5:6]),
                ("7", "", EVERY[7:]), ("7", "0", EVERY[7:]), ("2,none,3", "", EVERY[2:3]),
                (None, "local", EVERY[:1]), ("7", "local", EVERY[7:]), ("3,2", "local", EVERY[3:4]),
                ("", "", []), ("", "0", []), ("", "1", []), ("", "local", [])):
            with self.subTest(CUDA_VISIBLE_DEVICES=shown, visible_device_list=visible):
                result = self.assert_ok(self.probe(shown, visible))
                self.assertEqual(given_gpus(result.err), expected)
                self.assertEqual(re.findall(r"^device GPU:(\d)", result.out, re.M), [str(i) for i in range(len(expected))])

    def test_a_list_that_goes_beyond_says_what_it_counts(self):
        for shown, visible, count in (("7", "1", 1), (THIRD, "1", 1), ("2,3", "2", 2), (None, "8", 8)):
            with self.subTest(CUDA_VISIBLE_DEVICES=shown, visible_device_list=visible):
                result = self.probe(shown, visible)
                self.assertEqual(result.code, 1, result.out)
                self.assertIn(f"'visible_device_list' listed an invalid GPU id '{visible}' but visible device count is {count}; "
                              "where a scheduler or CUDA_VISIBLE_DEVICES shows each rank GPUs of its own", result.err)
                self.assertIn('visible_device_list = "local" takes the local rank\'s', result.err)


class Node(FakeGpuTest):
    def test_each_of_eight_ranks_has_a_gpu(self):
        result = self.assert_ok(finish(start("kolo-train", "--data", self.folder, *SMALL, "--device", "gpu", *MLP, *CALM,
                                             launcher=kolorun(8), **GPU, KOLO_FAKE_CUDA_GPUS=8)))
        self.assertEqual(sorted(given_gpus(result.err)), EVERY)
        for line in ("Found device 0 with properties: ", "major: 9 minor: 0 memoryClockRate (GHz) 2.619",
                     "pciBusID 0000:42:00.0", "DMA: 0 "):
            self.assertIn(line, result.err)
        ours = {e["global_step"]: e["loss"] for e in result.events if e["event"] == "progress"}
        self.assert_close(ours, self.losses("cpu", *MLP, *CALM, ranks=8))

    def test_ranks_of_which_a_scheduler_shows_each_a_gpu(self):
        result = self.assert_ok(finish(start("kolo-train", "--data", self.folder, *SMALL, "--device", "gpu", *MLP,
                                             launcher=[*kolorun(2), *GPU_PER_TASK], **GPU, KOLO_FAKE_CUDA_GPUS=8)))
        self.assertEqual(sorted(given_gpus(result.err)), EVERY[:2])

    def train_as_in_the_readme(self, name, steps, *launcher, **env):
        """Goes on in the folder of that name; the log, and the weights that the README's program has saved."""
        folder = self.folder / name
        result = self.assert_ok(finish(start("train_mnist", steps, self.folder, launcher=["env", "-C", folder, *launcher], **env)))
        self.assertIn(f"trained up to step {steps}\n", result.out)
        return result.err, weights_of(folder / "train_logs" / f"model.ckpt-{steps}.safetensors")

    def test_the_readmes_program_trains_where_a_scheduler_shows_each_rank_a_gpu(self):
        (self.folder / "cpu").mkdir()
        _, first = self.train_as_in_the_readme("cpu", 1, *mpirun(2))  # it draws other first weights each time
        shutil.copytree(self.folder / "cpu", self.folder / "gpu")
        log, ours = self.train_as_in_the_readme("gpu", 3, *mpirun(2), *GPU_PER_TASK, **GPU, KOLO_FAKE_CUDA_GPUS=2)
        self.assertEqual(sorted(given_gpus(log)), EVERY[:2])
        log, theirs = self.train_as_in_the_readme("cpu", 3, *mpirun(2))
        self.assertEqual(given_gpus(log), [])
        self.assertEqual(ours.keys(), theirs.keys())
        # Mostly 5e-6 of the change. With some first weights a maximum or a ReLU falls to the other side of its edge on one of
        # the devices, which was 0.01; of a rank that has not shared its gradients it is about 1.
        for name, values in ours.items():
            self.assertLess(distance(values, theirs[name]), 0.1 * distance(values, first[name]), name)

    def test_memory_that_is_short_names_its_owners(self):
        """Two ranks divide a GPU of 1 GiB, of which another process has left 16 MiB."""
        result = self.train("gpu", *MLP, ranks=2, KOLO_FAKE_CUDA_TAKEN=1008)
        self.assertEqual(result.code, 1, result.err)
        for text in (r"failed to allocate 460\.80M \(483183616 bytes\) from device: CUDA_ERROR_OUT_OF_MEMORY",
                     r"is out of memory: \d+ bytes were asked for, \d+ bytes are in use of the limit of 483183820 bytes",
                     r'the most of it: .* for variable "fc\d/\w"', r"of the device's 1\.00G is what libraries and other processes have"):
            self.assertRegex(result.err, text)

    def test_towers_are_added_on_the_cpu(self):
        done = subprocess.run([BIN / "multi_tower"], capture_output=True, text=True, timeout=60,
                              env=environment(**GPU, KOLO_FAKE_CUDA_GPUS=4))
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        local = "/job:localhost/replica:0/task:0/device:"
        self.assertEqual(lines[-1], "[[44,56],[98,128]]")
        for line in (f"{local}GPU:3 -> device: 3, name: Fake, pci bus id: {EVERY[3]}, compute capability: 9.0",
                     f"tower/product: (MatMul): {local}GPU:2", f"tower_1/product: (MatMul): {local}GPU:3",
                     f"sum: (AddN): {local}CPU:0"):
            self.assertIn(line, lines)

    def test_the_build_is_described_with_its_gpus(self):
        done = subprocess.run([BIN / "kolorun", "--check-build"], capture_output=True, text=True, timeout=60,
                              env=environment(**GPU, KOLO_FAKE_CUDA_GPUS=8))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"\nCUDA: built with .*; here: driver .*\(CUDA [\d.]+\), 8 GPUs: Fake, sm_90, 1\.0 GiB\n")
        self.assertIn(f"here: {FAKE}/libraries/libcublasLt.so.", done.stdout)


class Libraries(FakeGpuTest):
    """Where a machine has none of NVIDIA's libraries, or those of another version: a root without the folders of them."""

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
            self.skipTest("folders can be hidden by root alone, where the kernel lets it")

    def train_without(self, *args, ranks=1, **env):
        cache = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
        files = re.findall(r"lib(?:cudnn|cublasLt|nccl)\.so\S* .*=> (\S+)", cache) + glob.glob("/usr/local/cuda*/lib64/libc*.so")
        hidden = sorted({os.path.dirname(os.path.realpath(file)) for file in files})
        script = 'for d in $HIDDEN; do mount -t tmpfs none "$d" || exit; done; exec "$0" "$@"'
        return finish(start("kolo-train", "--data", self.folder, *SMALL, *CALM, "--device", "gpu", *args,
                            launcher=["unshare", "--mount", "sh", "-c", script, *(mpirun(ranks) if ranks > 1 else [])],
                            **{**GPU, "HIDDEN": " ".join(hidden), "PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/", **env}))

    def warnings(self, result):
        return [line for line in self.assert_ok(result).err.splitlines() if "many times slower" in line]

    def test_without_them_own_kernels_compute_and_one_line_each_says_so(self):
        args = ("--model", "lenet", "--steps", 2)
        result = self.train_without(*args, KOLO_CUDA_LIBRARIES="/nowhere")
        lines = self.warnings(result)
        self.assertEqual(len(lines), 2, lines)
        self.assertRegex("\n".join(lines), r"convolutions run on kolo's own kernels, .*: libcudnn\.so\.9 does not open: "
                                           r"/nowhere/libcudnn\.so\.9: cannot open")
        self.assertRegex("\n".join(lines), r"matrix products run on kolo's own kernel, .*: libcublasLt\.so\.\d+ does not open: "
                                           r"/nowhere/libcublasLt")
        ours = {e["global_step"]: e["loss"] for e in result.events if e["event"] == "progress"}
        self.assert_close(ours, self.losses("cpu", *args, *CALM))

    def test_without_nccl_gradients_travel_through_the_hosts_memory(self):
        result = self.assert_ok(self.train_without(*MLP, ranks=2, KOLO_FAKE_CUDA_GPUS=2, KOLO_CUDA_LIBRARIES="/nowhere"))
        lines = [line for line in result.err.splitlines() if "without NCCL" in line]
        self.assertEqual(len(lines), 1, result.err)
        self.assertRegex(lines[0], r"rank 0 on \S+: libnccl\.so\.2 does not open: /nowhere/libnccl\.so\.2: cannot open")
        ours = {e["global_step"]: e["loss"] for e in result.events if e["event"] == "progress"}
        self.assert_close(ours, self.losses("cpu", *MLP, *CALM, ranks=2))

    def test_those_of_another_cuda_are_passed_over(self):
        lines = self.warnings(self.train_without("--model", "lenet", "--steps", 1, KOLO_CUDA_LIBRARIES=TESTS / "libraries_12"))
        self.assertRegex("\n".join(lines), r"cuDNN: .*/libraries_12/libcudnn\.so\.9: for CUDA 12, \d+ is asked for")

    def test_one_that_lacks_a_function_is_off(self):
        lines = self.warnings(self.train_without("--model", "lenet", "--steps", 1, KOLO_CUDA_LIBRARIES=TESTS / "libraries_13"))
        self.assertRegex("\n".join(lines), r"cuDNN: .*/libraries_13/libcudnn\.so\.9 .*lacks cudnnCreate")


if __name__ == "__main__":
    unittest.main()
