#!/usr/bin/env python3
"""A second build tree, where the CUDA toolkit's folder is empty: it says so, and is the first one without the plug-in.

Usage: tests/package/no_toolkit_test.py BUILD_FOLDER
Nearly nothing is built here: each of its commands is one of BUILD_FOLDER's, for which the other tests speak.
Skipped (77) where no folder can be hidden, or the compiler shares its folder with the system.
"""
import os, pathlib, re, shutil, subprocess, sys, tempfile, unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
CACHE = dict(re.findall(r"^(\w+):\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.M))
TOOLKIT = pathlib.Path(os.path.realpath(CACHE["CMAKE_CUDA_COMPILER"])).parents[1]
SAME = ["CMAKE_UNITY_BUILD", "CMAKE_UNITY_BUILD_BATCH_SIZE", "KOLO_SINGLE_TURN", "CMAKE_BUILD_TYPE", "CMAKE_C_COMPILER", "CMAKE_CXX_COMPILER", "CMAKE_CXX_FLAGS"]
# Of NVIDIA's compiler and headers, and of kolo's sources for them.
OF_NVIDIA = re.compile(r"\S*(?:nvcc|\.cu\b|/(?:device|kernels)/cuda/|/nccl/|fake_cuda|kolo_cuda)\S*|\S*" + re.escape(str(TOOLKIT)) + r"\S*")
# They include nothing of NVIDIA's, and are tested without it.
STAND_ALONE = ["core/device/cuda/libraries.cc", "tests/core/device/cuda/libraries_test.cc", "tests/core/device/cuda/fake_cudnn.c"]


def without_toolkit(*command):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("CUDA", "NVCC", "KOLO_"))}
    inside = 'mount -t tmpfs none "$0" && exec "$@"'
    return subprocess.run(["unshare", "--mount", "sh", "-c", inside, TOOLKIT, *map(str, command)], capture_output=True, text=True,
                          timeout=100, env=kept)


def configure(folder, *options):
    same = [f"-D{name}={CACHE[name]}" for name in SAME if name in CACHE]
    return without_toolkit("cmake", "-S", SOURCE, "-B", folder, "-G", "Ninja", *same, *options)


def asked_of_ninja(folder, *question):
    done = subprocess.run(["ninja", "-C", folder, "-t", *question], capture_output=True, text=True, check=True)
    return done.stdout.replace(str(folder), "BUILD").splitlines()


class NoToolkit(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.tree = pathlib.Path(cls.folder.name).resolve() / "build"
        cls.configured = configure(cls.tree)
        if cls.configured.returncode != 0:
            raise AssertionError(cls.configured.stderr)
        cls.commands = asked_of_ninja(cls.tree, "commands", "all")

    def test_the_configuration_says_so(self):
        lines = [line for line in self.configured.stdout.splitlines() if line.startswith("-- CUDA:")]
        self.assertEqual(lines, ["-- CUDA: no plug-in for GPUs, no CUDA compiler that works was found"])

    def test_who_asks_for_gpus_is_told(self):
        done = configure(self.tree.parent / "asked", "-DKOLO_CUDA=ON")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("KOLO_CUDA=ON, but no CUDA compiler that works was found; KOLO_CUDA=AUTO builds without GPUs",
                      " ".join(done.stderr.split()))

    def test_each_command_is_one_of_the_build_with_the_toolkit(self):
        self.assertGreater(len(self.commands), 500)
        with_toolkit = set(asked_of_ninja(BUILD, "commands", "all"))
        self.assertEqual([command for command in self.commands if command not in with_toolkit], [])

    def test_no_source_is_for_nvidias_compiler_or_headers(self):
        sources = {found.group() for command in self.commands for found in OF_NVIDIA.finditer(command)}
        sources = {path for path in sources if path.startswith(str(TOOLKIT)) or not re.search(r"\.(d|o)$", path)}
        allowed = {str(SOURCE / path) for path in STAND_ALONE}
        self.assertEqual(sources - allowed, set())

    def test_all_that_is_built_is_made_or_there(self):
        made = {line.split(": ")[0] for line in asked_of_ninja(self.tree, "targets", "all")}
        needed = set(asked_of_ninja(self.tree, "inputs", "all"))
        self.assertGreater(len(needed), 500)
        self.assertEqual([path for path in needed - made if not (self.tree / path.replace("BUILD", str(self.tree))).exists()], [])

    def test_what_opens_the_plug_in_compiles(self):
        sources = ["core/device/plugin.cc", STAND_ALONE[0]]

        def compiles(command, source):
            read = command.rpartition(" -c ")[2].replace("BUILD", str(self.tree), 1)
            joined = read.endswith("_cxx.cxx") and f'#include "{source}"' in pathlib.Path(read).read_text()  # a unity build's
            return read == str(source) or joined

        objects = [re.search(r" -o (\S+)", command).group(1) for command in self.commands
                   for source in sources if compiles(command, SOURCE / source)]
        self.assertEqual(len(objects), 2)
        done = without_toolkit("cmake", "--build", self.tree, "--target", *objects)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_programs_say_so(self):
        """Those of the other tree, by the same commands, without the plug-in beside them."""
        lib = self.tree.parent / "lib"
        lib.mkdir()
        for library in (BUILD / "lib").glob("libkolo.so*"):
            shutil.copy(library, lib, follow_symlinks=False)
        done = subprocess.run([BUILD / "bin" / "kolo-inspect", "gpu"], capture_output=True, text=True, timeout=60, env={
            **{k: v for k, v in os.environ.items() if not k.startswith("KOLO_")}, "LD_LIBRARY_PATH": str(lib)})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"^CUDA: no plug-in; here: ")
        self.assertIn(f"plug-in: none (libkolo_cuda.so is neither in {lib} nor in {lib}/kolo)\n", done.stdout)


if str(TOOLKIT) in ("/", "/usr", "/usr/local") or subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
    print(f"skipped: {TOOLKIT} cannot be hidden")
    sys.exit(77)
unittest.main()
