"""Each page of the shelves Start and Use begins with a sample, and a test runs it.

Usage: samples_test.py FOLDER_OF_PROGRAMS [PYTHON FOLDER_OF_THE_PACKAGE]

A first block of C++ or Python stands in a file that another test runs. This test runs each block of commands ("sh") on
these pages itself, and its output holds each line of the block behind it, whatever the numbers there are.
"""
import glob
import importlib.machinery
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAMS, PYTHON, PACKAGE = (sys.argv[1:] + [None, None])[:3]
ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.dont_write_bytecode = True
LOADER = importlib.machinery.SourceFileLoader("make_site", os.path.join(ROOT, "scripts", "make_site"))
make_site = importlib.util.module_from_spec(importlib.util.spec_from_loader("make_site", LOADER))
LOADER.exec_module(make_site)

BEGINNING = 110  # words before the sample
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Tests that run the examples name them.
RUNNERS = ["tests/models/quiet_examples_test.py", "tests/models/libtorch_test.py", "tests/python/examples_test.py",
           "tests/python/CMakeLists.txt", "tests/package/install_test.sh"]
SECONDS = 100


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def unindented(text):
    return "\n" + "\n".join(line.strip() for line in text.strip().splitlines()) + "\n"


def run_by_a_test():
    """The files whose code tests run: the tests, and the examples that one of RUNNERS names."""
    named = "\n".join(read(path) for path in RUNNERS if os.path.exists(os.path.join(ROOT, path)))
    tests = [path for ending in ("*.cc", "*.py")
             for path in glob.glob(os.path.join(ROOT, "tests", "**", ending), recursive=True)]
    examples = [path for folder in ("models/examples", "python/examples")
                for path in glob.glob(os.path.join(ROOT, folder, "**", "*.*"), recursive=True)
                if path.endswith((".cc", ".py")) and
                re.search(rf"\b{os.path.splitext(os.path.basename(path))[0]}\b", named)]
    return tests + examples


def environment(folder):
    """As a user's shell has it: the programs in PATH, the package for Python, an mpirun that starts where CI runs."""
    values = {name: value for name, value in os.environ.items() if not name.startswith(("OMPI_", "PMIX_", "KOLO_"))}
    values.update({
        "PATH": f"{folder}/bin:{PROGRAMS}:{values['PATH']}", "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1",
        "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_plm": "isolated",
        "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none",
        "OMPI_MCA_btl_vader_single_copy_mechanism": "none"})
    if PACKAGE:
        values["PYTHONPATH"] = PACKAGE
    return values


def run(commands):
    """What the commands of a block write, in a checkout whose build is elsewhere."""
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(os.path.join(folder, "build", "release"))
        os.makedirs(os.path.join(folder, "bin"))
        os.symlink(PROGRAMS, os.path.join(folder, "build", "release", "bin"))
        for name in ("models", "python", "docs"):
            os.symlink(os.path.join(ROOT, name), os.path.join(folder, name))
        if PYTHON:
            os.symlink(PYTHON, os.path.join(folder, "bin", "python3"))
        done = subprocess.run(["bash", "-euc", commands], cwd=folder, env=environment(folder), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS, check=False)
    return done.returncode, done.stdout


def missing_for(commands):
    """Why this machine cannot run them, or ""."""
    if "python3" not in commands:
        return ""
    if not PYTHON:
        return "this build has no Python package"
    if "numpy_loop" not in commands and subprocess.run([PYTHON, "-c", "import torch"], capture_output=True,
                                                       check=False).returncode:
        return f"{PYTHON} has no PyTorch"
    return ""


def pattern(line):
    """A line of output, with any number where it has one, and any text where it has an ellipsis."""
    return re.sub(r"\d+(?:[.,:]\d+)*", r"[\\d.,:]+", re.escape(line.strip()).replace(r"\.", ".")).replace("…", ".*")


def samples():
    for shelf in ("Start", "Use"):
        for _, path in make_site.shelves()[shelf]:
            text = read(path)
            blocks = list(BLOCK.finditer(text))
            yield path, text, blocks


class Samples(unittest.TestCase):
    def test_each_page_begins_with_one(self):
        for path, text, blocks in samples():
            with self.subTest(page=path):
                self.assertTrue(blocks, "no block of code")
                self.assertLessEqual(len(text[:blocks[0].start()].split()), BEGINNING, "the sample comes late")
                self.assertIn(blocks[0].group(1), ("cpp", "python", "sh"))

    def test_code_stands_in_files_that_tests_run(self):
        sources = [unindented(read(path)) for path in run_by_a_test()]
        for path, _, blocks in samples():
            if blocks and blocks[0].group(1) in ("cpp", "python"):
                with self.subTest(page=path):
                    wanted = unindented(blocks[0].group(2))
                    self.assertTrue(any(wanted in source for source in sources), "no file that a test runs holds:" + wanted)

    def test_commands_print_what_the_page_shows(self):
        found = 0
        for path, text, blocks in samples():
            for block, after in zip(blocks, blocks[1:] + [None]):
                if block.group(1) != "sh":
                    continue
                commands = block.group(2)
                with self.subTest(page=path, commands=commands):
                    missing = missing_for(commands)
                    if missing:
                        print(f"{path}: a sample does not run: {missing}")
                        continue
                    found += 1
                    code, output = run(commands)
                    self.assertEqual(code, 0, output)
                    shown = after and not after.group(1) and not text[block.end():after.start()].strip()
                    for line in after.group(2).splitlines() if shown else []:
                        self.assertRegex(output, pattern(line))
        self.assertGreater(found, 5)

    def test_the_gallery_names_each_example(self):
        gallery = read("docs/examples.md")
        for folder in ("models/examples", "python/examples"):
            names = [name for name in os.listdir(os.path.join(ROOT, folder))
                     if not name.endswith((".txt", ".cmake")) and not name.startswith((".", "__"))]
            self.assertGreater(len(names), 5)
            for name in names:
                self.assertIn(f"(../{folder}/{name})", gallery)

    def test_numbers_of_a_line_may_differ(self):
        self.assertRegex("step 7: 99.5 % of 10 (new)", pattern("step 600: 100.0 % of 1000 (new)"))
        self.assertNotRegex("step 7: 99.5 % of 10 (old)", pattern("step 600: 100.0 % of 1000 (new)"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
