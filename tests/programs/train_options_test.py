#!/usr/bin/env python3
"""What kolo-train tells while it trains, and the options of its optimizer."""
import datetime
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import time
import unittest

from programs import SLOWDOWN, ProgramTest, command, environment, finish, kolorun, rank_processes, run, start

SMALL = ("--model", "mlp", "--data", "generated", "--threads", 1)
TOLD = (*SMALL, "--json", "--log-steps", 1)


def progress(result):
    return [e for e in result.events if e["event"] == "progress"]


def on_a_terminal(words, deadline=60, errors=False):
    """What a program writes to a terminal; errors: its stderr is that terminal, too."""
    reader, terminal = pty.openpty()
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal if errors else subprocess.DEVNULL,
                               env=environment())
    os.close(terminal)
    text, end = b"", time.monotonic() + deadline * SLOWDOWN
    while time.monotonic() < end:
        if select.select([reader], [], [], 0.1)[0]:
            try:
                text += os.read(reader, 65536)
            except OSError:  # the other end is closed
                break
    os.close(reader)
    if process.poll() is None and time.monotonic() >= end:
        process.kill()
    process.wait()
    return text.decode().replace("\r\n", "\n")


def flip_a_bit(pid, found):
    """Of each place in the memory of a process that holds these bytes; how many there were."""
    count = 0
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps, open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        for line in maps:
            place, access = line.split()[:2]
            begin, end = (int(number, 16) for number in place.split("-"))
            if not access.startswith("rw") or end - begin > 1 << 30:
                continue
            try:
                memory.seek(begin)
                content = memory.read(end - begin)
            except (OSError, ValueError, OverflowError):  # what is no memory, or went meanwhile
                continue
            at = content.find(found)
            while at >= 0:
                memory.seek(begin + at)
                memory.write(bytes([content[at] ^ 1]))
                count, at = count + 1, content.find(found, at + 1)
    return count


class CheckDrift(ProgramTest):
    def test_ranks_that_hold_the_same_weights_are_not_stopped(self):
        for options in ((), ("--sharded",), ("--compression", "powersgd:2"), ("--backward-passes", 2)):
            result = self.assert_ok(run("kolo-train", *SMALL, "--steps", 6, "--check-drift", 1, *options, "--json", ranks=2))
            self.assertEqual(result.done["global_step"], 6)

    def test_a_bit_that_flips_in_the_memory_of_one_rank_is_named(self):
        job = start("kolo-train", *SMALL, "--optimizer", "sgd", "--learning-rate", 1e-30, "--steps", 10**6, "--check-drift", 10,
                    "--checkpoint-dir", self.folder, "--log-steps", 1, launcher=kolorun(2, "--prefix", "always"))
        self.addCleanup(lambda: job.poll() is None and os.killpg(job.pid, signal.SIGKILL))
        while "step 3/" not in job.stdout.readline():  # weights stay as they were: the rate is nothing to them
            self.assertIsNone(job.poll())
        file = next(self.folder.glob("*.safetensors")).read_bytes()
        header = 8 + struct.unpack("<Q", file[:8])[0]
        first = json.loads(file[8:header])["fc1/w"]["data_offsets"][0] + header
        self.assertGreater(flip_a_bit(rank_processes(job)[1], file[first:first + 256]), 0)
        result = finish(job)
        self.assertEqual(result.code, 1, result.err)
        told = r'(?m)^\[%d\] kolo-train: .*weights differ: "fc1/w" on rank 1 since a step in \d+\.\.\d+ \(1 of \d+ variables\)'
        self.assertTrue(any(re.search(told % rank, result.err) for rank in range(2)), result.err)

    def test_weights_that_are_no_numbers_are_the_same_too(self):
        result = run("kolo-train", *SMALL, "--optimizer", "sgd", "--learning-rate", 1e30, "--keep-going", "--steps", 6,
                     "--check-drift", 1, "--json", ranks=2)
        self.assertNotIn("weights differ", result.err)

    def test_a_number_of_steps_that_is_none_is_refused(self):
        result = run("kolo-train", *SMALL, "--check-drift", "often")
        self.assertEqual(result.code, 2)
        self.assertIn('--check-drift "often" is not valid; it must be a whole number from 0', result.err)


