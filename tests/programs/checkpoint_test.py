#!/usr/bin/env python3
"""A checkpoint folder and what may come between a training and it: another training, a full disk, a loss that is no number, another optimizer."""
import json
import os
import re
import resource
import signal
import subprocess
import time
import unittest

from programs import DEADLINE_S, SLOWDOWN, ProgramTest, command, environment, finish, kolorun, rank_processes, run, start

SMALL = ("--model", "mlp", "--data", "generated", "--json")
ENDLESS = ("--steps", 10**7, "--save-steps", 20)


def wait_for(condition, seconds=60):
    deadline = time.monotonic() + seconds * SLOWDOWN
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError("it did not come to that in time")
        time.sleep(0.02)


class Folder(ProgramTest):
    def setUp(self):
        super().setUp()
        self.train = ("kolo-train", *SMALL, "--checkpoint-dir", self.folder)

    def checkpoints(self):
        return sorted(int(re.search(r"ckpt-(\d+)\.", p.name).group(1)) for p in self.folder.glob("model.ckpt-*.index.json"))

    def train_in_the_background(self, ranks=1, launcher=None):
        process = start(*self.train, *ENDLESS, ranks=ranks, launcher=launcher)
        self.addCleanup(lambda: process.poll() is None and os.killpg(process.pid, signal.SIGKILL))
        wait_for(lambda: len(self.checkpoints()) >= 3)
        return process


class Schedules(Folder):
    def test_say_that_another_number_of_steps_makes_the_rate_jump(self):
        cosine = (*self.train, "--schedule", "cosine", "--steps")
        self.assertNotIn("jumps", self.assert_ok(run(*cosine, 4)).err)
        self.assertNotIn("jumps", self.assert_ok(run(*cosine, 4)).err)
        self.assertIn("--schedule ends at step 8 now and ended at step 4 before", self.assert_ok(run(*cosine, 8)).err)


class TwoTrainings(Folder):
    def test_the_second_one_is_told_who_is_there(self):
        process = self.train_in_the_background(ranks=2)
        ranks = rank_processes(process)
        self.assert_one_line(run(*self.train, "--steps", 3), 1, "is in use", f"process {ranks[0]} on ", str(self.folder))
        os.kill(ranks[1], signal.SIGTERM)
        self.assert_ok(finish(process))

    def test_evaluation_beside_a_training_needs_no_lock(self):
        process = self.train_in_the_background()
        for _ in range(3):
            done = self.assert_ok(run("kolo-train", *SMALL, "--evaluate", "--checkpoint-dir", self.folder)).done
            self.assertGreater(done["global_step"], 0)
        process.send_signal(signal.SIGTERM)
        self.assert_ok(finish(process))

    def test_a_killed_one_can_be_started_again_at_once(self):
        process = self.train_in_the_background(ranks=2)
        for pid in rank_processes(process).values():
            os.kill(pid, signal.SIGKILL)
        saved = self.checkpoints()[-1]
        started = time.monotonic()
        self.assert_ok(run(*self.train, "--steps", saved + 40, ranks=2))
        finish(process)
        self.assertLess(time.monotonic() - started, 60)
        self.assertFalse((self.folder / "checkpoint.lock").exists())

    def test_kolorun_restarts_a_killed_job_in_its_folder(self):
        process = self.train_in_the_background(launcher=kolorun(2, "--restarts", "1"))
        killed = rank_processes(process)
        os.kill(killed[1], signal.SIGKILL)
        wait_for(lambda: len(again := rank_processes(process)) == 2 and not set(again.values()) & set(killed.values()))
        saved = self.checkpoints()[-1]
        wait_for(lambda: self.checkpoints()[-1] > saved)
        process.send_signal(signal.SIGTERM)
        result = self.assert_ok(finish(process))
        self.assertIn("restart 1 of 1", result.err)
        self.assertGreater(result.done["global_step"], saved)


class ReadOnly(Folder):
    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_evaluation_needs_no_right_to_write(self):
        self.assert_ok(run(*self.train, "--steps", 3))
        self.folder.chmod(0o500)
        self.addCleanup(self.folder.chmod, 0o700)
        self.assert_ok(run("kolo-train", *SMALL, "--evaluate", "--checkpoint-dir", self.folder))


