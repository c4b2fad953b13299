#!/usr/bin/env python3
"""How long an elastic job stands still: from a fault to the next step that it completes.

  bench/elastic_times.py [--rounds N]

Trains build/release/tests/sleepy, steps of 50 ms and a checkpoint at each, under kolorun --elastic with two ranks on each of three hosts made of
network namespaces (tests/hosts/hosts.py; needs root). Prints a Markdown table with medians.
"""
import argparse
import pathlib
import statistics
import sys
import time

SOURCE = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(SOURCE / "tests" / "hosts"))
import elastic_jobs  # noqa: E402
import hosts  # noqa: E402

SAVED = r"Saving checkpoints for (\d+) into"


class Round(elastic_jobs.ElasticTest):
    """A job, from its start to its first step after the fault."""

    save_steps = 1

    def steps_again(self, fault):
        job = self.train("-H", self.names(1, 2, 3))
        job.wait_for(SAVED, times=20)
        begin = time.monotonic()
        fault(self)
        start, _ = job.wait_for(r"^starts at step (\d+)$", times=2)
        _, at = job.wait_for(rf"Saving checkpoints for {int(start[1]) + 1} into", after=begin)
        self.stop(job)
        return at - begin


FAULTS = {"the link of a host goes down": lambda test: test.cluster.link("node3", "down"),
          "`kill -9` of a rank": lambda test: test.kill_rank(5)}


def measure(fault, rounds):
    seconds = []
    for _ in range(rounds):
        test = Round("steps_again")
        test.setUp()
        try:
            seconds.append(test.steps_again(fault))
        finally:
            test.doCleanups()
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    hosts.enter()
    print("| fault | next step after, median | least | most |\n|---|---|---|---|")
    for name, fault in FAULTS.items():
        seconds = measure(fault, options.rounds)
        print(f"| {name} | {statistics.median(seconds):.1f} s | {min(seconds):.1f} s | {max(seconds):.1f} s |", flush=True)


if __name__ == "__main__":
    main()
