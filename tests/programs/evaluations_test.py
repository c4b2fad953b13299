#!/usr/bin/env python3
"""What follows from kolo-train's evaluations during a training, and its event files."""
import struct
import unittest

from programs import ProgramTest, run

TRAIN = ("kolo-train", "--model", "mlp", "--data", "generated", "--threads", 1, "--json", "--batch-size", 16)


def rows(result, event):
    return [row for row in result.events if row["event"] == event]


class EarlyStopping(ProgramTest):
    def train(self, steps, metric="test_loss:2", options=()):
        # Weights that do not move: no evaluation is better than the first.
        return self.assert_ok(run(*TRAIN, "--optimizer", "sgd", "--learning-rate", 1e-30, "--checkpoint-dir", self.folder / "ck", "--steps", steps,
                                  "--validate-every", 5, "--early-stopping", metric, *options, ranks=2))

    def test_ends_all_ranks_after_so_many_evaluations_without_a_better_one(self):
        result = self.train(100)
        self.assertEqual(result.done["global_step"], 15)
        self.assertIn("no better in 2 evaluations", rows(result, "stopped_early")[0]["why"])
        self.assertFalse(result.done["stopped_on_request"])
        again = self.train(100)
        self.assertEqual((again.done["global_step"], rows(again, "stopped_early")), (15, []))
        self.assertIn("nothing left to do", again.err)

    def test_counts_on_where_a_checkpoint_has_left_it(self):
        self.assertEqual(self.train(12).done["global_step"], 12)  # evaluated at 5, which is the best, and at 10
        self.assertEqual(self.train(100).done["global_step"], 15)

    def test_counts_an_evaluation_whose_step_was_saved_before_it(self):
        # Saved at each evaluation, so that a checkpoint does not know what was found at its own step.
        for _ in range(2):
            self.assertEqual(self.train(100, options=("--save-steps", 5)).done["global_step"], 15)

    def test_counts_the_evaluation_at_the_end_of_an_earlier_start(self):
        self.assertEqual(self.train(15, "test_loss:3").done["global_step"], 15)
        self.assertEqual(self.train(100, "test_loss:3").done["global_step"], 20)

    def test_goes_on_with_more_patience(self):
        self.train(100)
        self.assertEqual(self.train(100, "test_loss:3").done["global_step"], 20)

    def test_refuses_what_it_does_not_understand(self):
        for words, named in ((("--early-stopping", "loss:2", "--validate-every", 5), "allowed: METRIC:N"),
                             (("--early-stopping", "test_loss", "--validate-every", 5), "allowed: METRIC:N"),
                             (("--early-stopping", "test_loss:2"), "needs --validate-every"),
                             (("--keep-best", "test_loss", "--validate-every", 5), "needs --checkpoint-dir")):
            result = run(*TRAIN, *words)
            self.assertEqual(result.code, 2)
            self.assertIn(named, result.err)
        result = run(*TRAIN, "--steps", 10, "--validate-every", 5, "--early-stopping", "test_r2:2", ranks=2)
        self.assertEqual(result.code, 1)
        self.assertIn("classes have test_loss and test_accuracy", result.err)


class KeepBest(ProgramTest):
    def check(self, *options):
        folder = self.folder / "ck"
        result = self.assert_ok(run(*TRAIN, "--checkpoint-dir", folder, "--steps", 60, "--validate-every", 10, "--keep-best", "test_loss", "--keep", 1,
                                    "--learning-rate", 0.02, *options, ranks=2))
        told = {row["global_step"]: row["test_loss"] for row in (*rows(result, "validation"), result.done)}
        best = min(told, key=told.get)
        self.assertEqual([p.name for p in (folder / "best").glob("*.json") if p.name.startswith("model")], [f"model.ckpt-{best}.index.json"])
        found = self.assert_ok(run("kolo-train", "--checkpoint-dir", folder / "best", "--evaluate", "--json")).done
        self.assertEqual(found["global_step"], best)
        self.assertAlmostEqual(found["test_loss"], told[best], delta=1e-6)

    def test_keeps_the_weights_of_the_least_loss(self):
        self.check("--optimizer", "adam")

    def test_keeps_them_where_the_optimizers_state_is_in_shards(self):
        self.check("--optimizer", "adam", "--sharded")

    def test_keeps_what_was_best_before_a_kill(self):
        folder, train = self.folder / "ck", (*TRAIN, "--optimizer", "sgd", "--learning-rate", 1, "--checkpoint-dir", self.folder / "ck", "--save-steps", 20,
                                             "--validate-every", 20, "--keep-best", "test_loss")
        whole = self.assert_ok(run(*train, "--steps", 60))
        told = {row["global_step"]: row["test_loss"] for row in (*rows(whole, "validation"), whole.done)}
        best = min(told, key=told.get)
        for name in [*folder.glob("model.ckpt-40*"), *folder.glob("model.ckpt-60*"), *folder.glob("best/*"), folder / "checkpoint"]:
            name.unlink()  # as a kill behind the save of step 20, whose evaluation nobody has noted, leaves it
        self.assert_ok(run(*train, "--steps", 60))
        self.assertEqual([p.name for p in (folder / "best").glob("*.index.json")], [f"model.ckpt-{best}.index.json"])

    def test_drops_what_another_training_has_left(self):
        self.check("--optimizer", "adam")
        self.assert_ok(run(*TRAIN, "--checkpoint-dir", self.folder / "ck", "--steps", 80, "--validate-every", 10, "--keep-best", "test_accuracy"))
        self.assertEqual(len(list((self.folder / "ck" / "best").glob("*.index.json"))), 1)

    def test_refuses_before_the_first_step(self):
        (self.folder / "ck").mkdir()
        (self.folder / "ck" / "best").write_text("a file")
        for metric, said in (("test_r2", "classes have test_loss and test_accuracy"), ("test_loss", "best cannot be made")):
            result = run(*TRAIN, "--checkpoint-dir", self.folder / "ck", "--steps", 20, "--validate-every", 10, "--keep-best", metric, ranks=2)
            self.assertEqual(result.code, 1)
            self.assertIn(said, result.err)
            self.assertEqual(result.out, "")

    def test_keeps_moving_averages_too(self):
        self.check("--optimizer", "momentum", "--average-decay", 0.9)


def records(path):
    """The payloads of a TFRecord file."""
    data, at = path.read_bytes(), 0
    while at < len(data):
        length, = struct.unpack_from("<Q", data, at)
        yield data[at + 12:at + 12 + length]
        at += 12 + length + 4


class EventFiles(ProgramTest):
    def test_hold_curves_graph_and_histograms(self):
        self.assert_ok(run(*TRAIN, "--steps", 20, "--log-steps", 5, "--validate-every", 10, "--tensorboard", self.folder / "events",
                           "--histogram-steps", 10, ranks=2))
        files = list((self.folder / "events").iterdir())
        self.assertEqual(len(files), 1)
        found = list(records(files[0]))
        for tag, times in ((b"samples_per_s", 5), (b"learning_rate", 4), (b"test_accuracy", 2), (b"fc1", 2)):
            with self.subTest(tag=tag):
                self.assertGreaterEqual(sum(tag in record and len(record) < 20000 for record in found), times)
        self.assertTrue(any(b"MatMul" in record for record in found))  # the graph


if __name__ == "__main__":
    unittest.main()
