#!/usr/bin/env python3
"""Sixteen ranks on four hosts need few descriptors from their start to their end: 33 in a step, and not one more for each rank elsewhere."""
import hosts

SLEEPY = hosts.PROBE.parent / "sleepy"


class ManyRanks(hosts.FolderTest):
    def test_start_and_end_with_44_descriptors(self):
        with hosts.Hosts(4, slots=4) as cluster:
            limited = f"ulimit -n 44; exec {SLEEPY} {self.folder} 5 1"
            result = cluster.run(["mpirun", "--hostfile", cluster.hostfile, "--bind-to", "none", "sh", "-c", limited], deadline=120)
        self.assertEqual(result.code, 0, result)
        self.assertIn("ends at step 5", result.out)
        self.assertNotIn("Too many open files", result.err)
        self.assertIn("44 files may be open; 12 ranks on other hosts may need 76 (ulimit -n)", result.err)


if __name__ == "__main__":
    hosts.main()
