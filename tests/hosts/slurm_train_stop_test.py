#!/usr/bin/env python3
"""A training that Slurm stops has saved, says so by its exit code, and goes on."""
import re

import hosts
import slurm

KOLORUN = hosts.BIN / "kolorun"
SLEEPY = hosts.PROBE.parent / "sleepy"
STEPS = 100


class Stop(slurm.StoppedTrainings):
    def stopped_by(self, signal, *kolorun):
        """A job of 3 s steps gets a signal as from sbatch --signal, which would take half a minute here."""
        job = self.submit(*kolorun, steps=400, ms=3000)
        self.wait_for_line(job, "starts at step 0")
        self.lab.run(["scancel", *signal, job])
        output = self.over(job, "COMPLETED", 0)
        step, _ = self.saved()
        self.assertIn(f"ends at step {step}", output)
        self.assertGreater(step, 0)
        return output

    def test_sigterm_to_the_steps_saves_with_srun(self):
        self.assertNotIn("use #SBATCH --signal", self.stopped_by(["--signal=TERM"]))

    def test_sigusr1_to_the_steps_saves_with_mpirun_which_asks_for_it(self):
        output = self.stopped_by(["--signal=USR1"], "--launcher", "mpirun")
        self.assertIn("in Slurm SIGTERM ends mpirun's daemons before a step is saved; use #SBATCH --signal=USR1@60", output)

    def test_sigterm_to_the_batch_script_saves(self):
        self.stopped_by(["--batch", "--signal=TERM"])

    def test_kolorun_stops_before_the_jobs_time_ends(self):
        job = self.submit("--stop-before", 50, steps=400, ms=3000, options=["--time=1"], env={"KOLO_STOPPED_EXIT_CODE": "75"})
        output = self.over(job, "FAILED", 75)
        self.assertRegex(output, r"kolorun: the job's time ends at \d\d:\d\d:\d\d; asking the ranks to stop")
        self.assertNotIn("MPI_ABORT", output)
        self.assertIn(f"ends at step {self.saved()[0]}", output)

    def test_a_preempted_training_goes_on_and_ends_with_the_bytes_of_an_undisturbed_one(self):
        self.over(self.submit(steps=STEPS, ms=1, name="undisturbed"), "COMPLETED", 0)
        job = self.submit("--requeue", steps=STEPS, ms=150)
        self.wait_for_line(job, "starts at step 0")
        self.preempt(job, "Slurm starts job")
        stopped = int(re.search(r"stopped at step (\d+)", self.lab.output(job)).group(1))
        self.assertEqual(self.saved()[0], stopped)
        self.start_again(job)
        output = self.over(job, "COMPLETED", 0)
        self.assertIn(f"starts at step {stopped}\n", output)
        self.assertEqual(self.lab.show(job)["Restarts"], "1")
        self.assertEqual(self.saved(), (STEPS, self.saved("undisturbed")[1]), output)

    def submit_srun(self, *words, steps, ms, options=(), env=None):
        return self.submit_command(*words, SLEEPY, self.folder / "ck", steps, ms, options=options, env=env)

    def test_a_preempted_training_of_a_plain_srun_is_queued_again_where_that_is_asked_for(self):
        self.over(self.submit(steps=STEPS, ms=1, name="undisturbed"), "COMPLETED", 0)
        job = self.submit_srun("srun", "--mpi=pmix", steps=STEPS, ms=150, env={"KOLO_REQUEUE": "1"})
        self.wait_for_line(job, "starts at step 0")
        self.preempt(job, "Slurm starts job")
        stopped = int(re.search(rf"kolo: stopped at step (\d+) of \d+; Slurm starts job {job} again", self.lab.output(job)).group(1))
        self.assertEqual(self.saved()[0], stopped)
        self.start_again(job)
        output = self.over(job, "COMPLETED", 0)
        self.assertIn(f"starts at step {stopped}\n", output)
        self.assertNotIn(" is gone", output)
        self.assertEqual(self.lab.show(job)["Restarts"], "1")
        self.assertEqual(self.saved(), (STEPS, self.saved("undisturbed")[1]), output)

    def test_a_preempted_training_of_a_plain_mpirun_is_queued_again_as_well(self):
        job = self.submit_srun("mpirun", "--bind-to", "none", steps=400, ms=100, env={"KOLO_REQUEUE": "1"})
        self.wait_for_line(job, "starts at step 0")
        self.lab.run(["scancel", "--full", "--signal=USR1", job])
        self.wait_for_line(job, f"; Slurm starts job {job} again")
        self.assertGreater(self.saved()[0], 0)
        self.lab.wait_for(lambda: self.lab.show(job)["JobState"] == "PENDING")
        self.lab.run(["scancel", job])

    def test_a_plain_srun_stops_before_the_jobs_time_ends(self):
        job = self.submit_srun("srun", "--mpi=pmix", steps=400, ms=500, options=["--time=1"], env={"KOLO_STOP_BEFORE": "50", "KOLO_STOPPED_EXIT_CODE": "75"})
        output = self.over(job, "FAILED", 75)
        self.assertRegex(output, r"the job's time ends at \d\d:\d\d:\d\d; asking all ranks to stop")
        self.assertIn(f"ends at step {self.saved()[0]}", output)

    def test_a_plain_srun_that_cannot_be_queued_again_says_so(self):
        result = self.lab.run(["salloc", "-Q", "-N2", "-n2", "--time=1", "srun", "--mpi=pmix", SLEEPY, self.folder / "ck", 400, 100],
                              env={"KOLO_REQUEUE": "1", "KOLO_STOP_BEFORE": "56"})
        self.assertEqual(result.code, 75, result)
        self.assertEqual(len(re.findall(r"kolo: stopped at step \d+ of \d+; Slurm did not start the job again: scontrol show job says BatchFlag=0", result.err)), 1, result)

    def test_a_cancelled_training_saves_and_stays_cancelled(self):
        job = self.submit("--requeue", steps=400, ms=300)
        self.wait_for_line(job, "starts at step 0")
        self.lab.run(["scancel", job])
        self.assertEqual(self.lab.wait_until_over(job)["JobState"], "CANCELLED", self.lab.output(job))
        self.assertIn("; Slurm did not start the job again: it was cancelled", self.lab.output(job))
        self.assertIn(f"ends at step {self.saved()[0]}", self.lab.output(job))

    def test_a_job_that_cannot_be_queued_again_says_so(self):
        result = self.lab.run(["salloc", "-Q", "-N2", "-n2", "--time=1", KOLORUN, "--requeue", "--stop-before", 56, SLEEPY, self.folder / "ck", 400, 100])
        self.assertEqual(result.code, 75, result)
        self.assertRegex(result.err, r"kolorun: stopped at step \d+ of \d+; Slurm did not start the job again: scontrol show job says BatchFlag=0")


if __name__ == "__main__":
    slurm.main()
