#!/usr/bin/env python3
"""kolorun --check-network on hosts whose links are known."""
import json
import unittest

import hosts


class CheckNetwork(unittest.TestCase):
    def setUp(self):
        self.cluster = hosts.Hosts(2, slots=2, rate="400mbit").__enter__()
        self.addCleanup(self.cluster.close)

    def kolorun(self, *words):
        return self.cluster.run([hosts.BIN / "kolorun", "--hostfile", self.cluster.hostfile, "--check-network", *words])

    def report(self, *words):
        result = self.kolorun("--json", *words)
        self.assertEqual(result.code, 0, result)
        return json.loads(result.out.splitlines()[0])

    def test_names_transports_and_measures_the_link(self):
        report = self.report("--gradient-bytes", 10**6, "--step-ms", 100)
        self.assertEqual(report["hosts"], [{"host": "node1", "ranks": 2}, {"host": "node2", "ranks": 2}])
        (link,) = report["between"]
        self.assertEqual((link["from"], link["to"], link["transport"]), ("node1", "node2", "TCP over eth0"))
        # The link lets 50 MB/s pass and no more; how much of it a busy machine reaches is no matter of right or wrong.
        self.assertLess(link["GBps"], 0.07)
        self.assertGreater(link["GBps"], 0)
        self.assertEqual([(i["from"], i["transport"]) for i in report["inside"]], [("node1", "shared memory"), ("node2", "shared memory")])
        self.assertEqual(report["warnings"], [])

    def test_tells_what_is_slower_than_it_could_be(self):
        self.cluster.add_link("eth1", mbit_per_s=25000)
        report = self.report("--mpi-args", "--mca btl self,tcp --mca btl_tcp_if_include eth0")
        between, *inside = sorted(report["warnings"], key=lambda w: "share memory" in w)
        self.assertIn("node1 and node2 talk TCP over eth0 although eth1 (25 Gbit/s) is up on both", between)
        self.assertEqual(["share memory" in warning for warning in inside], [True, True])

    def test_comes_before_the_program(self):
        result = self.kolorun("--", "sh", "-c", "echo job on $(hostname)")
        self.assertEqual(result.code, 0, result)
        self.assertEqual(sorted(result.out.splitlines()), [f"[{r}] job on node{r // 2 + 1}" for r in range(4)])
        self.assertIn("kolorun: node1 - node2: TCP over eth0", result.err)
        self.assertIn("kolorun: to expect: 97.5 MiB of gradients", result.err)

    def test_says_why_it_cannot_measure(self):
        self.cluster.kill_host("node2")
        result = self.kolorun()
        self.assertEqual(result.code, 1, result)
        self.assertIn("kolorun: the network could not be measured", result.err)


if __name__ == "__main__":
    hosts.main()
