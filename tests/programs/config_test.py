#!/usr/bin/env python3
"""config.json: a checkpoint folder knows its model, data and switches, so that nobody needs to repeat them."""
import json
import random
import signal
import subprocess
import time
import unittest

from data_test import png
from programs import SLOWDOWN, SOURCE, ProgramTest, TrainedTest, finish, run, start

SMALL = ("--data", "generated", "--threads", 1)
TEXT = "".join(random.Random(1).choices("abcde", k=4000))


class Config(ProgramTest):
    def setUp(self):
        super().setUp()
        self.ck = self.folder / "ck"

    def train(self, *args, **options):
        return run("kolo-train", "--checkpoint-dir", self.ck, "--json", *args, **options)

    def config(self):
        return json.loads((self.ck / "config.json").read_text())

    def table(self, name, columns=2, classes=2):
        folder = self.folder / name
        folder.mkdir()
        rows = [",".join([str(i % 7)] * columns + [str(i % classes)]) for i in range(80)]
        header = ",".join([*(f"x{i}" for i in range(columns)), "label"])
        for split in ("train", "test"):
            (folder / f"{split}.csv").write_text("\n".join([header, *rows]) + "\n")
        return folder


class Written(Config):
    def test_it_says_what_was_trained_and_with_what(self):
        self.assert_ok(self.train("--model", "mlp", *SMALL, "--steps", 3, "--optimizer", "momentum", "--batch-size", 8, "--seed", 5, ranks=2))
        config = self.config()
        self.assertEqual(config["model"], {"name": "mlp"})
        learnt, kept = config["data"].pop("drawn"), config["data"].pop("learnt")
        self.assertEqual((learnt["kept"], kept["marks"], kept["one_of"], kept["chance"]), (True, 7000, 1, 0))
        self.assertEqual((self.ck / kept["file"]).stat().st_size, 8 * 7000)
        self.assertEqual((learnt["of"], learnt["drawn"], learnt["digests"], len(set(learnt["learnt"]))), (7000, 0, [], 64))
        self.assertEqual(config["data"], {"name": "generated digits", "format": "generated digits", "sample": [1, 28, 28], "dtype": "f32",
                                          "labels": "classes", "classes": 10, "largest": 1, "least": 0})
        self.assertEqual(config["preprocessing"], {"normalize": False, "augment": False})
        self.assertEqual((config["optimizer"], config["learning_rate"], config["precision"]), ("momentum", 0.02, "automatic"))
        self.assertEqual((config["global_batch"], config["seed"]), (16, 5))
        self.assertIn("--optimizer momentum", config["command"])
        self.assertRegex(config["kolo"]["version"], r"^\d+\.\d+")
        known = subprocess.run(["git", "-C", SOURCE, "rev-parse", "HEAD"], capture_output=True, check=False).returncode == 0
        self.assertRegex(config["kolo"]["commit"], r"^[0-9a-f]{12,}$" if known else "^$")
        self.assertEqual(config["switches"]["batch-size"], "8")
        self.assertNotIn("threads", config["switches"])
        self.assertEqual([p.name for p in self.ck.glob("*.tmp")], [])

    def test_sizes_that_nobody_chose_are_there(self):
        text = self.folder / "letters.txt"
        text.write_text(TEXT)
        self.assert_ok(self.train("--model", "lstm", "--width", 16, "--data", text, "--batch-size", 8, "--steps", 2))
        self.assertEqual(self.config()["model"], {"name": "lstm", "layers": 2, "width": 16, "context": 64})
        self.assertEqual(self.config()["data"]["classes"], 5)

    def test_it_says_how_the_data_lie_there(self):
        for name, make, words in (("table", lambda: self.table("t"), ("tables", "classes", "softmax")),
                                  ("text", lambda: self.text(), ("text", "classes", "softmax"))):
            self.ck = self.folder / f"ck-{name}"
            model = ("lstm", "--width", 16) if name == "text" else ("mlp",)
            self.assert_ok(self.train("--model", *model, "--data", make(), "--batch-size", 8, "--steps", 1))
            config = self.config()
            self.assertEqual((config["data"]["format"], config["data"]["labels"], config["loss"]), words)

    def text(self):
        (self.folder / "letters.txt").write_text(TEXT)
        return self.folder / "letters.txt"

    def test_it_is_there_with_the_first_checkpoint(self):
        training = start("kolo-train", "--checkpoint-dir", self.ck, "--model", "mlp", *SMALL, "--steps", 1000000, "--save-steps", 5)
        try:
            deadline = time.monotonic() + 30 * SLOWDOWN
            while not (self.ck / "checkpoint").exists() and time.monotonic() < deadline:
                time.sleep(0.05)
            self.assertTrue((self.ck / "config.json").exists(), "it was written before the file that names the newest checkpoint")
            self.assertEqual(self.config()["model"], {"name": "mlp"})
        finally:
            training.send_signal(signal.SIGKILL)
            finish(training)

    def test_kolo_inspect_tells_it(self):
        self.assert_ok(self.train("--model", "mlp", *SMALL, "--steps", 2))
        self.assertIn("model mlp, generated digits, classes: 10, loss softmax, optimizer", self.assert_ok(run("kolo-inspect", "checkpoint", self.ck)).out)

    def test_kolo_inspect_tells_numbers_to_find(self):
        table = self.folder / "house.csv"
        table.write_text("rooms,price\n" + "".join(f"{i % 5},{i % 5 + 0.5}\n" for i in range(40)))
        self.assert_ok(self.train("--model", "mlp", "--data", table, "--threads", 1, "--batch-size", 8, "--steps", 2))
        out = self.assert_ok(run("kolo-inspect", "checkpoint", self.ck)).out
        self.assertIn("model mlp, house.csv (table), numbers to find: 1, loss mse,", out)
        self.assertIn("numbers to find price\n", out)
        told = json.loads(self.assert_ok(run("kolo-inspect", "checkpoint", self.ck, "--json")).out)
        self.assertEqual(told["config"], {k: v for k, v in self.config().items() if k != "command"})


