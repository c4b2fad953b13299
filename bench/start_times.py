#!/usr/bin/env python3
"""How much later a process on a machine without a GPU starts with the plug-in installed: medians, in milliseconds.

  bench/start_times.py [--build DIR] [--starts N]

In turns: a program that makes its devices and reads the table of kernels, over a libkolo with libkolo_cuda.so beside it and over a
copy without. Quiet machine, please.
"""
import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[1]


def milliseconds(program, folder):
    begin = time.perf_counter()
    subprocess.run([program], check=True, capture_output=True, env={**os.environ, "LD_LIBRARY_PATH": str(folder)})
    return 1e3 * (time.perf_counter() - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=SOURCE / "build" / "release")
    parser.add_argument("--starts", type=int, default=50)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        folders = {name: pathlib.Path(root) / name for name in ("without", "with")}
        for name, folder in folders.items():
            folder.mkdir()
            for file in (options.build / "lib").glob("libkolo*.so*"):
                if name == "with" or "cuda" not in file.name:
                    shutil.copy(file, folder, follow_symlinks=True)
        taken = {name: [] for name in folders}
        for start in range(options.starts + 2):
            for name, folder in folders.items():
                took = milliseconds(options.build / "tests" / "device_probe", folder)
                if start >= 2:  # the first ones fill caches
                    taken[name].append(took)
    medians = {name: statistics.median(times) for name, times in taken.items()}
    print(f"without {medians['without']:.2f} ms, with {medians['with']:.2f} ms, {medians['with'] - medians['without']:+.2f} ms")


main()
