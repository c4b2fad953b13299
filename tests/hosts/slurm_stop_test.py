#!/usr/bin/env python3
"""What Slurm stops ends saved, says so by its exit code, and goes on. The ranks are shells that count steps."""
import os
import re
import signal
import subprocess
import sys
import time

import hosts
import slurm

KOLORUN = hosts.BIN / "kolorun"
# FOLDER STEPS: goes on from the step in FOLDER. A request to stop is answered 3 s later, as by long steps, with the step saved.
RANK = """
trap 'stop=1' USR1 TERM
step=$(cat $1/step 2>/dev/null || echo 0)
echo starts at step $step
while [ $step -lt $2 ] && [ -z "$stop" ]; do sleep 0.1 & wait $!; step=$((step+1)); done
[ -z "$stop" ] || sleep 3
[ $PMIX_RANK != 0 ] || echo $step > $1/step
[ $step -ge $2 ] || exit ${KOLO_STOPPED_EXIT_CODE:-0}
"""


def blocks_sigterm(pid):
    """As kolorun does from its first line on."""
    try:
        with open(f"/proc/{pid}/status") as status:
            blocked = re.search(r"^SigBlk:\t([0-9a-f]+)$", status.read(), re.MULTILINE)
    except FileNotFoundError:
        return False
    return int(blocked[1], 16) >> signal.SIGTERM - 1 & 1 == 1