class Read(Config):
    def test_evaluation_needs_the_folder_alone(self):
        text = self.folder / "letters.txt"
        text.write_text(TEXT)
        done = self.assert_ok(self.train("--model", "lstm", "--width", 16, "--context", 8, "--data", text, "--steps", 6, "--average-decay", 0.5, "--learning-rate", 0.05)).done
        for ranks in (1, 2):
            again = self.assert_ok(self.train("--evaluate", ranks=ranks)).done
            self.assertEqual(again["global_step"], 6)
            self.assertAlmostEqual(again["test_accuracy"], done["test_accuracy"])
            self.assertAlmostEqual(again["test_loss"], done["test_loss"], places=5)

    def test_a_training_goes_on_with_its_switches(self):
        self.assert_ok(self.train("--model", "mlp", *SMALL, "--steps", 3, "--optimizer", "momentum", "--learning-rate", 0.02))
        progress = [e for e in self.assert_ok(self.train("--steps", 5, "--log-steps", 1)).events if e["event"] == "progress"]
        self.assertEqual({e["learning_rate"] for e in progress}, {0.02})
        self.assertEqual(self.config()["optimizer"], "momentum")
        self.assertEqual(self.config()["switches"]["steps"], "5")

    def test_a_folder_that_is_done_says_so(self):
        self.assert_ok(self.train("--model", "mlp", *SMALL, "--steps", 4))
        result = self.assert_ok(self.train())
        self.assertIn(f"nothing left to do: {self.ck} is at step 4 of --steps 4", result.err)
        before = self.config()
        result = self.assert_ok(self.train("--epochs", 1, "--batch-size", 7000))
        self.assertIn(f"nothing left to do: {self.ck} has seen 0.04 of --epochs 1, and the last 6744 samples are too few for a step of 7000", result.err)
        self.assertEqual(self.config(), before)  # nothing was trained with the other length

    def test_a_folder_of_an_earlier_version_works(self):
        self.assert_ok(self.train("--model", "mlp", *SMALL, "--steps", 2, "--normalize"))
        (self.ck / "config.json").unlink()
        self.assert_one_line(self.train("--evaluate"), 2, "--model is missing")
        self.assert_one_line(self.train("--model", "mlp", *SMALL, "--evaluate"), 1, "was trained with --normalize; evaluate it")
        self.assert_one_line(self.train("--model", "mlp", *SMALL, "--steps", 3), 1, "was trained with --normalize; go on")
        self.assert_ok(self.train("--model", "mlp", *SMALL, "--normalize", "--evaluate"))
        self.assert_ok(self.train("--model", "mlp", *SMALL, "--normalize", "--steps", 3))
        self.assertEqual(self.config()["model"], {"name": "mlp"})

    def test_a_file_that_is_damaged_is_named(self):
        self.assert_ok(self.train("--model", "mlp", *SMALL, "--steps", 2))
        for damaged in ("{", "[]", '{"switches": 3}', '{"switches": {"width": 7}}'):
            (self.ck / "config.json").write_text(damaged)
            for ranks in (1, 2):
                self.assert_one_line(self.train("--evaluate", ranks=ranks), 1, "config.json")