class Limits(Folder):
    def test_a_limit_of_file_sizes_is_an_error_and_leaves_the_old_checkpoint(self):
        self.assert_ok(run(*self.train, "--steps", 3))
        before = {p.name: p.read_bytes() for p in self.folder.iterdir()}
        done = subprocess.run(command(*self.train, "--steps", 6), capture_output=True, text=True, timeout=DEADLINE_S * SLOWDOWN, env=environment(),
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000)))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("File too large", done.stderr)
        self.assertEqual({p.name: p.read_bytes() for p in self.folder.iterdir()}, before)

    def test_a_state_file_that_is_a_pipe_hangs_nobody(self):
        self.assert_ok(run(*self.train, "--steps", 3))
        (self.folder / "checkpoint").unlink()
        os.mkfifo(self.folder / "checkpoint")
        result = self.assert_ok(run(*self.train, "--steps", 6, deadline=60))
        self.assertIn("Checkpoint ignored", result.err)
        self.assertEqual(result.events[0]["global_step"], 4)


class NanLoss(Folder):
    def setUp(self):
        super().setUp()
        self.diverging = (*self.train, "--optimizer", "sgd", "--learning-rate", 1e30, "--save-steps", 1)

    def test_ends_the_training_with_the_step_and_the_op(self):
        for ranks in (1, 2):
            result = run(*self.diverging, "--steps", 50, ranks=ranks)
            self.assertEqual(result.code, 1, result.err)
            self.assertRegex(result.err, r"kolo-train: .*NaN loss during training\. The loss \"\S+\" is not finite in step \d+")
            self.assertRegex(result.err, r"first op with a non-finite output is \w+ node|it comes from variable")
            self.assertNotIn("terminate called", result.err)

    def test_is_looked_for_in_batches_that_lie_on_a_gpu(self):
        table = self.folder / "t.csv"
        table.write_text("a,b,y\n" + "".join(f"{i / 7:.3f},{i % 5},{i % 3}\n" for i in range(60)))
        words = ("kolo-train", "--model", "mlp", "--data", table, "--batch-size", 8, "--optimizer", "sgd", "--learning-rate", 1e30, "--device", "gpu")
        result = run(*words, KOLO_VIRTUAL_GPUS="1")
        self.assertEqual(result.code, 1, result.err)
        self.assertRegex(result.err, r"NaN loss during training\. .*first op with a non-finite output is \w+ node|it comes from variable")

    def test_never_replaces_a_good_checkpoint(self):
        self.assert_ok(run(*self.train, "--optimizer", "sgd", "--steps", 2, "--save-steps", 1))
        for option in ((), ("--keep-going",)):
            run(*self.diverging, "--steps", 40, *option)
            self.assertIn(2, self.checkpoints())
            newest = self.checkpoints()[-1]
            done = self.assert_ok(run("kolo-train", *SMALL, "--evaluate", "--checkpoint-dir", self.folder)).done
            self.assertEqual(done["global_step"], newest)

    def test_goes_on_if_told_to_and_says_what_is_not_saved(self):
        result = self.assert_ok(run(*self.diverging, "--steps", 20, "--keep-going"))
        self.assertEqual(result.done["global_step"], 20)
        self.assertRegex(result.err, r"step 20 is not saved into \S+: variable \"\S+\" holds nan")


class OtherOptimizer(Folder):
    def test_adam_goes_on_from_sgd_and_sgd_from_adam_with_one_line(self):
        self.assert_ok(run(*self.train, "--optimizer", "sgd", "--steps", 3))
        forth = self.assert_ok(run(*self.train, "--optimizer", "adam", "--steps", 6, ranks=2))
        self.assertEqual(forth.events[0]["global_step"], 4)
        lines = [line for line in forth.err.splitlines() if "another training step" in line]
        self.assertEqual(len(lines), 1, forth.err)
        self.assertIn("begin anew", lines[0])
        back = self.assert_ok(run(*self.train, "--optimizer", "sgd", "--steps", 9))
        self.assertEqual(back.events[0]["global_step"], 7)
        self.assertIn("will not be used, nor saved again", back.err)