class Stop(slurm.StoppedJobs):
    def setUp(self):
        super().setUp()
        self.rank = self.folder / "rank.sh"
        self.rank.write_text(RANK)

    def submit(self, *kolorun, steps=1000, options=(), env=None):
        return self.submit_command(KOLORUN, *kolorun, "sh", self.rank, self.folder, steps, options=options, env=env)

    def saved(self):
        path = self.folder / "step"
        return int(path.read_text()) if path.exists() else 0

    def stopped_by(self, signal, *kolorun):
        """A job that gets a signal as sbatch --signal sends it, which would take half a minute here."""
        job = self.submit(*kolorun)
        self.wait_for_line(job, "starts at step 0", times=2)
        self.lab.run(["scancel", *signal, job])
        output = self.over(job, "COMPLETED", 0)
        self.assertGreater(self.saved(), 0)
        return output

    def test_sigterm_to_the_steps_saves_with_srun(self):
        self.assertNotIn("use #SBATCH --signal", self.stopped_by(["--signal=TERM"]))

    def test_sigusr1_to_the_steps_saves_with_srun(self):
        self.stopped_by(["--signal=USR1"], "--launcher", "srun")

    def test_sigusr1_to_all_processes_saves_with_mpirun_which_asks_for_it(self):
        output = self.stopped_by(["--full", "--signal=USR1"], "--launcher", "mpirun")
        self.assertIn("in Slurm SIGTERM ends mpirun's daemons before a step is saved; use #SBATCH --signal=USR1@60", output)

    def test_sigterm_to_the_batch_script_saves(self):
        self.stopped_by(["--batch", "--signal=TERM"])

    def test_a_request_in_the_first_moments_is_a_stop(self):
        """kolorun starts, then srun or mpirun, then the ranks, which do not take the signal yet."""
        for launcher, after in (("srun", 0.1), ("srun", 0.35), ("mpirun", 0.15), ("mpirun", 0.4)):
            with self.subTest(launcher=launcher, after=after):
                begun = self.folder / f"{launcher}{after}"
                command = [KOLORUN, "--launcher", launcher, "--requeue", "sh", self.rank, self.folder, 1000]
                job = self.lab.submit(f"echo $$ >{begun}\nexec {' '.join(map(str, command))}\n", "-N2", "-n2")
                self.lab.wait_for(lambda: begun.exists() and blocks_sigterm(begun.read_text().strip()))
                time.sleep(after)
                self.lab.run(["scancel", "--batch", "--signal=TERM", job])
                self.wait_for_line(job, f"Slurm starts job {job} again")
                self.lab.wait_for(lambda: self.lab.show(job)["Restarts"] == "1")
                self.lab.run(["scancel", job])

    def test_kolorun_stops_before_the_jobs_time_ends(self):
        for launcher in ("srun", "mpirun"):
            with self.subTest(launcher=launcher):
                job = self.submit("--launcher", launcher, "--stop-before", 45, options=["--time=1"], env={"KOLO_STOPPED_EXIT_CODE": "75"})
                output = self.over(job, "FAILED", 75)
                self.assertRegex(output, r"kolorun: the job's time ends at \d\d:\d\d:\d\d; asking the ranks to stop")
                for words in ("Primary job", "Exited with exit code", " is gone"):
                    self.assertNotIn(words, output)
                self.assertGreater(self.saved(), 0)

    def test_kolorun_stops_earlier_where_a_save_takes_long(self):
        """The usual time before the end of a minute is 6 s; twice the save and 10 s are 30."""
        self.rank.write_text("printf '\\001kolo save-took 10000\\n' >&2\n" + RANK)
        job = self.submit(options=["--time=1"], env={"KOLO_STOPPED_EXIT_CODE": "75"})
        self.assertIn("; asking the ranks to stop (the last save took 10 s)", self.over(job, "FAILED", 75))
        minutes, seconds = self.lab.show(job)["RunTime"].split(":")[1:]
        self.assertLess(60 * int(minutes) + int(seconds), 45)

    def test_a_preempted_job_is_started_again_and_goes_on(self):
        job = self.submit("--requeue", steps=150)
        self.wait_for_line(job, "starts at step 0", times=2)
        self.preempt(job, f"kolorun: stopped; Slurm starts job {job} again")
        saved = self.saved()
        self.assertGreater(saved, 0)
        self.start_again(job)
        self.assertIn(f"starts at step {saved}\n", self.over(job, "COMPLETED", 0))
        self.assertEqual((self.lab.show(job)["Restarts"], self.saved()), ("1", 150))

    def test_a_task_of_a_job_array_is_started_again_alone(self):
        for task in (0, 1):
            (self.folder / str(task)).mkdir()
        array = self.submit_command(KOLORUN, "--requeue", "sh", self.rank, f"{self.folder}/$SLURM_ARRAY_TASK_ID", 100,
                                    options=["--array=0-1", f"--output={hosts.SHARED}/%A_%a.out"])
        stopped, other = f"{array}_1", f"{array}_0"
        for task in (stopped, other):
            self.wait_for_line(task, "starts at step 0", times=2)
        self.lab.run(["scancel", "--batch", "--signal=TERM", stopped])
        self.wait_for_line(stopped, f"kolorun: stopped; Slurm starts job {stopped} again")
        saved = int((self.folder / "1" / "step").read_text())
        self.start_again(stopped)
        self.assertIn(f"starts at step {saved}\n", self.over(stopped, "COMPLETED", 0))
        self.over(other, "COMPLETED", 0)
        self.assertEqual([self.lab.show(task)["Restarts"] for task in (other, stopped)], ["0", "1"])
        self.assertEqual([(self.folder / task / "step").read_text() for task in "01"], ["100\n"] * 2)

    def test_a_job_that_cannot_be_started_again_says_so(self):
        result = self.lab.run(["salloc", "-Q", "-N2", "-n2", "--time=1", KOLORUN, "--requeue", "--stop-before", 50, "sh", self.rank, self.folder, 1000])
        self.assertEqual(result.code, 75, result)
        self.assertIn("kolorun: stopped; Slurm did not start the job again: scontrol show job says BatchFlag=0", result.err)

    def test_a_program_that_stops_without_the_code_is_not_started_again_and_kolorun_says_so(self):
        stops = 'trap "exit 0" USR1 TERM; while sleep 0.1; do :; done'
        result = self.lab.run(["salloc", "-Q", "-N2", "-n2", "--time=1", KOLORUN, "--requeue", "--stop-before", 52, "sh", "-c", stops])
        self.assertEqual(result.code, 0, result)
        self.assertIn("kolorun: the job was asked to stop and ended with exit code 0, not 75: it is not queued again", result.err)

    def test_a_program_in_python_stops_after_the_same_step_on_both_hosts(self):
        package = str(hosts.BIN.parent / "python")
        environment = {**os.environ, "PYTHONPATH": package}
        imports_kolo = lambda python: subprocess.run([python, "-c", "import kolo"], env=environment, stderr=subprocess.DEVNULL).returncode == 0
        python = next(filter(imports_kolo, (sys.executable, "/usr/bin/python3")), None)
        if python is None:
            self.skipTest("this build has no Python module")
        program = """
import sys, time, kolo
kolo.init()
for step in range(1, 10000):
    time.sleep(0.01 * (1 + kolo.rank()))
    if kolo.should_stop(step): break
print("stops after", step, "on", kolo.hostname(), flush=True)
sys.exit(kolo.exit_code())
"""
        result = self.lab.run(["salloc", "-Q", "-N2", "-n2", "--time=1", KOLORUN, "--requeue", "--stop-before", 50, python, "-c", program],
                              env={"PYTHONPATH": package})
        self.assertEqual(result.code, 75, result)
        steps = re.findall(r"stops after (\d+) on (node[12])", result.out)
        self.assertEqual(({host for _, host in steps}, len({step for step, _ in steps})), ({"node1", "node2"}, 1), result)
        self.assertIn(f"kolorun: stopped at step {steps[0][0]}; Slurm did not start the job again", result.err)


if __name__ == "__main__":
    slurm.main()
