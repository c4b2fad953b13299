#!/usr/bin/env python3
"""kolo-train learns several labels of each sample: what decides it, what is told of them, and that it evaluates and predicts."""
import csv
import json
import math
import random
import shutil
import struct
import unittest

from data_test import npy, png
from programs import ProgramTest, run


def share(part, whole):
    return part / whole if whole else None


def scores(probabilities, right, names):
    """The table of labels and the exact match, by their definitions."""
    table = []
    for i, name in enumerate(names):
        found, there = [row[i] > 0.5 for row in probabilities], [row[i] == 1 for row in right]
        both = sum(f and t for f, t in zip(found, there))
        table.append({"label": name, "count": sum(there), "precision": share(both, sum(found)), "recall": share(both, sum(there)),
                      "f1": share(2 * both, sum(found) + sum(there))})
    exact = sum([p > 0.5 for p in row] == [r == 1 for r in other] for row, other in zip(probabilities, right))
    return table, exact / len(right)


def cross_entropy(probabilities, right):
    terms = [-math.log(p if r == 1 else 1 - p) for row, other in zip(probabilities, right) for p, r in zip(row, other)]
    return sum(terms) / len(terms)


class Labels(ProgramTest):
    def setUp(self):
        super().setUp()
        self.ck, self.numbers = self.folder / "ck", random.Random(6)

    def ask(self, *args, ranks=1):
        return run("kolo-train", "--checkpoint-dir", self.ck, "--threads", 1, *args, ranks=ranks)

    def predicted(self, *paths, ranks=1):
        result = self.assert_ok(self.ask("--predict", *paths, "--json", ranks=ranks))
        return [[one["probability"] for one in json.loads(line)["labels"]] for line in result.out.splitlines()]

    def samples(self, count):
        """Two numbers, and whether each is above 0 and whether they are far apart."""
        rows = [(self.numbers.uniform(-1, 1), self.numbers.uniform(-1, 1)) for _ in range(count)]
        return [(a, b, [int(a > 0), int(b > 0), int(abs(a - b) > .5)]) for a, b in rows]

    def table(self, write):
        folder = self.folder / "table"
        folder.mkdir(exist_ok=True)
        right = {}
        for name, count in (("train.csv", 400), ("test.csv", 60)):
            rows = self.samples(count)
            (folder / name).write_text(write(rows))
            right[name] = [labels for _, _, labels in rows]
        return folder, right["test.csv"]

    def columns(self):
        return self.table(lambda rows: "a,first,b,second,far\n" + "".join(f"{a},{x},{b},{y},{z}\n" for a, b, (x, y, z) in rows))

    def words(self):
        names = ("first", "second", "far")
        return self.table(lambda rows: "a,b,tags\n" + "".join(
            f"{a},{b},{'|'.join(name for name, there in zip(names, labels) if there)}\n" for a, b, labels in rows))

    TRAINING = ("--model", "mlp", "--epochs", 8, "--batch-size", 20, "--learning-rate", 0.002)

    def assert_scores(self, folder, right, names):
        """--evaluate on one rank and on several tells what follows from --predict."""
        for ranks in (1, 2, 3):
            found = self.predicted(folder / "test.csv", ranks=ranks)
            table, exact = scores(found, right, names)
            done = self.assert_ok(self.ask("--evaluate", "--json", ranks=ranks)).done
            self.assertEqual(done["labels"], table)
            self.assertEqual(done["test_exact_match"], exact)
            self.assertAlmostEqual(done["test_loss"], cross_entropy(found, right), places=4)
            self.assertNotIn("test_accuracy", done)
            self.assertNotIn("confusion", done)


