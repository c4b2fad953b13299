#!/usr/bin/env python3
"""Training over several hosts gives the same bits as on one."""
import json

import hosts

TRAIN = hosts.BIN / "kolo-train"
ALGORITHMS = [name for name in hosts.algorithms() if name != "shared_memory"]  # which is for one host
# Their order of summation follows the hosts, or is MPI's own business.
FOLLOW_THE_HOSTS = {"hierarchical", "mpi"}


class Training(hosts.FolderTest):
    def checkpoint(self, cluster, algorithm, name):
        """The bytes of the state after ten steps of four ranks."""
        folder = self.folder / name
        command = ["mpirun", "--hostfile", cluster.hostfile, "--bind-to", "none", "-x", f"KOLO_ALLREDUCE={algorithm}",
                   TRAIN, "--model", "mlp", "--data", "generated", "--batch-size", 16, "--threads", 1, "--json", "--log-steps", 1, "--steps", 10, "--checkpoint-dir", folder]
        result = cluster.run(command)
        self.assertEqual(result.code, 0, result)
        self.assertEqual(json.loads(result.out.splitlines()[-1])["ranks"], 4)
        return (folder / "model.ckpt-10.safetensors").read_bytes()

    def test_gives_the_bits_of_one_host(self):
        chosen = [a for a in ALGORITHMS if a not in FOLLOW_THE_HOSTS]
        with hosts.Hosts(1, slots=4) as cluster:
            expected = {a: self.checkpoint(cluster, a, f"{a}-one") for a in chosen}
        with hosts.Hosts(2, slots=2) as cluster:
            for algorithm in chosen:
                with self.subTest(algorithm=algorithm):
                    self.assertTrue(self.checkpoint(cluster, algorithm, f"{algorithm}-two") == expected[algorithm])

    def test_gives_the_same_bits_again_where_the_order_follows_the_hosts(self):
        with hosts.Hosts(2, slots=2) as cluster:
            for algorithm in sorted(FOLLOW_THE_HOSTS.intersection(ALGORITHMS)):
                with self.subTest(algorithm=algorithm):
                    first = self.checkpoint(cluster, algorithm, f"{algorithm}-first")
                    self.assertTrue(self.checkpoint(cluster, algorithm, f"{algorithm}-second") == first)


if __name__ == "__main__":
    hosts.main()