class Untrained(Config):
    def test_a_folder_of_step_0_alone_is_told(self):
        self.assert_ok(self.train("--model", "mlp", *SMALL, "--steps", 2))
        for file in self.ck.glob("model.ckpt-2*"):
            file.unlink()
        (self.ck / "checkpoint").unlink()
        self.assertIn(f"{self.ck} holds the checkpoint of step 0 alone: its network is untrained", self.assert_ok(self.train("--evaluate")).err)


class Defaults(Config):
    """What nobody chose was used all the same."""

    def setUp(self):
        super().setUp()
        self.assert_ok(self.train("--model", "mlp", *SMALL, "--steps", 2))
        self.before = self.config()

    def rates(self, result):
        return {e["learning_rate"] for e in self.assert_ok(result).events if e["event"] == "progress"}

    def test_a_value_that_differs_names_the_one_before(self):
        rate, batch = self.before["learning_rate"], self.before["batch_size"]
        result = self.assert_ok(self.train("--learning-rate", 2 * rate, "--batch-size", batch // 2, "--precision", "f32", "--steps", 3))
        for line in (f"--learning-rate {2 * rate} takes the place of {rate},", f"--batch-size {batch // 2} takes the place of {batch},",
                     "--precision f32 takes the place of automatic,"):
            self.assertIn(f"{line} with which {self.ck} was trained", result.err)
        self.assertNotIn("was trained without it", result.err)

    def test_a_value_that_is_the_same_is_not_told(self):
        result = self.assert_ok(self.train("--optimizer", self.before["optimizer"], "--learning-rate", self.before["learning_rate"],
                                           "--batch-size", self.before["batch_size"], "--steps", 3))
        for words in ("takes the place of 0", "takes the place of adam", "was trained without it", "--batch-size"):
            self.assertNotIn(words, result.err)

    def test_another_optimizer_has_its_own_rate(self):
        fresh = self.rates(run("kolo-train", "--checkpoint-dir", self.folder / "sgd", "--json", "--model", "mlp", *SMALL, "--optimizer", "sgd", "--steps", 1,
                               "--log-steps", 1))
        self.assert_ok(self.train("--learning-rate", 0.0005, "--steps", 3))
        result = self.train("--optimizer", "sgd", "--steps", 4, "--log-steps", 1)
        self.assertIn(f"--optimizer sgd takes the place of {self.before['optimizer']},", result.err)
        self.assertIn(f"--optimizer sgd: --learning-rate 0.0005 of {self.ck} is not taken over, and the optimizer's own default applies", result.err)
        self.assertEqual(self.rates(result), fresh)


class Differs(TrainedTest, Config):
    @classmethod
    def train_once(cls, folder):
        first = cls()
        first.folder, first.ck = folder, folder / "ck"
        return first.train("--model", "mlp", "--data", first.table("own"), "--steps", 3, "--learning-rate", 0.001, "--batch-size", 8)

    def setUp(self):
        super().setUp()
        self.own = self.trained / "own"

    def test_another_model_is_refused(self):
        for mode in (("--evaluate",), ("--steps", 5)):
            self.assert_one_line(self.train("--model", "lenet", *mode), 2, "--model lenet", "mlp", str(self.ck))

    def test_another_size_is_refused(self):
        text = self.folder / "letters.txt"
        text.write_text(TEXT)
        own = ("--checkpoint-dir", self.folder / "lstm", "--json")
        self.assert_ok(run("kolo-train", "--model", "lstm", "--width", 16, "--context", 8, "--data", text, "--batch-size", 8, "--steps", 2, *own))
        self.assert_one_line(run("kolo-train", "--width", 32, "--evaluate", *own), 2, "--width 32", "16")
        self.assert_one_line(run("kolo-train", "--layers", 3, "--steps", 4, *own), 2, "--layers 3", "2")
        self.assert_ok(run("kolo-train", "--layers", 2, "--evaluate", *own))

    def test_other_classes_or_columns_are_refused(self):
        three, narrow = self.table("three", classes=3), self.table("narrow", columns=1)
        for mode in (("--evaluate",), ("--steps", 5)):
            self.assert_one_line(self.train("--data", three, *mode), 1, "label 2 is none of the 2 classes, 0, 1, of the training; ")
            self.assert_one_line(self.train("--data", narrow, *mode), 1, 'no column "x1", of which the model has learnt')

    def test_columns_that_the_model_does_not_know_are_told(self):
        wide = self.table("wide", columns=3)
        for mode in (("--evaluate",), ("--steps", 5)):
            self.assertIn('left out: column 3 "x2", of which the model has not learnt', self.assert_ok(self.train("--data", wide, *mode)).err)

    def test_another_meaning_of_the_columns_is_refused(self):
        for option in (("--target", "x0"), ("--ignore", "x0"), ("--missing", "mean")):
            for mode in (("--evaluate",), ("--steps", 5)):
                self.assert_one_line(self.train(*option, *mode), 2, " ".join(option), str(self.ck), "was trained without it")

    def test_a_folder_whose_table_is_damaged_is_named(self):
        config = self.config()
        config["data"]["table"] = {"features": []}
        (self.ck / "config.json").write_text(json.dumps(config))
        self.assert_one_line(self.train("--evaluate"), 1, "config.json", "columns of a table")

    def test_a_folder_without_columns_of_an_earlier_version_works(self):
        config = self.config()
        del config["data"]["table"]
        (self.ck / "config.json").write_text(json.dumps(config))
        self.assert_ok(self.train("--evaluate"))
        self.assert_ok(self.train("--steps", 5))

    def test_other_data_of_the_same_kind_are_told(self):
        other = self.table("other")
        result = self.assert_ok(self.train("--data", other, "--steps", 5))
        self.assertIn(f"--data {other} takes the place of {self.own}", result.err)

    def test_normalisation_that_the_weights_do_not_know_is_refused(self):
        self.assert_one_line(self.train("--normalize", "--steps", 5), 2, "--normalize", "without")

    def test_rate_and_batch_are_taken_and_told(self):
        result = self.assert_ok(self.train("--learning-rate", 0.002, "--batch-size", "08", "--steps", 5))
        self.assertIn("--learning-rate 0.002 takes the place of 0.001", result.err)
        self.assertNotIn("--batch-size", result.err)
        self.assertEqual(self.config()["learning_rate"], 0.002)

    def test_a_batch_that_differs_is_told(self):
        result = self.assert_ok(self.train("--batch-size", 16, "--steps", 5))
        self.assertIn(f"--batch-size 16 takes the place of 8, with which {self.ck} was trained", result.err)
        self.assertIn(f"--steps 5 takes the place of 3, with which {self.ck} was trained", result.err)
        result = self.assert_ok(self.train("--global-batch", 8, "--steps", 6))
        self.assertIn(f"--global-batch 8 takes the place of --batch-size 16, with which {self.ck} was trained", result.err)

    def test_a_length_given_the_other_way_is_told(self):
        result = self.assert_ok(self.train("--epochs", 1))
        self.assertIn(f"--epochs 1 takes the place of --steps 3, with which {self.ck} was trained", result.err)
        result = self.assert_ok(self.train("--steps", 12))
        self.assertIn(f"--steps 12 takes the place of --epochs 1, with which {self.ck} was trained", result.err)

    def test_a_seed_that_takes_no_effect_is_told(self):
        self.assertIn("--seed 9 takes no effect", self.assert_ok(self.train("--seed", 9, "--steps", 5)).err)
        self.assertEqual(self.config()["seed"], 1)

    def test_a_seed_that_is_given_again_changes_nothing(self):
        def bits(name, *starts):
            folder = self.folder / name
            for switches in starts:
                self.assert_ok(run("kolo-train", "--checkpoint-dir", folder, *switches))
            self.assertEqual(json.loads((folder / "config.json").read_text())["seed"], 3)
            return [file.read_bytes() for file in sorted(folder.glob("model.ckpt-6.*"))]

        fresh = ("--model", "mlp", *SMALL, "--batch-size", 8, "--seed", 3)
        whole = bits("whole", (*fresh, "--steps", 6))
        self.assertTrue(whole)
        self.assertEqual(bits("again", (*fresh, "--steps", 4), (*fresh, "--steps", 6)), whole)
        self.assertEqual(bits("other", (*fresh, "--steps", 4), ("--seed", 9, "--steps", 6)), whole)

    def test_a_switch_that_the_folder_was_trained_without_is_told(self):
        err = self.assert_ok(self.train("--clip-norm", 1, "--weight-decay", 0.1, "--augment", "--steps", 5)).err
        for switch in ("--clip-norm 1", "--weight-decay 0.1", "--augment usual"):
            self.assertIn(f"{switch} applies from this start on: {self.ck} was trained without it before", err)
        self.assertNotIn("applies from this start on", self.assert_ok(self.train("--clip-norm", 1, "--steps", 6)).err)

    def test_switches_of_the_folder_end(self):
        switches = {"augment": " flip", "sharded": "", "clip-norm": " 1", "validate-every": " 2", "early-stopping": " test_loss:50"}
        given = [word for name, value in switches.items() for word in (f"--{name}", *value.split())]
        self.assert_ok(self.train(*given, "--steps", 5, ranks=2))
        self.assertLessEqual(set(switches), set(self.config()["switches"]))
        ends = [f"--no-{name}" for name in switches]
        result = self.assert_ok(self.train(*ends, "--steps", 6, ranks=2))
        for name, value in switches.items():
            self.assertEqual(result.err.count(f"--no-{name}: {self.ck} goes on without --{name}{value}, with which it was trained"), 1, result.err)
        self.assertEqual(set(switches) & set(self.config()["switches"]), set())
        self.assertEqual(self.config()["preprocessing"]["augment"], False)
        self.assertNotIn("goes on without", self.assert_ok(self.train(*ends, "--steps", 7, ranks=2)).err, "the same command again")

    def test_a_switch_that_ends_is_left_as_it_was_by_the_others(self):
        def bits(name, first, second):
            folder = self.folder / name
            for switches in ((*first, "--steps", 4), (*second, "--steps", 6)):
                self.assert_ok(run("kolo-train", "--checkpoint-dir", folder, "--model", "mlp", *SMALL, "--batch-size", 8, *switches, ranks=2))
            return [file.read_bytes() for file in sorted(folder.glob("model.ckpt-6.*"))]

        self.assertEqual(bits("ended", ("--sharded",), ("--no-sharded",)), bits("never", (), ()))

    def test_switches_that_cannot_end_are_named(self):
        for words, said in ((("--no-normalize",), "there is no option --no-normalize"), (("--no-augmnt",), 'did you mean "--no-augment"'),
                            (("--no-augment", "--augment", "flip"), "--augment and --no-augment were both given"),
                            (("--evaluate", "--no-sharded"), "--no-sharded is of a training")):
            self.assert_one_line(self.train(*words), 2, said)
        self.assert_ok(self.train("--evaluate", "--no-skip-damaged"))

    def test_a_folder_that_is_not_there_is_named(self):
        nowhere = self.folder / "nowhere"
        for words, said in ((("--evaluate",), "evaluate"), (("--predict", self.ck), "predict with"), (("--prompt", "a"), "continue the prompt with")):
            result = run("kolo-train", "--checkpoint-dir", nowhere, *words)
            self.assert_one_line(result, 2, f"there is no folder {nowhere}: nothing to {said}")
            self.assertNotIn("--model", result.err)
        self.assert_one_line(run("kolo-train", "--checkpoint-dir", nowhere, "--steps", 1), 2, "--model is missing", f"there is no folder {nowhere}")
        (self.ck / "config.json").write_text("")
        self.assert_one_line(self.train("--evaluate"), 1, "config.json: it is empty")


class Averages(Config):
    def test_averages_that_are_not_there_are_one_line(self):
        self.assert_ok(self.train("--model", "mlp", *SMALL, "--steps", 2))
        for mode in (("--evaluate",), ("--steps", 3)):
            for ranks in (1, 2):
                result = self.train("--average-decay", 0.5, *mode, ranks=ranks)
                self.assert_one_line(result, 1, "--average-decay 0.5", "holds no moving averages", "leave the switch out")

    def test_they_end(self):
        self.assert_ok(self.train("--model", "mlp", *SMALL, "--steps", 2, "--average-decay", 0.5))
        result = self.assert_ok(self.train("--no-average-decay", "--steps", 4))
        self.assertIn(f"--no-average-decay: {self.ck} goes on without --average-decay 0.5, with which it was trained", result.err)
        self.assertNotIn("average", self.assert_ok(self.train("--evaluate")).err)
        self.assertNotIn("Average", self.assert_ok(run("kolo-inspect", "checkpoint", self.ck)).out)

    def test_a_folder_of_an_earlier_version_says_that_its_averages_are_left_aside(self):
        self.assert_ok(self.train("--model", "mlp", *SMALL, "--steps", 2, "--average-decay", 0.5))
        (self.ck / "config.json").unlink()
        result = self.assert_ok(self.train("--model", "mlp", *SMALL, "--evaluate"))
        self.assertIn("holds moving averages, too", result.err)
        self.assertNotIn("moving averages, too", self.assert_ok(self.train("--model", "mlp", *SMALL, "--evaluate", "--average-decay", 0.5)).err)


class Classes(Config):
    def photographs(self, name, classes):
        for split in ("train", "val"):
            for number, label in enumerate(classes):
                folder = self.folder / name / split / label
                folder.mkdir(parents=True)
                for i in range(4):
                    (folder / f"{i}.png").write_bytes(png([[60 * number + 20 * i] * 28] * 28))
        return self.folder / name

    def test_are_kept_by_name_and_others_are_refused(self):
        pets, cars = self.photographs("pets", ("cat", "dog")), self.photographs("cars", ("bus", "van"))
        self.assert_ok(self.train("--model", "lenet", "--data", pets, "--steps", 1, "--batch-size", 4))
        self.assertEqual(self.config()["data"]["class_names"], ["cat", "dog"])
        self.assert_one_line(self.train("--data", cars, "--evaluate"), 1, "bus, van", "cat, dog")


if __name__ == "__main__":
    unittest.main()
