#!/usr/bin/env python3
"""How long it takes until a cluster's client is told of a fault: two hosts, the worker on one and two parameter servers on the other.

  bench/cluster_fault_times.py [--kinds "killed;link down;…"] [--rounds N] [--json]

Hosts are network namespaces (tests/hosts/hosts.py; needs root), faults those of tests/hosts/cluster_faults.py, each round with servers
of its own. Prints a Markdown table of medians and worst times, or with --json an object for each kind.
"""
import argparse
import json
import pathlib
import statistics
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(SOURCE / "tests" / "hosts"))
import cluster_faults  # noqa: E402
import hosts  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", default=";".join(cluster_faults.KINDS), help="separated by semicolons")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    hosts.enter()
    if not options.json:
        print("| fault | limit | median | worst |\n|---|---|---|---|")
    for kind in options.kinds.split(";"):
        what, _, limit, _ = cluster_faults.KINDS[kind]
        times = [cluster_faults.measure(kind)[0] for _ in range(options.rounds)]
        median, worst = statistics.median(times), max(times)
        if options.json:
            print(json.dumps({"kind": kind, "fault": what, "limit_s": limit, "median_s": round(median, 4), "worst_s": round(worst, 4)}), flush=True)
        else:
            print(f"| {what} | {limit} s | {median:.3f} s | {worst:.3f} s |", flush=True)


if __name__ == "__main__":
    main()
