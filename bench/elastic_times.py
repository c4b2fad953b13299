#!/usr/bin/env python3
"""How long an elastic job stands still: from a fault to the next step that it completes.

  bench/elastic_times.py [--rounds N] [--slurm]

Trains build/release/tests/sleepy, steps of 50 ms and a checkpoint at each, under kolorun --elastic with two ranks on each of three hosts made of
network namespaces (tests/hosts/hosts.py; needs root). --slurm: in jobs of a Slurm there, not over ssh. Prints a Markdown table with medians.
"""
import argparse
import pathlib
import statistics
import sys
import time

SOURCE = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(SOURCE / "tests" / "hosts"))
import elastic_jobs  # noqa: E402
import elastic_slurm_test  # noqa: E402
import hosts  # noqa: E402
import slurm  # noqa: E402

SAVED = r"Saving checkpoints for (\d+) into"


class Round:
    """A job, from its start to its first step after the fault."""

    save_steps = 1
    options = ()

    def steps_again(self, fault):
        job = self.train(*self.options)
        job.wait_for(SAVED, times=20)
        begin = time.monotonic()
        fault(self)
        start, _ = job.wait_for(r"^starts at step (\d+)$", times=2)
        _, at = job.wait_for(rf"Saving checkpoints for {int(start[1]) + 1} into", after=begin)
        self.stop(job)
        return at - begin


class OverSsh(Round, elastic_jobs.ElasticTest):
    options = ("-H", "node1:2,node2:2,node3:2")


class InSlurm(Round, elastic_slurm_test.ElasticSlurm):
    pass


FAULTS = {"the link of a host goes down": lambda test: test.cluster.link("node3", "down"),
          "`kill -9` of a rank": lambda test: test.kill_rank(5)}


def measure(kind, fault, rounds):
    seconds = []
    for _ in range(rounds):
        test = kind("steps_again")
        test.setUp()
        try:
            seconds.append(test.steps_again(fault))
        finally:
            test.doCleanups()
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--slurm", action="store_true")
    options = parser.parse_args()
    (slurm if options.slurm else hosts).enter()
    kind = InSlurm if options.slurm else OverSsh
    kind.setUpClass()
    print("| fault | next step after, median | least | most |\n|---|---|---|---|")
    for name, fault in FAULTS.items():
        seconds = measure(kind, fault, options.rounds)
        print(f"| {name} | {statistics.median(seconds):.1f} s | {min(seconds):.1f} s | {max(seconds):.1f} s |", flush=True)
    kind.doClassCleanups()


if __name__ == "__main__":
    main()