class Progress(ProgramTest):
    def test_rows_carry_time_epoch_rate_and_run(self):
        before = time.time()
        first = self.assert_ok(run("kolo-train", *TOLD, "--batch-size", 350, "--steps", 20, "--log-dir", self.folder))
        self.assert_ok(run("kolo-train", *TOLD, "--steps", 2, "--log-dir", self.folder))
        rows = [json.loads(line) for line in (self.folder / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual(rows[1: 1 + len(first.events)], first.events)
        self.assertEqual(len({row["run"] for row in rows}), 2)
        self.assertEqual([row["epoch"] for row in rows[1:21]], [round(step / 20, 3) for step in range(1, 21)], "7,000 digits")
        self.assertEqual({row["learning_rate"] for row in rows if row["event"] == "progress"}, {0.001})
        times = [row["time"] for row in rows]
        self.assertEqual(times, sorted(times))
        self.assertTrue(before - 1 < times[0] < time.time() + 1)

    def test_comes_by_time_where_no_steps_are_named(self):
        for ranks in (1, 2):
            begin = time.monotonic()
            result = self.assert_ok(run("kolo-train", *SMALL, "--json", "--batch-size", 8, "--steps", 150, ranks=ranks))
            seconds = time.monotonic() - begin
            self.assertLess(len(progress(result)), 8 + seconds, "1, 11 and 111 steps, and then one a second")
            self.assertGreaterEqual(len(progress(result)), 3)

    def test_lines_of_the_log_carry_date_and_time(self):
        before, err, after = datetime.datetime.now(), self.assert_ok(run("kolo-train", *SMALL, "--steps", 1)).err, datetime.datetime.now()
        line = next(line for line in err.splitlines() if "data: " in line)
        told = datetime.datetime.strptime(re.match(r"I (\S+ \S+) data: ", line).group(1), "%Y-%m-%d %H:%M:%S.%f")
        self.assertTrue(before - datetime.timedelta(seconds=1) <= told <= after, line)

    def test_says_the_time_of_day_where_lines_stay(self):
        out = self.assert_ok(run("kolo-train", *SMALL, "--steps", 2, "--log-steps", 1)).out
        for step in (1, 2):
            self.assertRegex(out, rf"(?m)^step {step}/2  epoch .*\)  [0-2]\d:[0-5]\d:[0-6]\d$")

    def test_is_rewritten_in_place_on_a_terminal_also_under_kolorun(self):
        train = (*SMALL, "--steps", 30)
        alone = on_a_terminal(command("kolo-train", *train))
        self.assertRegex(alone, r"^step 1/30  epoch 0\.01  loss [^\n]*\033\[K\r")
        self.assertRegex(alone, r"\r\ndone: step 30, ")
        several = on_a_terminal(command("kolo-train", *train, launcher=kolorun(2)))
        self.assertRegex(several, r"(?m)^\[0\] step 1/30  epoch [^\n]* on 2 ranks [^\n]*\033\[K\r")
        self.assertRegex(several, r"(?m)^\[0\] done: step 30, ")

    def test_leaves_nothing_of_a_progress_line_behind_a_line_of_the_log(self):
        for launcher in (None, kolorun(2)):
            train = (*SMALL, "--steps", 4, "--log-steps", 1, "--save-steps", 2, "--checkpoint-dir", self.folder / str(launcher is None))
            text = on_a_terminal(command("kolo-train", *train, launcher=launcher), errors=True)
            behind = [line.split("\r")[-1] for line in text.split("\n") if "Saving checkpoints for 2" in line]
            self.assertEqual(len(behind), 1, text)
            self.assertIn("\033[K", behind[0].split("Saving")[0], text)

    def test_names_the_test_samples_that_were_right_every_so_many_steps(self):
        result = self.assert_ok(run("kolo-train", *TOLD, "--steps", 60, "--validate-every", 20, ranks=2))
        rows = [e for e in result.events if e["event"] == "validation"]
        self.assertEqual([row["global_step"] for row in rows], [20, 40])
        self.assertGreater(result.done["test_accuracy"], rows[0]["test_accuracy"] - 0.05)
        self.assertGreater(rows[1]["test_samples"], 0)


class Rates(ProgramTest):
    def rates(self, *options):
        result = self.assert_ok(run("kolo-train", *TOLD, "--optimizer", "sgd", "--learning-rate", 0.1, "--steps", 8, *options))
        return [e["learning_rate"] for e in progress(result)]

    def assert_rates(self, options, expected):
        for found, rate in zip(self.rates(*options), expected, strict=True):
            self.assertAlmostEqual(found, rate, delta=1e-6)

    def test_fall_as_the_schedule_says(self):
        self.assert_rates((), [0.1] * 8)
        self.assert_rates(("--schedule", "linear"), [0.1 * (8 - s) / 8 for s in range(8)])
        self.assert_rates(("--schedule", "cosine"), [0.1, 0.0961940, 0.0853553, 0.0691342, 0.05, 0.0308658, 0.0146447, 0.0038060])
        self.assert_rates(("--schedule", "step"), [0.1] * 4 + [0.01] * 2 + [0.001] * 2)

    def test_grow_while_they_warm_up(self):
        self.assert_rates(("--warmup", 4), [0.025, 0.05, 0.075, 0.1, 0.1, 0.1, 0.1, 0.1])


class Gradients(ProgramTest):
    def done(self, *options, ranks=1, steps=20):
        result = self.assert_ok(run("kolo-train", *TOLD, "--steps", steps, *options, ranks=ranks))
        return result.done

    def test_of_several_passes_are_those_of_a_larger_batch(self):
        sgd = ("--optimizer", "sgd", "--checkpoint-dir")
        one, two = self.folder / "one", self.folder / "two"
        self.assertEqual(self.done("--batch-size", 32, *sgd, one)["global_step"], 20)
        self.assertEqual(self.done("--batch-size", 16, "--backward-passes", 2, *sgd, two)["global_step"], 20)
        accuracies = [json.loads(run("kolo-train", *SMALL, "--json", "--evaluate", "--checkpoint-dir", folder).out)["test_accuracy"]
                      for folder in (one, two)]
        self.assertAlmostEqual(*accuracies, delta=0.002)

    def test_that_are_clipped_to_nothing_change_nothing(self):
        sgd = ("--optimizer", "sgd", "--learning-rate", 0.1)
        start = self.done(*sgd, steps=1)["loss"]
        self.assertAlmostEqual(self.done(*sgd, "--clip-norm", 1e-6)["loss"], start, delta=0.1)
        self.assertLess(self.done(*sgd, "--clip-norm", 1)["loss"], start - 0.3)

    def test_pull_the_weights_towards_zero_where_they_decay(self):
        for optimizer in ("sgd", "adamw"):
            options = ("--optimizer", optimizer, "--learning-rate", 0.1 if optimizer == "sgd" else 0.01)
            self.assertNotEqual(self.done(*options)["loss"], self.done(*options, "--weight-decay", 0.5)["loss"])

    def test_are_the_same_in_parts_and_nearly_so_when_compressed(self):
        loss = lambda *options: self.done(*options, "--batch-size", 16, ranks=2, steps=8)["loss"]
        plain = loss()
        self.assertEqual(loss("--sharded"), plain)
        for name in ("fp16", "bf16"):
            self.assertAlmostEqual(loss("--compression", name) / plain, 1, delta=0.05)
        for name in ("powersgd:2", "topk:0.2"):
            self.assertGreater(loss("--compression", name), 0)


class Checkpoints(ProgramTest):
    def test_are_kept_as_many_as_asked_for(self):
        self.assert_ok(run("kolo-train", *TOLD, "--steps", 10, "--save-steps", 2, "--keep", 2, "--checkpoint-dir", self.folder))
        self.assertEqual(sorted(p.name for p in self.folder.glob("*.safetensors")),
                         ["model.ckpt-10.safetensors", "model.ckpt-8.safetensors"])


if __name__ == "__main__":
    unittest.main()
