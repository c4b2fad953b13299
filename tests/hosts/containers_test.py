#!/usr/bin/env python3
"""Ranks of one host where it is less than a whole machine: a tiny /dev/shm, a PID namespace for each rank, a neighbour that is killed."""
import subprocess
import time
import unittest

import hosts

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
