#!/usr/bin/env python3
"""Ranks on several hosts find their places and reduce over them, with every algorithm of the build."""
import json
import unittest

import hosts

ALGORITHMS = [name for name in hosts.algorithms() if name != "shared_memory"]


def mpirun(*command):
    return ["mpirun", "--hostfile", hosts.SHARED / "hostfile", "--bind-to", "none", *command]


def kolorun(*command):
    return [hosts.BIN / "kolorun", "-q", "--hostfile", hosts.SHARED / "hostfile", "--", *command]


class Places(unittest.TestCase):
    def places(self, cluster, command):
        result = cluster.run(command)
        self.assertEqual(result.code, 0, result)
        return sorted((json.loads(line) for line in result.out.splitlines()), key=lambda place: place["rank"])

    def test_two_hosts_with_two_ranks_each(self):
        with hosts.Hosts(2, slots=2) as cluster:
            for start in (mpirun, kolorun):
                with self.subTest(start=start.__name__):
                    expected = [{"rank": r, "size": 4, "local_rank": r % 2, "local_size": 2, "cross_rank": r // 2, "cross_size": 2,
                                 "node_count": 2, "homogeneous": True, "hostname": f"node{r // 2 + 1}"} for r in range(4)]
                    self.assertEqual(self.places(cluster, start(hosts.PROBE, "topology")), expected)

    def test_three_hosts_with_different_numbers_of_ranks(self):
        with hosts.Hosts(3, slots=[2, 1, 1]) as cluster:
            for start in (mpirun, kolorun):
                with self.subTest(start=start.__name__):
                    places = self.places(cluster, start(hosts.PROBE, "topology"))
                    columns = {name: [place[name] for place in places] for name in places[0]}
                    self.assertEqual(columns["hostname"], ["node1", "node1", "node2", "node3"])
                    self.assertEqual(columns["local_rank"], [0, 1, 0, 0])
                    self.assertEqual(columns["local_size"], [2, 2, 1, 1])
                    self.assertEqual(columns["cross_rank"], [0, 0, 1, 2])
                    self.assertEqual(columns["cross_size"], [3, 1, 3, 3])
                    self.assertEqual(columns["node_count"], [3] * 4)
                    self.assertEqual(columns["homogeneous"], [False] * 4)


class Operations(unittest.TestCase):
    def check(self, count, slots):
        with hosts.Hosts(count, slots) as cluster:
            for algorithm in ["auto", *ALGORITHMS]:
                with self.subTest(algorithm=algorithm):
                    result = cluster.run(mpirun("-x", f"KOLO_ALLREDUCE={algorithm}", hosts.PROBE, "collectives"))
                    self.assertEqual(result.code, 0, result)
                    self.assertEqual(result.out, f"all right on {count} hosts\n")

    def test_are_right_on_two_hosts_with_two_ranks_each(self):
        self.check(2, 2)

    def test_are_right_on_three_hosts_with_different_numbers_of_ranks(self):
        self.check(3, [2, 1, 1])

    def test_over_shared_memory_are_refused(self):
        with hosts.Hosts(2, slots=1) as cluster:
            result = cluster.run(mpirun("-x", "KOLO_ALLREDUCE=shared_memory", hosts.PROBE, "collectives"))
            self.assertNotEqual(result.code, 0)
            self.assertIn("2 ranks on 2 nodes do not share memory", result.err)


if __name__ == "__main__":
    hosts.main(parts=2)
