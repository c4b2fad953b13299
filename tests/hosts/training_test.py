#!/usr/bin/env python3
"""Training over several hosts gives the same bits as on one."""
import json
import random
import struct

import hosts

TRAIN = hosts.BIN / "kolo-train"
ALGORITHMS = [name for name in hosts.algorithms() if name != "shared_memory"]  # which is for one host
# Their order of summation follows the hosts, or is MPI's own business.
FOLLOW_THE_HOSTS = {"hierarchical", "mpi"}


class Training(hosts.FolderTest):
    def setUp(self):
        """Pictures of noise: no rank draws 8,500 digits in each of the starts, and the gradients are as large."""
        super().setUp()
        self.data = self.folder / "noise"
        self.data.mkdir()
        numbers = random.Random(1)
        for name, count in (("train", 640), ("t10k", 64)):
            (self.data / f"{name}-images-idx3-ubyte").write_bytes(struct.pack(">4I", 0x803, count, 28, 28) + numbers.randbytes(count * 784))
            (self.data / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 0x801, count) + bytes(i % 10 for i in range(count)))

    def checkpoint(self, cluster, algorithm, name):
        """The bytes of the state after ten steps of four ranks."""
        folder = self.folder / name
        command = ["mpirun", "--hostfile", cluster.hostfile, "--bind-to", "none", "-x", f"KOLO_ALLREDUCE={algorithm}",
                   TRAIN, "--model", "mlp", "--data", self.data, "--batch-size", 16, "--threads", 1, "--json", "--log-steps", 1, "--steps", 10, "--checkpoint-dir", folder]
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
    hosts.main(parts=2)
