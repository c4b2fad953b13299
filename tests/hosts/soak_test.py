#!/usr/bin/env python3
"""Trainings that are stopped, and hosts that are lost, again and again at random moments.

ROUNDS: how many stops and how many cuts (3); scripts/check_deep soak makes 30 of each. SEED: of when and how (drawn, and told).
"""
import collections
import itertools
import os
import random
import re
import statistics
import time
import unittest

import elastic_jobs
import hosts
import slurm

ROUNDS = int(os.environ.get("ROUNDS", 3))
SEED = int(os.environ.get("SEED", random.randrange(10**6)))


class Stops(slurm.StoppedTrainings):
    """Slurm stops a training by preemption, at the end of its time, or since somebody queues it again."""
    steps, ms = 250, 100

    def stopped_by_preemption(self, job):
        self.preempt(job, "Slurm starts job")

    def stopped_by_a_requeue(self, job):
        self.lab.run(["scontrol", "requeue", job])

    def stopped_by_the_end_of_its_time(self, job):
        """The job's minute is over 5 to 15 s from now; --stop-before asks the ranks to stop before that."""

    def starts_and_ends(self, job):
        return [(word, int(step)) for word, step in re.findall(r"(starts|ends) at step (\d+)$", self.lab.output(job), re.MULTILINE)]

    def disturb(self, name, stops):
        """One training with these stops, to its end."""
        before = 60 - self.random.randint(5, 12)  # of a minute
        timed = self.stopped_by_the_end_of_its_time in stops
        options = ("--time=1",) if timed else ()
        job = self.submit("--requeue", "--stop-before", before if timed else 0, steps=self.steps, ms=self.ms, options=options, name=name)
        done = 0
        for stop in stops:
            self.lab.wait_for(lambda: len(self.starts_and_ends(job)) == 2 * done + 1)
            if not timed:
                time.sleep(self.random.uniform(0, 4))
            stop(job)
            self.lab.wait_for(lambda: len(self.starts_and_ends(job)) == 2 * done + 2)
            self.assertEqual(self.saved(name)[0], self.starts_and_ends(job)[-1][1])
            self.start_again(job)
            done += 1
        if timed:  # it would end once more
            self.lab.run(["scontrol", "update", f"JobId={job}", "TimeLimit=10"])
        output = self.over(job, "COMPLETED", 0)
        steps = self.starts_and_ends(job)
        for (_, ended), (_, started) in zip(steps[1::2], steps[2::2]):
            self.assertEqual(started, ended, output)
        self.assertEqual(self.saved(name), (self.steps, self.undisturbed), output)

    def test_each_training_ends_in_the_bytes_of_an_undisturbed_one_and_repeats_no_step(self):
        self.random = random.Random(SEED)
        self.over(self.submit(steps=self.steps, ms=1, name="undisturbed"), "COMPLETED", 0)
        self.undisturbed = self.saved("undisturbed")[1]
        made = collections.Counter()
        for kind in itertools.cycle((self.stopped_by_preemption, self.stopped_by_the_end_of_its_time, self.stopped_by_a_requeue)):
            most = 1 if kind == self.stopped_by_the_end_of_its_time else 5
            stops = [kind] * min(ROUNDS - made.total(), most)
            if not stops:
                break
            self.disturb(f"ck{made.total()}", stops)
            made[kind.__name__] += len(stops)
            print(f"seed {SEED}: {dict(made)}", flush=True)


class Cuts(elastic_jobs.ElasticTest):
    """Over ssh. A host is cut from the others at any moment, also while the ranks start."""

    def test_an_elastic_job_goes_on_after_each_cut(self):
        rng = random.Random(SEED)
        job = self.train("-H", self.names(1, 2, 3), "--cooldown", "1:1", "--grow-after", 1, "--discover-every", 1, "--restarts", 0)
        job.wait_for(r"^starts at step 0$")
        seconds = []
        for number in range(ROUNDS):
            time.sleep(rng.uniform(0, 4))
            host = rng.choice(("node2", "node3"))
            cut = time.monotonic()
            self.cluster.link(host, "down")
            _, told = job.wait_for(rf"^kolorun: {host} .*; going on with 4 ranks on ", after=cut)
            start, at = job.wait_for(r"^starts at step (\d+)$", after=told)
            seconds.append(at - cut)
            self.cluster.link(host, "up")
            back = time.monotonic()
            job.wait_for(rf"^kolorun: {host} is there; 4 → 6 ranks", after=back)
            if rng.random() < 0.7:  # else the next cut may come while the ranks start
                job.wait_for(r"^starts at step (\d+)$", after=time.monotonic())
            print(f"seed {SEED}: cut {number + 1} of {host}, {seconds[-1]:.1f} s, median {statistics.median(seconds):.1f} s, "
                  f"most {max(seconds):.1f} s", flush=True)
        self.wait_until_saved(self.saved() + 10)
        self.stop(job)
        self.assertLess(statistics.median(seconds), 8 * hosts.SLOWDOWN)


if __name__ == "__main__":
    slurm.main()
