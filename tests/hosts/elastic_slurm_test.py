#!/usr/bin/env python3
"""Nodes of one Slurm job are lost and come back: each start of its training is a step on those that are there."""
import os
import pathlib
import time
import unittest

import elastic_jobs
import hosts
import slurm
from elastic_jobs import KOLORUN, SLEEPY, Job

SCRIPT = pathlib.Path(__file__).parent / "elastic.slurm"
PAGE = SCRIPT.parents[2] / "docs" / "batch_systems.md"


class ElasticSlurm(elastic_jobs.ElasticTest):
    """On four nodes; jobs may share them, and Slurm takes a node for down when the test says so, not by itself."""

    @classmethod
    def setUpClass(cls):
        cls.lab = slurm.Slurm(hosts.Hosts(4), partitions=("main Default=YES OverSubscribe=FORCE:4",), SlurmdTimeout=300)
        cls.lab.__enter__()
        cls.addClassCleanup(cls.lab.__exit__)

    def make_hosts(self):
        self.addCleanup(self.repair)
        return self.lab.cluster

    def repair(self):
        self.lab.run(["scancel", "--user=root"])
        for name in self.cluster.names:
            self.cluster.link(name, "up")
        self.lab.run(["scontrol", "update", "NodeName=node[1-4]", "State=RESUME"])
        self.lab.wait_for(lambda: self.lab.run(["sinfo", "-h", "-o", "%D %T"]).out == "4 idle\n")

    def down(self, host):
        """As Slurm takes it for after SlurmdTimeout."""
        self.assertEqual(self.lab.run(["scontrol", "update", f"NodeName={host}", "State=DOWN", "Reason=lost"]).code, 0)

    def ranks_on(self, *names):
        exe = lambda pid: pathlib.Path(f"/proc/{pid}/exe")
        return sum(exe(pid).exists() and exe(pid).resolve().name == SLEEPY.name for name in names for pid in self.cluster.pids(name))

    def train(self, *options, nodes=3, **how):
        return super().train(*options, around=("salloc", "-Q", "--no-kill", f"-N{nodes}", f"-n{2 * nodes}"), **how)

    def goes_on_and_grows(self, *options):
        job = self.train("--min-ranks", 2, "--grow-after", 3, "--discover-every", 1, "--cooldown", "2:300", *options)
        self.wait_until_saved(20)
        cut, saved = time.monotonic(), self.saved()
        self.cluster.link("node3", "down")
        job.wait_for(r"^kolorun: node3 is gone; going on with 4 ranks on node1, node2 \(restart 1, \d+\.\d s\)$")
        start, at = job.wait_for(r"^starts at step (\d+)$", times=2)
        self.assertLess(at - cut, 8 * hosts.SLOWDOWN, job.text())
        self.assertGreaterEqual(int(start[1]), saved)
        self.wait_until_saved(int(start[1]) + 10)
        self.assertEqual(self.ranks_on("node1", "node2"), 4, "none of the first start is left")
        self.cluster.link("node3", "up")
        grown, _ = job.wait_for(r"^kolorun: node3 is there; 4 → 6 ranks after step (\d+)$")
        start, at = job.wait_for(r"^starts at step (\d+)$", times=3)
        self.assertEqual(start[1], grown[1])  # no step is lost
        self.wait_until_saved(int(start[1]) + 10)
        self.stop(job)

    def test_goes_on_with_the_others_when_a_node_is_lost_and_grows_when_it_is_back(self):
        self.goes_on_and_grows()

    def test_the_same_where_mpirun_starts_the_ranks(self):
        self.goes_on_and_grows("--launcher", "mpirun")

    def test_a_spare_replaces_a_lost_node(self):
        job = self.train("--spares", 1, nodes=4)
        self.replaces_by_spare(job, 6, "node1, node3, node4")
        self.stop(job)

    def test_a_killed_rank_costs_seconds(self):
        job = self.train()
        self.loses_seconds_by_a_killed_rank(job, 5, "node3")
        self.wait_until_saved(self.saved() + 10)
        self.stop(job)

    def test_a_node_that_slurm_takes_out_of_the_job_is_not_used_again(self):
        job = self.train("--grow-after", 2, "--discover-every", 1, "--cooldown", "2:300")
        self.wait_until_saved(20)
        self.cluster.link("node3", "down")
        job.wait_for(r"^kolorun: node3 is gone; going on with 4 ranks ")
        self.down("node3")
        self.cluster.link("node3", "up")
        job.wait_for(r"^kolorun: Slurm has taken node3 out of this job$")
        saved = self.saved()
        time.sleep(3)
        self.wait_until_saved(saved + 30)
        self.assertNotIn("is there", job.text())
        self.stop(job)

    def test_gives_up_when_the_nodes_that_are_left_have_too_little_room(self):
        job = self.train("--min-ranks", 6)
        self.wait_until_saved(20)
        self.down("node3")
        text = job.over(code=1)
        self.assertIn("kolorun: Slurm has taken node3 out of this job\nkolorun: 4 ranks are left, --min-ranks is 6", text)

    def test_the_last_line_says_why_slurm_ends_the_job(self):
        command = map(str, (KOLORUN, "--elastic", SLEEPY, self.checkpoints, 10**6, 50, 5))
        job = self.lab.submit(f"exec {' '.join(command)}\n", "-N3", "-n6", "--no-requeue")
        self.wait_until_saved(20)
        self.cluster.link("node3", "down")
        self.lab.wait_for(lambda: "going on with 4 ranks" in self.lab.output(job))
        self.wait_until_saved(self.saved() + 10)
        self.down("node3")
        self.assertEqual(self.lab.wait_until_over(job)["JobState"], "NODE_FAIL", self.lab.output(job))
        lines = [line for line in self.lab.output(job).splitlines() if not line.startswith("slurmstepd")]
        self.assertEqual(lines[-1], "kolorun: Slurm ends this job because a node failed; submit it with --no-kill")

    def test_the_script_of_the_page_goes_on_without_a_node(self):
        self.assertIn(SCRIPT.read_text(), PAGE.read_text())
        path = f"{hosts.BIN}:{os.environ['PATH']}"
        job = self.lab.submit(SCRIPT.read_text(), f"--chdir={self.folder}", env={"PATH": path})
        self.wait_until_saved(20)
        self.cluster.link("node3", "down")
        self.lab.wait_for(lambda: "done: step 200" in self.lab.output(job))
        self.cluster.link("node3", "up")  # else Slurm waits for the node to complete the job, until it counts as down
        self.assertEqual(self.lab.wait_until_over(job)["JobState"], "COMPLETED", self.lab.output(job))
        self.assertIn("node3 is gone; going on with 2 ranks on node1, node2", self.lab.output(job))
        self.assertIn("done: step 200", self.lab.output(job))


if __name__ == "__main__":
    slurm.main()
