#!/usr/bin/env python3
"""Ranks of one host where it is less than a whole machine: a tiny /dev/shm, a PID namespace for each rank or for a pod, a neighbour that is killed."""
import pathlib
import subprocess
import tempfile
import time
import unittest

import hosts

KOLORUN = hosts.BIN / "kolorun"
SLEEPY = hosts.PROBE.parent / "sleepy"
LIMIT_S = 10


class OneHost(unittest.TestCase):
    def setUp(self):
        self.cluster = hosts.Hosts(1, slots=2).__enter__()
        self.addCleanup(self.cluster.close)

    def mpirun(self, *command, options=()):
        return self.cluster.run(["mpirun", "--bind-to", "none", "--oversubscribe", "-n", 2, *options, *command], deadline=60)

    def test_a_dev_shm_of_one_mebibyte_is_enough(self):
        made = self.cluster.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", "/dev/shm"])
        self.assertEqual(made.code, 0, made)
        result = self.mpirun(hosts.PROBE, "collectives", options=["-x", "KOLO_ALLREDUCE=shared_memory"])
        self.assertEqual(result.code, 0, result)
        self.assertIn("all right on 1 hosts", result.out)

    def test_ranks_in_pid_namespaces_of_their_own_send_messages_and_say_why(self):
        # Open MPI's shared memory would ask the system to copy between processes that do not see each other.
        options = ["--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "lo"]
        result = self.mpirun("unshare", "--pid", "--fork", "--mount-proc", hosts.PROBE, "collectives", options=options)
        self.assertEqual(result.code, 0, result)
        self.assertIn("all right on 1 hosts", result.out)
        self.assertEqual(result.err.count("the ranks of this host do not share memory"), 1, result)

    def start_training(self, folder, *around, then=""):
        train = f"{KOLORUN} -q -n 1 --bind none {SLEEPY} {folder} 1000000 20{then}"
        job = self.cluster.popen([*around, "sh", "-c", train], stdout=subprocess.PIPE, text=True)
        self.addCleanup(job.stdout.close)
        self.addCleanup(job.kill)
        self.assertEqual(job.stdout.readline(), "starts at step 0\n")
        return job

    def test_a_pods_hook_stops_the_ranks_of_the_pod_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            beside = self.start_training(f"{folder}/beside")
            pod = self.start_training(f"{folder}/pod", "unshare", "--pid", "--uts", "--fork", "--kill-child", "--mount-proc", then="; echo over; sleep 600")
            first = pathlib.Path(f"/proc/{pod.pid}/task/{pod.pid}/children").read_text().split()[0]
            result = self.cluster.run(["nsenter", "--target", first, "--pid", "--uts", "--mount", KOLORUN, "--stop-here"])
            self.assertEqual(result.code, 0, result)
            self.assertRegex(result.out, r"^kolorun: 1 rank here stopped within \d+\.\d s\n$")
            self.assertRegex(pod.stdout.readline(), r"^ends at step [1-9]\d*\n$")
            self.assertEqual(pod.stdout.readline(), "over\n")
            self.assertIsNone(beside.poll())

    def test_a_neighbour_that_is_killed_in_an_operation_is_named_by_the_survivor(self):
        process = self.cluster.popen(["mpirun", "--bind-to", "none", "--oversubscribe", "-n", 2, hosts.PROBE.parent / "fault_probe", "killed"],
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        result = hosts.finish(process, deadline=60)
        over = time.monotonic()
        self.assertNotEqual(result.code, 0, result)
        fault = max(float(line.split()[-1]) for line in result.out.splitlines() if line.startswith("fault "))
        self.assertLess(over - fault, LIMIT_S, result)
        self.assertRegex(result.err, r"rank 0 on node1: Unavailable: rank 1 on node1 is gone \(last step 1[89]\)")


if __name__ == "__main__":
    hosts.main()
