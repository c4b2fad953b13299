#!/usr/bin/env python3
"""How long kolo-train reads a table: of numbers, with a column of words, with decimal commas in quotes, with commas of thousands, and
with semicolons and decimal commas, of which six columns are left out.

Usage: python3 bench/table_times.py [--program build/release/bin/kolo-train] [--rows 1000000] [--rounds 5] [--tables ignored …]
       [--json]

Each table has nine columns and a label. The time is that from the start of the process to its line `data:`, by the clock and on
the CPU, less that of a table of 1,000 rows, in turns. Then the process is ended.
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import tempfile
import time

WORDS = ("red", "green", "blue", "white", "black", "grey", "pink", "brown")


TABLES = ("numbers", "words", "commas", "thousands", "ignored")
IGNORED = tuple(f"c{i}" for i in range(6))


def cells(kind, numbers):
    if kind == "thousands":
        return [f'"{numbers.uniform(-100000, 100000):,.2f}"' for _ in range(9)]
    row = [f"{numbers.uniform(-1000, 1000):.4f}" for _ in range(9)]
    if kind == "words":
        row[4] = numbers.choice(WORDS)
    if kind == "ignored":
        row = [number.replace(".", ",") for number in row]
        row[2], row[4] = numbers.choice(WORDS), f"{numbers.choice(WORDS)} street {numbers.randrange(100)}"
    if kind == "commas":
        row = ['"' + number.replace(".", ",") + '"' for number in row]
    return row


def write(path, kind, rows):
    numbers, between = random.Random(1), ";" if kind == "ignored" else ","
    with open(path, "w", encoding="utf-8") as file:
        file.write(between.join([*(f"c{i}" for i in range(9)), "label"]) + "\n")
        few = [between.join(cells(kind, numbers)) for _ in range(min(rows, 20000))]
        for i in range(rows):
            file.write(f"{few[i % len(few)]}{between}{i % 2}\n")
    return path


def seconds(program, kind, table):
    """By the clock, and of the CPU."""
    start = time.perf_counter()
    ignored = ("--ignore", ",".join(IGNORED)) if kind == "ignored" else ()
    process = subprocess.Popen([program, "--model", "mlp", "--data", table, "--steps", "1", "--threads", "1", *ignored], stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True)
    found = any(" data: " in line for line in process.stderr)
    clock = time.perf_counter() - start
    process.kill()
    _, _, used = os.wait4(process.pid, 0)
    if not found:
        raise SystemExit(f"{program} has read no data from {table}")
    return clock, used.ru_utime + used.ru_stime


def measured(program, folder, kind, rows, rounds):
    whole, few = (write(folder / f"{kind}-{count}.csv", kind, count) for count in (rows, 1000))
    found = []
    for _ in range(rounds):
        big, small = seconds(program, kind, whole), seconds(program, kind, few)
        found.append([a - b for a, b in zip(big, small)])
    clock, cpu = zip(*found)
    return {"table": kind, "rows": rows, "bytes": whole.stat().st_size, "clock_s": statistics.median(clock), "least_clock_s": min(clock),
            "cpu_s": statistics.median(cpu), "least_cpu_s": min(cpu)}


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--program", default="build/release/bin/kolo-train")
    words.add_argument("--rows", type=int, default=1000000)
    words.add_argument("--tables", nargs="+", default=TABLES, choices=TABLES)
    words.add_argument("--rounds", type=int, default=5)
    words.add_argument("--json", action="store_true")
    given = words.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for kind in given.tables:
            row = measured(given.program, pathlib.Path(folder), kind, given.rows, given.rounds)
            print(json.dumps(row) if given.json else
                  f"{kind:9}  {row['rows']} rows, {row['bytes'] / 1e6:.0f} MB  clock {row['clock_s']:.2f} s (least {row['least_clock_s']:.2f})"
                  f"  CPU {row['cpu_s']:.2f} s (least {row['least_cpu_s']:.2f})", flush=True)


if __name__ == "__main__":
    main()
