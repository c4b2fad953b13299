#!/usr/bin/env python3
"""Trainings whose ranks change: the same global batch, each sample once, a rate that follows."""
import json
import os
import re
import signal
import time
import unittest

from programs import SLOWDOWN, ProgramTest, finish, kolorun, rank_processes, run, start

SMALL = ("kolo-train", "--model", "mlp", "--data", "generated", "--threads", 1, "--json", "--log-steps", 1, "--optimizer", "sgd")


def losses(result):
    return [e["loss"] for e in result.events if e["event"] == "progress"]


def crc32c(content):
    register = 0xFFFFFFFF
    for byte in content:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


def rates(result):
    return {e["global_step"]: e["learning_rate"] for e in result.events if e["event"] == "progress"}


class GlobalBatch(ProgramTest):
    def assert_alike(self, results, delta=1e-5):
        first = losses(results[0])
        for other in results[1:]:
            self.assertEqual(len(losses(other)), len(first))
            for one, two in zip(first, losses(other)):
                self.assertAlmostEqual(one / two, 1, delta=delta)

    def test_any_number_of_ranks_makes_the_same_training(self):
        for more in ((), ("--backward-passes", 2), ("--sharded", "--weight-decay", 0.01), ("--clip-norm", 0.5)):
            with self.subTest(more=more):
                self.assert_alike([self.assert_ok(run(*SMALL, "--global-batch", 100, "--steps", 4, *more, ranks=ranks)) for ranks in (1, 3)])

    def test_a_training_goes_on_with_other_ranks_as_if_they_were_the_same(self):
        results = []
        for second in (3, 2):
            train = (*SMALL, "--checkpoint-dir", self.folder / str(second))
            self.assert_ok(run(*train, "--global-batch", 50, "--steps", 4, ranks=3))
            results.append(self.assert_ok(run(*train, "--steps", 8, ranks=second)))  # the folder keeps --global-batch
        self.assert_alike(results)
        self.assertEqual(json.loads((self.folder / "2" / "config.json").read_text())["global_batch"], 50)

    def test_the_position_is_the_next_sample(self):
        train = (*SMALL, "--checkpoint-dir", self.folder)
        self.assert_ok(run(*train, "--batch-size", 33, "--steps", 7, ranks=3))
        self.assertEqual(self.position(7), {"epoch": 0, "sample": 693, "samples": 7000, "seed": 1})
        self.assert_ok(run(*train, "--batch-size", 40, "--steps", 8, ranks=2))
        self.assertEqual(self.position(8), {"epoch": 0, "sample": 773, "samples": 7000, "seed": 1})

    def position(self, step):
        return json.loads((self.folder / f"model.ckpt-{step}.index.json").read_text())["state"]["data"]

    def test_a_position_of_an_earlier_version_is_read(self):
        train = (*SMALL, "--checkpoint-dir", self.folder)
        self.assert_ok(run(*train, "--batch-size", 50, "--steps", 2))
        file = self.folder / "model.ckpt-2.index.json"
        index = json.loads(file.read_text())
        del index["index_crc32c"]
        index["state"]["data"] = {"batch": 2, "epoch": 0, "global_batch_size": 50}
        text = json.dumps(index, indent=1).removesuffix("\n}")
        file.write_text(f'{text},\n "index_crc32c": "{crc32c(text.encode()):08x}"\n}}\n')
        self.assert_ok(run(*train, "--batch-size", 30, "--steps", 3))
        self.assertEqual(self.position(3), {"epoch": 0, "sample": 130, "samples": 7000, "seed": 1})

    def test_an_epoch_may_end_with_a_smaller_step(self):
        results = [self.assert_ok(run(*SMALL, "--global-batch", 3000, "--epoch-end", "fill", "--epochs", 1, ranks=ranks)) for ranks in (1, 2)]
        self.assert_alike(results)
        self.assertEqual(results[0].done["global_step"], 3)  # 7,000 digits

    def test_a_step_of_several_passes_tells_the_loss_of_all_its_samples(self):
        for size in (("--global-batch", 53), ("--global-batch", 3000, "--epoch-end", "fill")):
            with self.subTest(size=size):
                results = [self.assert_ok(run(*SMALL, *size, "--steps", 4, "--backward-passes", passes)) for passes in (1, 4, 7)]
                self.assert_alike(results)
                for result in results[1:]:
                    self.assertAlmostEqual(result.done["loss"] / results[0].done["loss"], 1, delta=1e-5)

    def test_epochs_are_passes_over_the_samples_whatever_the_steps_before_took(self):
        train = (*SMALL, "--checkpoint-dir", self.folder)
        self.assert_ok(run(*train, "--batch-size", 50, "--steps", 35, ranks=2))  # half of the 7,000 digits
        result = self.assert_ok(run(*train, "--batch-size", 500, "--epochs", 2))
        self.assertEqual(result.done["global_step"], 35 + 7 + 14)
        epochs = [round(e["epoch"], 3) for e in result.events if e["event"] == "progress"]
        self.assertEqual((epochs[0], epochs[6], epochs[-1]), (0.571, 1, 2))
        self.assertEqual(self.position(56), {"epoch": 2, "sample": 0, "samples": 7000, "seed": 1})
        for batch, ranks in ((500, 1), (10, 1), (700, 3)):
            again = self.assert_ok(run(*train, "--batch-size", batch, "--epochs", 2, ranks=ranks))
            self.assertIn(f"nothing left to do: {self.folder} has seen 2 of --epochs 2", again.err)
        more = self.assert_ok(run(*train, "--batch-size", 700, "--epochs", 3, ranks=2))
        self.assertEqual(more.done["global_step"], 56 + 5)

    def test_the_epoch_that_is_told_is_the_position_in_the_samples(self):
        train, taken = (*SMALL, "--checkpoint-dir", self.folder, "--log-dir", self.folder / "logs"), 0
        for batch, passes, ranks, steps in ((50, 1, 2, 7), (33, 3, 1, 2), (41, 2, 3, 3), (900, 4, 1, 1)):
            more = steps + (0 if taken == 0 else self.last)
            result = self.assert_ok(run(*train, "--batch-size", batch, "--backward-passes", passes, "--steps", more, ranks=ranks))
            self.last = more
            for event in result.events:
                if event["event"] == "progress":
                    taken += batch * passes * ranks
                self.assertEqual(event["epoch"], round(taken / 7000, 6), event)
        rows = [json.loads(line) for line in (self.folder / "logs" / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual([row["epoch"] for row in rows if row["event"] == "run"], [0, 0.1, 0.128286, 0.233714])

    def test_an_epoch_begins_anew_where_the_data_have_changed_in_its_middle(self):
        table, rows = self.folder / "t.csv", [f"{i % 7},{i % 2}" for i in range(400)]
        for count in (150, 600):
            with self.subTest(count=count):
                train = ("kolo-train", "--model", "mlp", "--data", table, "--json", "--log-steps", 1, "--batch-size", 30, "--checkpoint-dir", self.folder / str(count))
                table.write_text("\n".join(["x,label", *rows]))
                self.assert_ok(run(*train, "--steps", 8))
                table.write_text("\n".join(["x,label", *(rows * 2)[:count]]))
                result = self.assert_ok(run(*train, "--epochs", 1))
                self.assertRegex(result.err, "there are [0-9]+ training samples, and were [0-9]+ when the training stopped in the middle of epoch 1: the epoch begins anew")
                kept = int(re.search("there are ([0-9]+) training", result.err)[1])
                self.assertEqual(result.done["global_step"], 8 + kept // 30)
                self.assertNotIn("training samples, and were", self.assert_ok(run(*train, "--epochs", 2)).err)

    def test_epochs_are_counted_from_the_checkpoint_that_is_intact(self):
        train = (*SMALL, "--checkpoint-dir", self.folder)
        self.assert_ok(run(*train, "--batch-size", 70, "--steps", 50, "--save-steps", 25))
        newest = self.folder / "model.ckpt-50.safetensors"
        content = bytearray(newest.read_bytes())
        content[-1000] ^= 1
        newest.write_bytes(content)
        result = self.assert_ok(run(*train, "--batch-size", 700, "--epochs", 1, ranks=2))
        self.assertIn("ignoring model.ckpt-50: ", result.err)
        self.assertEqual(result.done["global_step"], 25 + 3, "5,250 samples are left")

    def test_the_log_tells_of_a_restart(self):
        train = (*SMALL, "--steps", 10**7, "--save-steps", 10, "--checkpoint-dir", self.folder / "ck", "--log-dir", self.folder / "logs")
        process = start(*train, launcher=kolorun(2, "--restarts", "1"))
        log = self.folder / "logs" / "metrics.jsonl"
        self.wait_for(process, lambda: len(list((self.folder / "ck").glob("model.ckpt-*.index.json"))) >= 3)
        os.kill(rank_processes(process)[1], signal.SIGKILL)
        self.wait_for(process, lambda: '"event":"restart"' in log.read_text() and log.read_text().endswith("\n"))
        process.send_signal(signal.SIGTERM)
        finish(process)
        row = next(row for row in map(json.loads, log.read_text().splitlines()) if row["event"] == "restart")
        self.assertEqual((row["number"], row["ranks"], row["ranks_before"], row["lost"]), (1, 2, 2, []))
        self.assertEqual(len(row["hosts"]), 1)
        self.assertEqual(row["step_lost_to"], row["global_step"])
        self.assertEqual(row["step_lost_to"] % 10, 0)
        self.assertGreaterEqual(row["step"], row["step_lost_to"])
        self.assertTrue(0 < row["seconds"] < 60, row)

    def wait_for(self, process, condition):
        deadline = time.monotonic() + 60 * SLOWDOWN
        while not condition():
            self.assertIsNone(process.poll())
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)

    def test_what_cannot_be_is_refused(self):
        few = ("kolo-train", "--model", "mlp", "--data", "generated")
        self.assert_one_line(run(*few, "--global-batch", 2, ranks=3), 2, "--global-batch 2 is less than 3 ranks")
        self.assert_one_line(run(*few, "--global-batch", 64, "--batch-size", 8), 2, "--batch-size and --global-batch were both given")
        self.assert_one_line(run(*few, "--global-batch", 7001), 1, "global batch size 7001 is larger than the 7000 samples")
        self.assert_one_line(run(*few, "--epoch-end", "cut"), 2, "--epoch-end", "drop or fill")
        self.assert_one_line(run(*few, "--scale-rate", "square"), 2, "--scale-rate", "none, linear or sqrt")
        self.assert_one_line(run(*few, "--rescale-steps", 5), 2, "--rescale-steps needs --scale-rate")

    def test_the_rate_follows_the_global_batch(self):
        train = (*SMALL, "--checkpoint-dir", self.folder, "--learning-rate", 0.1)
        self.assert_ok(run(*train, "--batch-size", 32, "--scale-rate", "linear", "--rescale-steps", 4, "--steps", 3, ranks=4))
        result = self.assert_ok(run(*train, "--steps", 9, ranks=3))
        self.assertIn("global batch 128 → 96: rate × 0.75 over 4 steps", result.err)
        for step, factor in ((4, 0.9375), (5, 0.875), (7, 0.75), (9, 0.75)):
            self.assertAlmostEqual(rates(result)[step], 0.1 * factor, delta=1e-7)
        result = self.assert_ok(run(*train, "--steps", 14, ranks=4))
        self.assertIn("global batch 96 → 128: rate × 1.33 over 4 steps", result.err)
        self.assertAlmostEqual(rates(result)[14], 0.1, delta=1e-7)


if __name__ == "__main__":
    unittest.main()
