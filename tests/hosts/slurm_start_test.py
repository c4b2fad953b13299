#!/usr/bin/env python3
"""In a Slurm job: ranks, hosts, cores and threads are those that Slurm has allotted."""
import json
import os
import pathlib
import re
import tempfile
import time

import hosts
import slurm

TOPOLOGY = [hosts.PROBE, "topology"]
FOLDER = pathlib.Path(__file__).parent
SCRIPTS = [FOLDER / "train.slurm", FOLDER / "srun.slurm"]
PAGE = FOLDER.parents[1] / "docs" / "batch_systems.md"
KOLORUN = hosts.BIN / "kolorun"


class Start(slurm.LabTest):
    @classmethod
    def make_lab(cls):
        return slurm.Slurm(hosts.Hosts(3))

    def output_of(self, *command, **options):
        result = self.lab.run(command, **options)
        self.assertEqual(result.code, 0, result)
        return result.out

    def places(self, *command):
        """(rank, host, local rank) of each rank that the command starts, in the order of the ranks."""
        lines = self.output_of(*command, *TOPOLOGY).splitlines()
        ranks = [json.loads(line) for line in lines if line.startswith("{")]
        return sorted((r["rank"], r["hostname"], r["local_rank"]) for r in ranks)

    def test_a_command_that_hangs_shows_why_and_leaves_the_hosts_to_the_next_one(self):
        holder = self.lab.popen(["salloc", "-Q", "-N3", "-n6", "sleep", "1000"])
        self.addCleanup(holder.wait)
        self.addCleanup(holder.kill)  # salloc leaves its command alone when the job is cancelled
        self.lab.wait_for(lambda: "RUNNING" in self.lab.run(["squeue", "-h", "-o", "%T"]).out)
        with self.assertRaises(AssertionError) as raised:
            self.lab.run(["srun", "-N3", "-n6", "hostname"], deadline=1)
        for words in ("not over within 1 s", "-- squeue", "PENDING", "-- the end of slurmctld.log", "-- the end of node3.log", "sleep 1000"):
            self.assertIn(words.replace("1 s", f"{hosts.SLOWDOWN} s"), str(raised.exception))
        self.assertEqual(sorted(self.output_of("srun", "-N3", "-n3", "hostname").split()), ["node1", "node2", "node3"])

    def test_srun_gives_each_rank_its_place(self):
        self.assertEqual(self.places("srun", "--mpi=pmix", "-N3", "-n6", "--distribution=block"),
                         [(rank, f"node{rank // 2 + 1}", rank % 2) for rank in range(6)])

    def test_srun_without_pmix_ends_with_one_line_of_each_task(self):
        for kind in ("none", "pmi2"):
            result = self.lab.run(["srun", f"--mpi={kind}", "-N2", "-n2", hosts.BIN / "kolo-train", "--model", "mlp", "--data", "generated"])
            self.assertEqual(result.code, 1, result)
            self.assertEqual(result.err.count("srun started 2 tasks without PMIx, which Open MPI needs: srun --mpi=pmix"), 2, result)
            self.assertNotIn("MPI_Init", result.err)

    def test_mpirun_in_an_allocation_starts_on_the_hosts_that_are_named(self):
        found = self.places("salloc", "-Q", "-N3", "-n6", "mpirun", "--host", "node1:2,node3:2", "--bind-to", "none")
        self.assertEqual([host for _, host, _ in found], ["node1", "node1", "node3", "node3"])

    def threads(self, *command):
        """host and OMP_NUM_THREADS of each rank."""
        unset = {"OMP_NUM_THREADS": ""}
        return sorted(self.output_of(*command, "sh", "-c", "echo $(hostname) $OMP_NUM_THREADS", env=unset).split("\n")[:-1])

    def test_kolorun_fills_the_allotment(self):
        for launcher in ("srun", "mpirun"):
            with self.subTest(launcher=launcher):
                self.assertEqual(self.places("salloc", "-Q", "-N3", "-n5", KOLORUN, "--launcher", launcher),
                                 [(0, "node1", 0), (1, "node1", 1), (2, "node2", 0), (3, "node2", 1), (4, "node3", 0)])

    def test_kolorun_stays_on_the_hosts_that_are_named(self):
        found = self.places("salloc", "-Q", "-N3", "-n6", KOLORUN, "--prefix", "never", "--host", "node1:2,node3:2")
        self.assertEqual([host for _, host, _ in found], ["node1", "node1", "node3", "node3"])

    def test_kolorun_fills_all_components_of_a_heterogeneous_job(self):
        for launcher in ("srun", "mpirun"):
            with self.subTest(launcher=launcher):
                found = self.places("salloc", "-Q", "-N1", "-n2", ":", "-N2", "-n2", KOLORUN, "--launcher", launcher)
                self.assertEqual([host for _, host, _ in found], ["node1", "node1", "node2", "node3"])

    def test_ranks_have_the_threads_of_their_cores(self):
        self.assertEqual(self.threads("salloc", "-Q", "-N2", "-n2", "-c2", KOLORUN, "--prefix", "never"), ["node1 2", "node2 2"])
        self.assertEqual(self.threads("salloc", "-Q", "-N2", "-n4", KOLORUN, "--prefix", "never"), ["node1 1", "node1 1", "node2 1", "node2 1"])

    def test_srun_binds_each_rank_to_cores_of_its_own(self):
        mask = "echo $(hostname) $(sed -n 's/^Cpus_allowed_list:\t//p' /proc/self/status)"
        found = self.output_of("salloc", "-Q", "-N2", "-n4", KOLORUN, "--prefix", "never", "sh", "-c", mask).split("\n")[:-1]
        self.assertEqual(len(set(found)), 4, found)
        self.assertTrue(all(line.split()[1].isdigit() for line in found), found)

    def test_a_batch_job_starts_its_ranks_by_either_launcher(self):
        for launcher in ("srun", "mpirun"):
            with self.subTest(launcher=launcher):
                job = self.lab.submit(f"exec {KOLORUN} --launcher {launcher} hostname\n", "-N2", "-n2")
                self.assertEqual(self.lab.wait_until_over(job)["JobState"], "COMPLETED", self.lab.output(job))
                self.assertEqual(sorted(line for line in self.lab.output(job).splitlines() if line.startswith("[")), ["[0] node1", "[1] node2"])

    def test_show_allotment_names_hosts_and_starts_nothing(self):
        lines = self.output_of("salloc", "-Q", "-N2", "-n2", "-c2", KOLORUN, "--show-allotment", "hostname").splitlines()
        self.assertEqual(lines[:2], [f"node{i}: 1 rank of 2 cores, from SLURM_TASKS_PER_NODE" for i in (1, 2)])
        self.assertIn("srun --mpi=pmix", lines[2])
        self.assertIn("-w node1,node2", lines[2])

    def test_a_rank_that_is_killed_ends_the_job_with_its_name(self):
        dies = 'echo starts; if [ $SLURM_PROCID = 1 ]; then sleep 0.5; kill -9 $$; fi; sleep 30'
        for launcher in ("srun", "mpirun"):
            with self.subTest(launcher=launcher):
                result = self.lab.run(["salloc", "-Q", "-N3", "-n3", KOLORUN, "--launcher", launcher, "-q", "sh", "-c",
                                       dies.replace("SLURM_PROCID", {"srun": "SLURM_PROCID", "mpirun": "OMPI_COMM_WORLD_RANK"}[launcher])])
                self.assertEqual(result.code, 137, result)
                self.assertIn("rank 1 on node2 is gone (last step unknown)", result.err)
                self.assertEqual(sorted(result.out.splitlines()), ["[0] starts", "[1] starts", "[2] starts"])

    def test_a_rank_that_fails_ends_the_job_with_its_code_and_no_other_is_blamed(self):
        fails = 'if [ $SLURM_PROCID = 1 ]; then sleep 0.5; exit 3; fi; trap "" TERM; sleep 30 & wait; sleep 30'
        result = self.lab.run(["salloc", "-Q", "-N2", "-n2", KOLORUN, "-q", "sh", "-c", fails])
        self.assertEqual(result.code, 3, result)
        self.assertNotIn("is gone", result.err)

    def test_an_srun_that_outlives_its_ranks_is_ended(self):
        """As Slurm's own does now and then in a heterogeneous job."""
        with tempfile.TemporaryDirectory() as folder:
            stays = pathlib.Path(folder) / "srun"
            stays.write_text('#!/bin/sh\n[ "$1" = --mpi=list ] && exec /usr/bin/srun "$@"\n/usr/bin/srun "$@"\nexec sleep 1000\n')
            stays.chmod(0o755)
            result = self.lab.run(["salloc", "-Q", "-N1", "-n1", ":", "-N1", "-n1", KOLORUN, "--launcher", "srun", "-q", "echo", "starts"],
                                  env={"PATH": f"{folder}:{os.environ['PATH']}"})
        self.assertEqual((result.code, sorted(result.out.splitlines())), (0, ["[0] starts", "[1] starts"]), result)
        self.assertEqual(result.err, "kolorun: srun does not end although Slurm says that its ranks have: srun is ended\n")

    def test_ranks_of_a_heterogeneous_job_are_named_as_they_name_themselves(self):
        """Slurm counts those of each component from 0."""
        for how, said, code in (("exit 3", "rank 3 on node3 ended with exit code 3", 3), ("kill -9 $$", "rank 3 on node3 is gone", 137)):
            with self.subTest(how=how):
                ends = f'test $SLURM_PROCID = 3 || exec sleep 30; sleep 1; {how}'
                result = self.lab.run(["salloc", "-Q", "-N1", "-n2", ":", "-N2", "-n2", KOLORUN, "--launcher", "srun", "-q", "sh", "-c", ends])
                self.assertEqual(result.code, code, result)
                self.assertIn(said, result.err)

    def test_the_scripts_of_the_page_train(self):
        for script in SCRIPTS:
            with self.subTest(script=script.name), tempfile.TemporaryDirectory() as folder:
                self.assertIn(script.read_text(), PAGE.read_text())
                path = f"{hosts.BIN}:{os.environ['PATH']}"
                job = self.lab.submit(script.read_text(), f"--chdir={folder}", env={"PATH": path, "OMP_NUM_THREADS": ""})
                self.assertEqual(self.lab.wait_until_over(job)["JobState"], "COMPLETED", self.lab.output(job))
                self.assertIn("done: step 100", self.lab.output(job))
                self.assertTrue((pathlib.Path(folder) / "ck" / "model.ckpt-100.safetensors").exists())

    def submit_array(self, folder, *arguments):
        """Two tasks that train; returns their numbers as Slurm's commands take them, and where each writes."""
        command = map(str, (hosts.BIN / "kolo-train", "--model", "mlp", "--data", "generated", "--threads", 1, *arguments))
        array = self.lab.submit(f"exec {KOLORUN} {' '.join(command)}\n", "-n1", "--array=0-1", f"--chdir={folder}", f"--output={hosts.SHARED}/%A_%a.out")
        return [f"{array}_{task}" for task in (0, 1)]

    def test_each_task_of_a_job_array_trains_in_its_own_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            jobs = self.submit_array(folder, "--steps", 3, "--checkpoint-dir", "'ck-{array}'", "--log-dir", "'log-{job}'")
            for task, job in enumerate(jobs):
                self.assertEqual(self.lab.wait_until_over(job)["JobState"], "COMPLETED", self.lab.output(job))
                self.assertTrue((pathlib.Path(folder) / f"ck-{task}" / "model.ckpt-3.safetensors").exists(), self.lab.output(job))
                self.assertTrue((pathlib.Path(folder) / f"log-{job}" / "metrics.jsonl").exists(), self.lab.output(job))

    def test_a_task_that_finds_another_one_in_its_folder_asks_for_array(self):
        with tempfile.TemporaryDirectory() as folder:
            jobs = self.submit_array(folder, "--steps", 10**7, "--checkpoint-dir", "ck")
            self.addCleanup(self.lab.run, ["scancel", jobs[0].split("_")[0]])
            hint = "(another task of this job array: put {array} into --checkpoint-dir)"
            self.lab.wait_for(lambda: any(hint in self.lab.output(job) for job in jobs))
            states = self.lab.wait_for(lambda: (found := sorted(self.lab.show(job)["JobState"] for job in jobs))[0] == "FAILED" and found)
            self.assertEqual(states, ["FAILED", "RUNNING"])

    def test_a_batch_job_ends_with_the_code_of_its_script(self):
        job = self.lab.submit("echo on $(hostname); exit 7\n", "-n1")
        self.assertEqual((self.lab.wait_until_over(job)["JobState"], self.lab.show(job)["ExitCode"]), ("FAILED", "7:0"))
        self.assertIn("on node", self.lab.output(job))


