#!/usr/bin/env python3
"""A training that is killed again and again, often while it saves, ends in the bytes of one that nobody disturbed.

KILLS: how many in all (4); scripts/check_deep kills makes 200. SEED: of when and whom (drawn, and told).
"""
import os
import random
import signal
import time
import unittest

from programs import ProgramTest, finish, rank_processes, run, start

KILLS = int(os.environ.get("KILLS", 4))
RANKS, STEPS = 2, 120
TRAIN = ("kolo-train", "--model", "mlp", "--data", "generated", "--optimizer", "momentum", "--batch-size", 16, "--threads", 1, "--json",
         "--steps", STEPS, "--save-steps", 3, "--keep", 2)


class Kills(ProgramTest):
    def setUp(self):
        super().setUp()
        self.seed = int(os.environ.get("SEED", random.randrange(10**6)))
        self.random = random.Random(self.seed)

    def checkpoint(self, folder):
        return {p.name: p.read_bytes() for p in folder.glob(f"model.ckpt-{STEPS}.*")}

    def wait_to_kill(self, process, folder):
        """A moment from the training, or one in which a file is being written. False: it has ended before."""
        end = time.monotonic() + self.random.uniform(0.3, 1.6)
        in_a_save = self.random.random() < 0.6
        while process.poll() is None:
            if time.monotonic() > end + (20 if in_a_save else 0):
                return True
            if in_a_save and time.monotonic() > end - 1.0 and folder.exists() and any(".tmp" in name for name in os.listdir(folder)):
                return True
            time.sleep(0.0005)
        return False

    def kill(self, process):
        ranks = rank_processes(process)
        victims = list(ranks.values()) if self.random.random() < 0.5 else [self.random.choice(list(ranks.values()))] if ranks else []
        for pid in victims:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return bool(victims)

    def test_the_last_checkpoint_is_the_undisturbed_one(self):
        whole = self.folder / "whole"
        self.assert_ok(run(*TRAIN, "--checkpoint-dir", whole, ranks=RANKS))
        expected = self.checkpoint(whole)
        self.assertEqual(len(expected), 2)
        kills, trainings = 0, 0
        while kills < KILLS:
            folder = self.folder / f"killed {trainings}"
            trainings += 1
            while True:
                process = start(*TRAIN, "--checkpoint-dir", folder, ranks=RANKS)
                killed = kills < KILLS and self.wait_to_kill(process, folder) and self.kill(process)
                result = finish(process)
                kills += killed
                if result.code == 0:
                    break
                self.assertTrue(killed, f"seed {self.seed}, {kills} kills: {result.err}")
            self.assertEqual(self.checkpoint(folder), expected, f"seed {self.seed}, {kills} kills")
        print(f"seed {self.seed}: {kills} kills in {trainings} trainings, each ended in the same bytes")


if __name__ == "__main__":
    unittest.main()