class Tables(Labels):
    def test_columns_of_zero_and_one_are_labels(self):
        folder, right = self.columns()
        result = self.assert_ok(self.ask(*self.TRAINING, "--data", folder, "--target", "first,second,far", "--json", ranks=2))
        self.assertRegex(result.err, r'data: train.csv, 400 samples of 2 numbers, 3 labels, several a sample \(first: \d+, second: \d+, far: \d+\), '
                                     r'labels: columns 2 "first", 4 "second", 5 "far", loss bce, and 60 for testing')
        self.assertGreater(result.done["test_exact_match"], 0.7)
        self.assert_scores(folder, right, ["first", "second", "far"])
        config = json.loads((self.ck / "config.json").read_text())
        self.assertEqual((config["loss"], config["data"]["class_names"]), ("bce", ["first", "second", "far"]))
        text = self.assert_ok(self.ask("--evaluate")).out
        self.assertRegex(text, r"test exact match \d+\.\d\d % of 60 test samples \(test.csv\)\n"
                               r"label      count  precision  recall      F1\nfirst  +\d+ +[01]\.\d{4} +[01]\.\d{4} +[01]\.\d{4}\nsecond")

    def test_it_goes_on_in_the_same_bytes_on_any_number_of_ranks(self):
        folder, _ = self.columns()
        for name, steps, ranks in (("once", 6, 2), ("twice", 3, 2), ("twice", 6, 2), ("alone", 6, 1)):
            self.ck = self.folder / name
            self.assert_ok(self.ask("--model", "mlp", "--data", folder, "--target", "2,4,5", "--optimizer", "sgd", "--steps", steps,
                                    "--batch-size", 16 // ranks, "--keep", 1, "--json", ranks=ranks))
        read = lambda name: [file.read_bytes() for file in sorted((self.folder / name).glob("model.ckpt-*"))]
        self.assertEqual(read("once"), read("twice"))
        losses = []
        for name in ("once", "alone"):
            self.ck = self.folder / name
            losses.append(self.assert_ok(self.ask("--evaluate", "--json")).done["test_loss"])
        self.assertAlmostEqual(*losses, places=5)

    def test_words_between_bars_are_labels(self):
        folder, right = self.words()
        result = self.assert_ok(self.ask(*self.TRAINING, "--data", folder, "--validate-every", 40, "--keep-best", "test_exact_match", "--json"))
        self.assertRegex(result.err, r'3 labels, several a sample \(far: \d+, first: \d+, second: \d+\), labels: column 3 "tags", '
                                     r'\d+ lines without a label, loss bce')
        self.assertIn("test_exact_match", [row for row in result.events if row["event"] == "validation"][0])
        right = [[far, first, second] for first, second, far in right]
        self.assert_scores(folder, right, ["far", "first", "second"])
        out, found = self.folder / "out.csv", self.predicted(folder / "test.csv")
        self.assert_ok(self.ask("--predict", folder / "test.csv", "--output", out, ranks=2))
        with open(out, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([[float(row[name]) for name in ("far", "first", "second")] for row in rows], found)
        self.assertEqual(rows[0]["name"], f"{folder}/test.csv:2")
        plain = self.assert_ok(self.ask("--predict", folder / "test.csv")).out.splitlines()[0]
        self.assertEqual(plain, f"{folder}/test.csv:2  " + "  ".join(f"{name} {p:.4f}" for name, p in zip(("far", "first", "second"), found[0])))

    def test_top_names_the_most_probable_labels(self):
        folder, _ = self.words()
        self.assert_ok(self.ask("--model", "mlp", "--steps", 5, "--data", folder))
        (folder / "alone").mkdir()
        shutil.copy(folder / "train.csv", folder / "alone")
        done = self.assert_ok(run("kolo-train", "--model", "mlp", "--steps", 2, "--data", folder / "alone", "--json")).done
        self.assertEqual((done["test_exact_match"], "test_accuracy" in done), (None, False))
        found = self.predicted(folder / "test.csv")
        rows = [json.loads(line) for line in self.assert_ok(self.ask("--predict", folder / "test.csv", "--top", 2, "--json")).out.splitlines()]
        for row, probabilities in zip(rows, found):
            best = sorted(zip(("far", "first", "second"), probabilities), key=lambda one: -one[1])[:2]
            self.assertEqual([(one["label"], one["probability"]) for one in row["top"]], best)
            self.assertEqual((row["label"], row["probability"]), best[0])
        out = self.folder / "out.csv"
        self.assert_ok(self.ask("--predict", folder / "test.csv", "--top", 2, "--output", out))
        self.assertEqual(out.read_text().splitlines()[0], "name,label,probability,label_2,probability_2")

    def test_what_does_not_fit_is_refused(self):
        folder, _ = self.words()
        model = ("--model", "mlp", "--steps", 2, "--batch-size", 8)
        plain = self.folder / "plain.csv"
        plain.write_text("a,label\n" + "1,x\n2,y\n" * 10)
        self.assert_one_line(self.ask(*model, "--data", plain, "--loss", "bce"), 1, "plain.csv", "one label in each line", "--loss bce takes words with | between them")
        self.assert_one_line(self.ask(*model, "--data", "generated", "--loss", "bce"), 1, "its labels are classes", "--loss bce is for several")
        self.assert_one_line(self.ask(*model, "--data", folder, "--loss", "mse"), 1, 'column 3 "tags" holds words')
        self.assert_one_line(self.ask("--model", "gpt", "--data", plain, "--loss", "bce"), 2, "gpt learns from a text")
        self.assert_ok(self.ask(*model, "--data", folder))
        self.assert_one_line(self.ask("--evaluate", "--loss", "softmax"), 2, "--loss softmax", "finds several labels")
        self.assert_one_line(self.ask("--evaluate", "--data", plain), 1, "plain.csv")
        (folder / "test.csv").write_text("a,b,tags\n1,2,first|cow\n")
        self.assert_one_line(self.ask("--evaluate"), 1, "test.csv, line 2", '"cow" is none of the 3 labels')
        self.assert_one_line(self.ask("--steps", 4, "--validate-every", 1, "--early-stopping", "test_accuracy:2"), 1, "test.csv")


class Arrays(Labels):
    def test_whole_numbers_of_zero_and_one_are_labels(self):
        folder = self.folder / "arrays"
        folder.mkdir()
        right = {}
        for split, count in (("train", 320), ("test", 40)):
            rows = self.samples(count)
            (folder / f"x_{split}.npy").write_bytes(npy("<f4", f"({count}, 2)", struct.pack(f"<{2 * count}f", *(v for a, b, _ in rows for v in (a, b)))))
            (folder / f"y_{split}.npy").write_bytes(npy("|b1", f"({count}, 3)", bytes(v for _, _, labels in rows for v in labels)))
            right[split] = [labels for _, _, labels in rows]
        result = self.assert_ok(self.ask(*self.TRAINING, "--data", folder, "--normalize", "--json", ranks=2))
        self.assertRegex(result.err, r"data: arrays, 320 samples of 2 numbers, 3 labels, several a sample \(0: \d+, 1: \d+, 2: \d+\), loss bce, and 40 for testing")
        table, exact = scores(self.predicted(folder / "x_test.npy"), right["test"], ["0", "1", "2"])
        done = self.assert_ok(self.ask("--evaluate", "--json")).done
        self.assertEqual((done["labels"], done["test_exact_match"]), (table, exact))
        self.assertGreater(exact, 0.7)


class Pictures(Labels):
    def test_a_table_of_pictures_names_several_labels(self):
        folder, kinds = self.folder / "photos", ("left", "right", "left|right", "")
        folder.mkdir()
        lines = ["file,lights"]
        for i in range(80):
            kind = kinds[i % 4]
            light = [200 if ("left" if x < 14 else "right") in kind else 20 for x in range(28)]
            (folder / f"{i}.png").write_bytes(png([[v + self.numbers.randrange(40) for v in light] for _ in range(28)]))
            lines.append(f"{i}.png,{kind}")
        (folder / "lights.csv").write_text("\n".join(lines) + "\n")
        result = self.assert_ok(self.ask("--model", "lenet", "--data", folder, "--batch-size", 8, "--epochs", 4, "--json"))
        self.assertRegex(result.err, r'2 labels, several a sample \(left: \d+, right: \d+\), pictures: column 1 "file" of lights.csv, '
                                     r'labels: column 2 "lights", 20 pictures without a label, .*loss bce, and 8 for testing')
        self.assertGreater(result.done["test_exact_match"], 0.8)
        self.assertEqual(self.assert_ok(self.ask("--evaluate", "--json", ranks=2)).done["test_exact_match"], result.done["test_exact_match"])
        for i in range(4):
            self.assertEqual([p > 0.5 for p in self.predicted(folder / f"{i}.png")[0]], [name in kinds[i] for name in ("left", "right")])


if __name__ == "__main__":
    unittest.main()
