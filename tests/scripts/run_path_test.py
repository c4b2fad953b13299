"""No program and no library looks for libraries in the working directory: their run paths, as built and as installed.

Usage: run_path_test.py BUILD_FOLDER
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv.pop(1))


def run_paths(folder):
    """For each ELF file below the folder the entries of its run path."""
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file() or path.suffix in (".o", ".a"):
            continue
        with open(path, "rb") as file:
            if file.read(4) != b"\x7fELF":
                continue
        text = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
        for entries in re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", text):
            yield path, entries.split(":")


class RunPath(unittest.TestCase):
    def check(self, *folders):
        found = [pair for folder in folders for pair in run_paths(folder)]
        self.assertGreater(len(found), 3, folders)
        for path, entries in found:
            for entry in entries:
                self.assertTrue(entry.startswith(("/", "$ORIGIN")), f"{path}: {entries}")
        return found

    def test_as_built(self):
        self.check(BUILD / "bin", BUILD / "lib", BUILD / "python")

    def test_as_installed(self):
        with tempfile.TemporaryDirectory() as prefix:
            subprocess.run(["cmake", "--install", BUILD, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
            for path, entries in self.check(pathlib.Path(prefix)):
                self.assertFalse([entry for entry in entries if str(BUILD) in entry], f"{path}: {entries}")
                text = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
                self.assertNotIn("not found", text, path)


if __name__ == "__main__":
    unittest.main()