class ManyNodes(slurm.LabTest):
    @classmethod
    def make_lab(cls):
        return slurm.Slurm(hosts.Hosts(33))

    def test_more_nodes_than_a_command_line_names_have_their_ranks_in_order(self):
        for launcher in ("srun", "mpirun"):
            with self.subTest(launcher=launcher):
                result = self.lab.run(["salloc", "-Q", "-N33", "-n66", KOLORUN, "--prefix", "always", "--launcher", launcher, "hostname"])
                self.assertEqual(sorted(result.out.splitlines()), sorted(f"[{rank}] node{rank // 2 + 1}" for rank in range(66)), result)


class SlowSite(slurm.LabTest):
    """Slurm kills what does not end at SIGTERM after half a minute, as it does on most sites. Each job has hosts that no job had before:
    those of the last one are not free for so long."""

    @classmethod
    def make_lab(cls):
        return slurm.Slurm(hosts.Hosts(6), KillWait=30)

    def test_ranks_that_do_not_end_after_a_loss_are_ended_by_kolorun(self):
        """A second after it. Each rank tells the time, until it is killed."""
        ticks = "trap '' TERM; while date +%s.%N; do sleep 0.1; done"
        dies = f"if [ $SLURM_PROCID = 1 ]; then sleep 0.5; date +%s.%N; kill -9 $$; fi; {ticks}"
        for options in ((), ("--stopped-exit-code", 75)):  # srun ends no rank then
            with self.subTest(options=options):
                result = self.lab.run(["salloc", "-Q", "-N2", "-n2", KOLORUN, "-q", *options, "sh", "-c", dies])
                self.assertEqual(result.code, 137, result)
                self.assertRegex(result.err, r"rank 1 on node\d is gone")
                last = {rank: float(time) for rank, time in re.findall(r"^\[(\d)\] (\S+)$", result.out, re.MULTILINE)}
                print(f"the other rank lived for {last['0'] - last['1']:.1f} s", flush=True)
                self.assertLess(last["0"] - last["1"], 5 * hosts.SLOWDOWN, result)

    def test_a_job_starts_again_although_a_rank_of_the_last_start_does_not_end(self):
        fails = 'echo starts; if [ $SLURM_PROCID = 1 ]; then sleep 0.5; exit 3; fi; trap "" TERM; while sleep 0.1; do :; done'
        began = time.monotonic()
        result = self.lab.run(["salloc", "-Q", "-N2", "-n2", KOLORUN, "-q", "--restarts", 1, "sh", "-c", fails])
        self.assertLess(time.monotonic() - began, 30 * hosts.SLOWDOWN, result)
        self.assertEqual(result.code, 3, result)
        self.assertEqual(result.out.count("starts"), 4, result)
        self.assertEqual(len(re.findall(r"rank 1 on node\d ended with exit code 3", result.err)), 2, result)
        self.assertNotIn("is gone", result.err)


if __name__ == "__main__":
    slurm.main(parts=2)
