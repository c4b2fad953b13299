#!/usr/bin/env python3
"""What the cost model behind `kolo-bench simulate` predicts for few ranks, beside what these take.

  bench/model_error.py [--rate 1gbit] [--json]

On two hosts made of network namespaces (tests/hosts/hosts.py; needs root) with one and with two ranks each: the constants by
`kolo-bench tune`, then allreduces by `kolo-bench allreduce` with them. Prints a Markdown table of the prediction, median and least
time of each series, and the error, prediction ÷ median − 1. Takes about a minute.
"""
import argparse
import json
import pathlib
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(SOURCE / "tests" / "hosts"))
import hosts  # noqa: E402

SIZES = "1048576,4194304,16777216"
ALGORITHMS = {1: ["ring"], 2: ["ring", "halving_doubling", "hierarchical"]}


def bench(cluster, *arguments):
    result = cluster.run(["mpirun", "--hostfile", cluster.hostfile, "--bind-to", "none", hosts.BIN / "kolo-bench", *arguments], deadline=120)
    if result.code != 0:
        sys.exit(f"model_error.py: {' '.join(map(str, arguments))}: {result}")
    return [json.loads(line) for line in result.out.splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", default="1gbit")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    hosts.enter()
    rows, notes = [], []
    costs = hosts.SHARED / "costs.json"
    for slots, algorithms in ALGORITHMS.items():
        with hosts.Hosts(2, slots, options.rate) as cluster:
            bench(cluster, "tune", "--output", costs)
            table = json.loads(costs.read_text())
            notes.append(f"2 hosts x {slots}: inside {table['inside']['GBps']:.2f} GB/s, between {table['between']['latency_us']:.1f} us and "
                         f"{table['between']['GBps'] * 1e3:.1f} MB/s, reduced {table['reduce_GBps']:.1f} GB/s")
            for algorithm in algorithms:
                for row in bench(cluster, "allreduce", "--json", "--sizes", SIZES, "--algorithm", algorithm, "--costs", costs):
                    if "predicted_us" in row:
                        rows.append({"hosts": 2, "ranks_per_host": slots, "algorithm": algorithm, "bytes": row["bytes"], "predicted_ms": row["predicted_us"] / 1e3,
                                     "median_ms": row["us"] / 1e3, "min_ms": row["min_us"] / 1e3, "error": row["predicted_us"] / row["us"] - 1})
    if options.json:
        for row in rows:
            print(json.dumps(row))
        return
    print("\n".join(notes) + "\n\n| ranks | algorithm | bytes | predicted ms | measured ms (median, min) | error |\n|---|---|---|---|---|---|")
    for row in rows:
        print(f"| 2 hosts × {row['ranks_per_host']} | `{row['algorithm']}` | {row['bytes']:,} | {row['predicted_ms']:.2f} | "
              f"{row['median_ms']:.2f}, {row['min_ms']:.2f} | {row['error'] * 100:+.0f} % |")


if __name__ == "__main__":
    main()
