#!/usr/bin/env python3
"""kolorun as a Unix program: signals that were ignored, closed descriptors, standard input, a rank's children, containers."""
import os
import signal
import subprocess
import unittest

from programs import BIN, DEADLINE_S, ProgramTest, environment, finish, kolorun

TRAIN = [str(BIN / "kolo-train"), "--model", "mlp", "--data", "generated", "--batch-size", "16", "--threads", "1"]


def shell(script, folder, deadline=DEADLINE_S, **options):
    return subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=deadline, cwd=folder,
                          env=environment(PATH=f"{BIN}:{os.environ['PATH']}"), **options)


class IgnoredSignals(ProgramTest):
    def ignored_while_training(self, number):
        job = subprocess.Popen([*kolorun(2), *TRAIN, "--steps", "100000", "--log-steps", "1"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
                               preexec_fn=lambda: signal.signal(number, signal.SIG_IGN), start_new_session=True)
        try:
            while "step 3/" not in job.stdout.readline():
                self.assertIsNone(job.poll())
            job.send_signal(number)
            for _ in range(20):
                self.assertIn("step ", job.stdout.readline())
            self.assertIsNone(job.poll())
        finally:
            job.send_signal(signal.SIGTERM)
            result = finish(job)
        self.assert_ok(result)

    def test_hangup_under_nohup_lets_the_job_go_on(self):
        self.ignored_while_training(signal.SIGHUP)

    def test_interrupt_of_a_job_in_a_scripts_background_lets_it_go_on(self):
        self.ignored_while_training(signal.SIGINT)

    def test_an_ignored_sigchld_does_not_hide_the_exit_code(self):
        job = subprocess.Popen([*kolorun(2), "sh", "-c", "exit 3"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True, env=environment(),
                               preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN), start_new_session=True)
        self.assertEqual(finish(job).code, 3)


class StandardDescriptors(ProgramTest):
    def test_a_closed_descriptor_does_not_keep_the_job_from_its_end(self):
        for number, how in enumerate((">&-", "2>&-", "<&- >&- 2>&-")):
            done = shell(f"kolorun -n 2 -- {' '.join(TRAIN)} --steps 4 --checkpoint-dir ck{number} {how}", self.folder, 60)
            self.assertEqual(done.returncode, 0, how)
            self.assertTrue(list(self.folder.glob(f"ck{number}/*.safetensors")), how)

    def test_standard_input_stays_with_the_loop_that_kolorun_stands_in(self):
        done = shell("printf '1\\n2\\n3\\n' | while read i; do kolorun -n 1 -- cat; echo got $i; done", self.folder)
        self.assertEqual(done.stdout, "got 1\ngot 2\ngot 3\n")

    def test_stdin_hands_it_to_rank_0(self):
        done = shell("printf 'a\\nb\\n' | kolorun -n 2 --stdin --prefix always -- cat", self.folder)
        self.assertEqual(done.stdout, "[0] a\n[0] b\n")


class FullDisk(ProgramTest):
    """Of a batch job's output file: a training of hours does not end for a line that nobody gets."""

    def test_the_job_goes_on_without_its_lines_and_says_so_where_it_can(self):
        script = "kolorun -n 2 -- sh -c 'echo a; echo b >&2; sleep 0.5; echo c; echo d >&2; touch ran'"
        for full, stream, other in ((">/dev/full", "stdout", ("b", "d")), ("2>/dev/full", "stderr", ("a", "c"))):
            with self.subTest(full=full):
                done = shell(f"{script} {full}", self.folder)
                self.assertEqual(done.returncode, 0, done)
                (self.folder / "ran").unlink()
                said = done.stdout + done.stderr
                for letter in other:
                    self.assertIn(f"[1] {letter}\n", said)
                if stream == "stdout":
                    self.assertEqual(said.count("kolorun: stdout cannot be written: No space left on device; lines are missing there\n"), 1, said)

    def test_errors_keep_their_exit_code(self):
        for words, code in (("-n 2 no-such-program", 1), ("--no-such-option", 2), ("-n 1 --restarts 1 -- sh -c 'exit 3'", 3)):
            self.assertEqual(shell(f"kolorun {words} 2>/dev/full", self.folder).returncode, code, words)


class WaitingForHosts(ProgramTest):
    def test_a_batch_job_that_is_ended_while_it_waits_is_queued_again(self):
        brequeue = self.folder / "brequeue"
        brequeue.write_text("#!/bin/sh\necho $@ >asked\n")
        brequeue.chmod(0o755)
        job = subprocess.Popen([BIN / "kolorun", "--elastic", "--requeue", "--", "true"], stderr=subprocess.PIPE, text=True, cwd=self.folder,
                               env=environment(LSB_JOBID="77", LSB_MCPU_HOSTS="kolo-no-such-host 2", PATH=f"{self.folder}:{os.environ['PATH']}"))
        try:
            self.assertIn("waiting for 1 more rank: kolo-no-such-host does not answer", job.stderr.readline())
            job.send_signal(signal.SIGTERM)
            self.assertEqual(job.stderr.readline(), "kolorun: SIGTERM has ended the waiting for hosts\n")
            self.assertEqual(job.stderr.readline(), "kolorun: stopped; LSF starts job 77 again\n")
        finally:
            job.send_signal(signal.SIGTERM)  # as the batch system does then
            code = finish(job).code
        self.assertEqual((code, (self.folder / "asked").read_text()), (75, "77\n"))


class Children(ProgramTest):
    @unittest.skipUnless(os.path.exists(BIN.parent / "python" / "kolo"), "the Python package is not built")
    def test_what_a_rank_starts_is_refused_and_the_job_ends(self):
        program = self.folder / "parent.py"
        program.write_text("import os, subprocess, sys, kolo\nkolo.init()\n"
                           "for variables in (None, dict(os.environ)):\n"
                           "    child = subprocess.run([sys.executable, '-c', 'import kolo; kolo.init()'], text=True,\n"
                           "                           capture_output=True, timeout=60, env=variables)\n"
                           "    print(child.returncode, child.stderr.splitlines()[-1], flush=True)\n")
        done = subprocess.run([*kolorun(2, "--prefix", "never"), "/usr/bin/python3", str(program)], capture_output=True, text=True,
                              timeout=60, stdin=subprocess.DEVNULL, env=environment(PYTHONPATH=BIN.parent / "python"))
        lines = done.stdout.splitlines()
        self.assertEqual((done.returncode, len(lines)), (0, 4), done.stdout + done.stderr)
        for line in lines:
            self.assertRegex(line, r"^1 .*this process was started by rank [01] \(process \d+\)")


class Containers(ProgramTest):
    @unittest.skipIf(os.geteuid() != 0, "needs root for PID namespaces")
    def test_ranks_in_pid_namespaces_of_their_own_train(self):
        if subprocess.run(["unshare", "-pf", "--mount-proc", "true"], capture_output=True).returncode != 0:
            self.skipTest("this kernel makes no PID namespaces here")
        job = subprocess.Popen([*kolorun(2), "unshare", "-pf", "--mount-proc", *TRAIN, "--steps", "20"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(), start_new_session=True)
        self.assert_ok(finish(job))

    @unittest.skipIf(os.geteuid() != 0, "needs root for PID namespaces")
    def test_two_jobs_that_share_everything_but_their_pids_both_train(self):
        alone = subprocess.run(["unshare", "-pf", "--mount-proc", "true"], capture_output=True, text=True)
        if alone.returncode != 0:
            self.skipTest(alone.stderr)
        command = ["unshare", "-pf", "--mount-proc", *kolorun(2), *TRAIN, "--steps", "100"]
        for _ in range(3):
            jobs = [subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                     env=environment(TMPDIR=self.folder), start_new_session=True) for _ in range(2)]
            for job in jobs:
                self.assert_ok(finish(job))
        self.assertEqual(list(self.folder.glob("kolo-mpi-*")), [])


if __name__ == "__main__":
    unittest.main()
