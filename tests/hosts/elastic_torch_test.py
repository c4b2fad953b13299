#!/usr/bin/env python3
"""A program in PyTorch with kolo.torch.elastic loses a host and gets it back: it goes on from its last commit."""
import json
import os
import pathlib
import re
import subprocess
import time
import unittest

import hosts
from elastic_jobs import PATIENCE_S, Job

PYTHON = os.environ.get("KOLO_TEST_PYTHON", "")
PROGRAM = pathlib.Path(__file__).parent / "elastic_torch.py"
STEPS, SAMPLES = 300, 120


class ElasticTorch(hosts.FolderTest):
    @classmethod
    def setUpClass(cls):
        if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True, check=False).returncode:
            raise unittest.SkipTest(f"{PYTHON} has no PyTorch; scripts/install_deps.sh --python installs it")

    def setUp(self):
        super().setUp()
        self.cluster = hosts.Hosts(3, slots=1)
        self.cluster.__enter__()
        self.addCleanup(self.cluster.close)

    def train(self, *options):
        return Job(self, *options, "--discover-every", 1, "-x", "PYTHONPATH", "-x", "OMP_NUM_THREADS", "--", PYTHON, PROGRAM, self.folder, STEPS, SAMPLES)

    def committed(self, job, start=1):
        """The step that rank 0 was about to commit last, up to the start of this number; all those before it are committed."""
        text = "".join(job.text().split("starts at step ")[:start + 1])
        return max((int(step) for step in re.findall(r"^commits (\d+)$", text, re.MULTILINE)), default=0)

    def wait_until_committed(self, job, step, start=1):
        deadline = time.monotonic() + PATIENCE_S * hosts.SLOWDOWN
        while self.committed(job, start) <= step:
            self.assertLess(time.monotonic(), deadline, job.text())
            time.sleep(0.05)

    def starts(self, job, times, ranks):
        """The step from which the times-th start goes on, on so many ranks."""
        start, _ = job.wait_for(r"^starts at step (\d+) with (\d) ranks$", times=times)
        self.assertEqual(int(start[2]), ranks)
        return int(start[1])

    def ends(self, job, ranks):
        """The steps that are left come quickly; every rank then has the same weights, and each epoch had each of its samples."""
        (self.folder / "hurry").touch()
        text = job.over()
        ends = [json.loads(line) for line in re.findall(r"^ends: (.*)$", text, re.MULTILINE)]
        self.assertEqual(sorted(end["rank"] for end in ends), list(range(ranks)), text)
        self.assertEqual({end["step"] for end in ends}, {STEPS})
        self.assertEqual(len({end["weights"] for end in ends}), 1, ends)
        self.assertTrue(all(end["finite"] for end in ends), ends)
        epochs = re.findall(r"^epoch .*$", text, re.MULTILINE)
        self.assertGreater(len(epochs), 2)
        for line in epochs:
            self.assertRegex(line, rf"^epoch \d+ had {SAMPLES} of {SAMPLES} samples, [0-4] of them twice$")

    def test_goes_on_from_its_last_commit_and_grows_when_the_host_is_back(self):
        job = self.train("-H", "node1,node2,node3", "--min-ranks", 2, "--grow-after", 2, "--cooldown", "2:300")
        self.assertEqual(self.starts(job, 1, 3), 0)
        self.wait_until_committed(job, 30)
        committed = self.committed(job) - 1
        self.cluster.link("node3", "down")
        job.wait_for(r"^kolorun: node3 is gone; going on with 2 ranks on node1, node2 \(restart 1, \d+\.\d s\)$")
        at = self.starts(job, 2, 2)
        self.assertGreaterEqual(at, committed)
        job.wait_for(r"^resets: \[3, 2\]$")
        self.wait_until_committed(job, at + 5, start=2)
        self.cluster.link("node3", "up")
        job.wait_for(r"^kolorun: node3 is there; 2 → 3 ranks")
        self.assertEqual(self.starts(job, 3, 3), self.committed(job, start=2))  # no step is lost
        job.wait_for(r"^resets: \[3, 2, 3\]$")
        self.ends(job, 3)

    def test_goes_on_where_rank_0s_host_is_lost(self):
        job = self.train("-H", "node2,node3")
        self.starts(job, 1, 2)
        self.wait_until_committed(job, 30)
        committed = self.committed(job) - 1
        self.cluster.link("node2", "down")
        job.wait_for(r"^kolorun: node2 is gone; going on with 1 rank on node3 ")
        self.assertGreaterEqual(self.starts(job, 2, 1), committed)
        self.ends(job, 1)


if __name__ == "__main__":
    hosts.main()