class InitFrom(Folder):
    def test_begins_at_step_0_with_the_weights_of_a_checkpoint_and_then_goes_on_from_its_own(self):
        trained = self.folder / "trained"
        first = self.assert_ok(run("kolo-train", *SMALL, "--steps", 60, "--checkpoint-dir", trained)).events
        tuned = ("kolo-train", *SMALL, "--optimizer", "sgd", "--checkpoint-dir", self.folder / "tuned", "--init-from", trained)
        second = self.assert_ok(run(*tuned, "--steps", 5, ranks=2)).events
        self.assertEqual(second[0]["global_step"], 1)
        self.assertLess(second[0]["loss"], first[0]["loss"] / 2)
        third = self.assert_ok(run(*tuned, "--steps", 8, ranks=2)).events
        self.assertEqual(third[0]["global_step"], 6)

    def test_averages_begin_with_the_weights_too(self):
        trained = self.folder / "trained"
        first = self.assert_ok(run("kolo-train", *SMALL, "--steps", 60, "--checkpoint-dir", trained)).done
        tuned = ("kolo-train", *SMALL, "--optimizer", "sgd", "--learning-rate", 1e-6, "--steps", 1, "--average-decay", 0.9999)
        for ranks in (1, 2):
            second = self.assert_ok(run(*tuned, "--init-from", trained, ranks=ranks)).done
            self.assertAlmostEqual(second["test_loss"], first["test_loss"], delta=1e-3)

    def test_takes_any_safetensors_file_with_a_map_of_names(self):
        self.assert_ok(run(*self.train, "--steps", 3))
        file = self.folder / "model.ckpt-3.safetensors"
        held = json.loads(self.assert_ok(run("kolo-inspect", "checkpoint", self.folder, "--json")).out)["tensors"]
        weights = [n for n in held if "/Adam" not in n and not n.startswith(("beta", "global_step"))]
        names = self.folder / "names.json"
        names.write_text(json.dumps({weights[0]: ""}))
        result = self.assert_ok(run("kolo-train", *SMALL, "--steps", 1, "--init-from", file, "--init-names", names))
        self.assertIn(f"{len(weights) - 1} of {len(weights)} weights were read from", result.err)
        names.write_text(json.dumps({weights[0]: "elsewhere"}))
        self.assert_one_line(run("kolo-train", *SMALL, "--steps", 1, "--init-from", file, "--init-names", names, ranks=2), 1,
                             'lacks "elsewhere"')

    def test_refuses_what_does_not_fit(self):
        self.assert_one_line(run("kolo-train", *SMALL, "--steps", 1, "--init-from", self.folder), 1, "no checkpoint in the folder")
        damaged = self.folder / "damaged"
        self.assert_ok(run("kolo-train", *SMALL, "--steps", 2, "--checkpoint-dir", damaged))
        with open(damaged / "model.ckpt-2.safetensors", "r+b") as tensors:
            tensors.seek(-8, 2)
            tensors.write(b"changed!")
        self.assert_one_line(run("kolo-train", *SMALL, "--steps", 1, "--init-from", damaged), 1,
                             "the only intact checkpoint there is that of step 0, the untrained network")
        self.assertIn(f"{damaged}: no checkpoint of a later step is intact, and the training begins again at step 0",
                      self.assert_ok(run("kolo-train", *SMALL, "--steps", 3, "--checkpoint-dir", damaged)).err)
        self.assert_one_line(run("kolo-train", *SMALL, "--steps", 1, "--init-names", "x"), 2, "--init-names needs --init-from")
        names = self.folder / "names.json"
        names.write_text("[1]")
        self.assert_one_line(run("kolo-train", *SMALL, "--steps", 1, "--init-from", self.folder, "--init-names", names), 1, "JSON object")
        self.assert_one_line(run("kolo-train", *SMALL, "--steps", 1, "--init-from", self.folder, "--init-names", self.folder), 1, "not a file")


if __name__ == "__main__":
    unittest.main()
