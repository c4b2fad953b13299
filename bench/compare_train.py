#!/usr/bin/env python3
"""Training steps of kolo and of PyTorch, in turns: a Markdown table of each one's median and minimum.

  bench/compare_train.py [--peers DIR] [--rounds N] [--seconds S] [--ranks 1,2]

DIR holds torch_bench.py, which does the same work as kolo-bench train and prints the same fields; it needs
Debian's python3-torch and libopenblas0-pthread. Quiet machine, please: a round of each after the other, one
thread a rank.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess

SOURCE = pathlib.Path(__file__).resolve().parents[1]
KOLO = SOURCE / "build" / "release" / "bin" / "kolo-bench"
MODELS = ("mlp", "lenet", "resnet20")
# OpenBLAS 0.3.21 does not know every CPU; told, it takes its AVX-512 kernels.
TOLD = {"OPENBLAS_CORETYPE": "SKYLAKEX"}


def rows(command, environment=None):
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True,
                          env={**os.environ, "OMP_NUM_THREADS": "1", **(environment or {})})
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def contestants(options, ranks):
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    mpirun = ["mpirun", *root, "--oversubscribe", "--bind-to", "none", "-n", str(ranks)] if ranks > 1 else []
    common = ["--threads", "1", "--models", ",".join(MODELS), "--seconds", str(options.seconds)]
    torch = ["/usr/bin/python3", str(options.peers / "torch_bench.py"), "--ranks", str(ranks), *common]
    yield "kolo", [*mpirun, str(KOLO), "train", "--json", *common], None
    yield "PyTorch", torch, None
    yield "PyTorch, channels last", [*torch, "--channels-last"], None
    yield "PyTorch, OpenBLAS told", torch, TOLD


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=pathlib.Path, default=SOURCE.parent / "shared" / "peers")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--ranks", default="1,2")
    options = parser.parse_args()
    print("| model | ranks | program | median ms | minimum ms | kolo is faster by (median) |")
    print("|---|---|---|---|---|---|")
    for ranks in map(int, options.ranks.split(",")):
        found = {}
        for _ in range(options.rounds):
            for name, command, environment in contestants(options, ranks):
                for row in rows(command, environment):
                    found.setdefault((row["model"], name), []).append(row)
        for (model, name), measured in sorted(found.items(), key=lambda item: MODELS.index(item[0][0])):
            median = statistics.median(row["ms"] for row in measured)
            kolo = statistics.median(row["ms"] for row in found[model, "kolo"])
            ratio = "" if name == "kolo" else f"{median / kolo:.2f}x"
            print(f"| {model} | {ranks} | {name} | {median:.1f} | {min(row['min_ms'] for row in measured):.1f} | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
