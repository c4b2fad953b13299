#!/usr/bin/env python3
"""In a Slurm job: ranks, hosts, cores and threads are those that Slurm has allotted."""
import json
import unittest

import hosts
import slurm

TRAIN = hosts.BIN / "kolo-train"
TOPOLOGY = [hosts.PROBE, "topology"]


class Start(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lab = slurm.Slurm(hosts.Hosts(3))
        cls.lab.__enter__()
        cls.addClassCleanup(cls.lab.__exit__)

    def output_of(self, *command, **options):
        result = self.lab.run(command, **options)
        self.assertEqual(result.code, 0, result)
        return result.out

    def places(self, *command):
        """(rank, host, local rank) of each rank that the command starts, in the order of the ranks."""
        lines = self.output_of(*command, *TOPOLOGY).splitlines()
        ranks = [json.loads(line) for line in lines if line.startswith("{")]
        return sorted((r["rank"], r["hostname"], r["local_rank"]) for r in ranks)

    def test_srun_gives_each_rank_its_place(self):
        self.assertEqual(self.places("srun", "--mpi=pmix", "-N3", "-n6", "--distribution=block"),
                         [(rank, f"node{rank // 2 + 1}", rank % 2) for rank in range(6)])

    def test_mpirun_in_an_allocation_starts_on_the_hosts_that_are_named(self):
        found = self.places("salloc", "-Q", "-N3", "-n6", "mpirun", "--host", "node1:2,node3:2", "--bind-to", "none")
        self.assertEqual([host for _, host, _ in found], ["node1", "node1", "node3", "node3"])

    def test_a_batch_job_ends_with_the_code_of_its_script(self):
        job = self.lab.submit("echo on $(hostname); exit 7\n", "-n1")
        self.assertEqual((self.lab.wait_until_over(job)["JobState"], self.lab.show(job)["ExitCode"]), ("FAILED", "7:0"))
        self.assertIn("on node", self.lab.output(job))


if __name__ == "__main__":
    slurm.main()
