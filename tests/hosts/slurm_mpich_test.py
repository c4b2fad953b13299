#!/usr/bin/env python3
"""kolo built with MPICH in jobs of Slurm, whose srun starts the ranks over PMI-2: for build/mpich (cmake --preset mpich)."""
import re

import hosts
import slurm

KOLORUN = hosts.BIN / "kolorun"
STEPS = 20
# Over shared memory UCX takes the hosts for the one machine that they are, and hangs in MPI_Finalize, with kolo and without.
UCX = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "eth0"}


class Pmi2(slurm.StoppedJobs):
    def train(self, steps):
        return (hosts.BIN / "kolo-train", "--model", "mlp", "--data", "generated", "--threads", 1, "--steps", steps, "--checkpoint-dir", self.folder / "ck")

    def assert_clean(self, output):
        for words in ("unexpected tag-receive descriptor", "is gone", "srun: error"):
            self.assertNotIn(words, output)

    def trains(self, *starter):
        output = self.over(self.submit_command(*starter, *self.train(STEPS), env=UCX), "COMPLETED", 0)
        self.assertRegex(output, rf"done: step {STEPS}, .* on 2 ranks")
        self.assert_clean(output)
        self.assertTrue((self.folder / "ck" / f"model.ckpt-{STEPS}.safetensors").exists(), output)
        return output

    def test_kolorun_chooses_srun_with_pmi2_and_trains(self):
        shown = self.lab.run(["salloc", "-Q", "-N2", "-n2", KOLORUN, "--show-allotment", *self.train(STEPS)])
        self.assertEqual(shown.code, 0, shown)
        self.assertIn("srun --mpi=pmi2", shown.out)
        self.assertIn("on 2 ranks", self.trains(KOLORUN))

    def test_plain_srun_trains(self):
        self.trains("srun", "--mpi=pmi2")

    def test_srun_without_pmi2_ends_with_one_line_of_each_task(self):
        result = self.lab.run(["srun", "--mpi=none", "-N2", "-n2", *self.train(STEPS)], env=UCX)
        self.assertEqual(result.code, 1, result)
        self.assertEqual(len(re.findall(r"srun started 2 tasks without PMI.*: srun --mpi=pmi2", result.err)), 2, result)

    def stops_by_a_signal(self, *starter):
        job = self.submit_command(*starter, *self.train(10**7), env={**UCX, "KOLO_STOPPED_EXIT_CODE": "75"})
        self.wait_for_line(job, "step ")
        self.lab.run(["scancel", "--signal=USR1", job])
        output = self.over(job, "FAILED", 75)
        stopped = int(re.search(r"stopped on request: step (\d+) of \d+, saved", output).group(1))
        self.assertTrue((self.folder / "ck" / f"model.ckpt-{stopped}.safetensors").exists(), output)
        for words in ("unexpected tag-receive descriptor", "is gone"):
            self.assertNotIn(words, output)

    def test_sigusr1_to_the_steps_saves_under_kolorun(self):
        self.stops_by_a_signal(KOLORUN)

    def test_sigusr1_to_the_steps_saves_under_plain_srun(self):
        self.stops_by_a_signal("srun", "--mpi=pmi2")


if __name__ == "__main__":
    slurm.main()
