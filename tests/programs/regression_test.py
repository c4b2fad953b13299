#!/usr/bin/env python3
"""kolo-train finds numbers: what decides it, what is told of the errors, and that it goes on, evaluates and predicts."""
import csv
import json
import math
import random
import struct
import unittest

from data_test import npy, png
from programs import ProgramTest, run


def errors(found, right):
    """MAE, RMSE and R² of rows of numbers, by their definitions."""
    pairs = [(f, r) for row, other in zip(found, right) for f, r in zip(row, other)]
    mae = sum(abs(f - r) for f, r in pairs) / len(pairs)
    rmse = math.sqrt(sum((f - r) ** 2 for f, r in pairs) / len(pairs))
    parts = []
    for found_column, column in zip(zip(*found), zip(*right)):
        mean = sum(column) / len(column)
        parts.append(1 - sum((f - r) ** 2 for f, r in zip(found_column, column)) / sum((r - mean) ** 2 for r in column))
    return mae, rmse, sum(parts) / len(parts)


class Regression(ProgramTest):
    def setUp(self):
        super().setUp()
        self.ck, self.numbers = self.folder / "ck", random.Random(4)

    def ask(self, *args, ranks=1):
        return run("kolo-train", "--checkpoint-dir", self.ck, "--threads", 1, *args, ranks=ranks)

    def houses(self, whole=False):
        """Prices of hundreds of thousands, by size and quarter."""
        folder = self.folder / ("whole" if whole else "houses")
        folder.mkdir()
        for name, count in (("train.csv", 400), ("test.csv", 60)):
            lines = ["size,quarter,price"]
            for _ in range(count):
                size, quarter = self.numbers.uniform(40, 160), self.numbers.choice(("north", "south"))
                price = 3000 * size + (50000 if quarter == "south" else 0)
                lines.append(f"{size:.2f},{quarter},{round(price)}" + ("" if whole else ".5"))
            (folder / name).write_text("\n".join(lines) + "\n")
        return folder

    def rows(self, path, column):
        with open(path, newline="", encoding="utf-8") as file:
            return [[float(row[column])] for row in csv.DictReader(file)]

    def predicted(self, *paths, ranks=1):
        result = self.assert_ok(self.ask("--predict", *paths, "--json", ranks=ranks))
        return [json.loads(line)["numbers"] for line in result.out.splitlines()]

    def assert_errors(self, done, found, right):
        for name, value in zip(("test_mae", "test_rmse", "test_r2"), errors(found, right)):
            self.assertAlmostEqual(done[name] / value, 1, places=4, msg=name)


class Tables(Regression):
    def test_a_label_with_fractions_is_a_number_to_find(self):
        folder = self.houses()
        result = self.assert_ok(self.ask("--model", "mlp", "--data", folder, "--normalize", "--epochs", 30, "--batch-size", 16, "--learning-rate", 0.005, "--json"))
        self.assertIn('data: train.csv, 400 samples of 3 numbers, 1 number to find, target: column 3 "price", 2 words in column 2 "quarter", loss mse, and 60 for testing',
                      result.err)
        self.assertGreater(result.done["test_r2"], 0.95)
        self.assertNotIn("test_accuracy", result.done)
        self.assertGreater(result.done["samples_per_s"], 0)
        right = self.rows(folder / "test.csv", "price")
        for ranks in (1, 2, 3):
            done = self.assert_ok(self.ask("--evaluate", "--json", ranks=ranks)).done
            self.assert_errors(done, self.predicted(folder / "test.csv", ranks=ranks), right)
            self.assertNotIn("confusion", done)
            self.assertIsNone(done["samples_per_s"])  # as the loss: nothing was trained
        self.assertRegex(self.assert_ok(self.ask("--evaluate")).out, r"test MAE [\d.]+, RMSE [\d.]+, R² 0\.9\d+ of 60 test samples \(test.csv\)")
        config = json.loads((self.ck / "config.json").read_text())
        self.assertEqual((config["loss"], config["data"]["regression"], config["data"]["class_names"]), ("mse", True, ["price"]))
        out = self.folder / "out.csv"
        self.assert_ok(self.ask("--predict", folder / "test.csv", "--output", out))
        self.assertEqual(out.read_text().splitlines()[0], "name,price")
        self.assertEqual(len(self.rows(out, "price")), 60)
        self.assert_one_line(self.ask("--predict", folder / "test.csv", "--top", 2), 2, "--top is of classes")
        self.assertRegex(self.assert_ok(self.ask("--epochs", 31)).out, r"done: step 775, .* of 60 test samples \(test.csv\), ")  # as --evaluate says

    def test_each_loss_is_the_mean_that_its_name_says(self):
        folder = self.houses(whole=True)
        right = self.rows(folder / "test.csv", "price")
        for loss, of in (("mse", lambda e: e * e), ("mae", abs), ("huber", lambda e: e * e / 2 if abs(e) <= 1 else abs(e) - 0.5)):
            self.ck = self.folder / loss
            result = self.assert_ok(self.ask("--model", "mlp", "--data", folder, "--loss", loss, "--steps", 5, "--batch-size", 16, "--json"))
            self.assertIn(f"1 number to find, target: column 3 \"price\", 2 words in column 2 \"quarter\", loss {loss}", result.err)
            found = self.predicted(folder / "test.csv")
            mean = sum(of(f[0] - r[0]) for f, r in zip(found, right)) / len(right)
            self.assertAlmostEqual(result.done["test_loss"] / mean, 1, places=4)
            self.assertAlmostEqual(self.assert_ok(self.ask("--evaluate", "--json")).done["test_loss"] / mean, 1, places=4)

    def test_it_goes_on_in_the_same_bytes(self):
        folder = self.houses()
        for name, steps in (("once", 6), ("twice", 3), ("twice", 6)):
            self.ck = self.folder / name
            self.assert_ok(self.ask("--model", "mlp", "--data", folder, "--normalize", "--steps", steps, "--batch-size", 8, "--keep", 1, ranks=2))
        read = lambda name: [file.read_bytes() for file in sorted((self.folder / name).glob("model.ckpt-*"))]
        self.assertEqual(read("once"), read("twice"))

    def test_what_does_not_fit_is_refused(self):
        folder = self.houses()
        model = ("--model", "mlp", "--steps", 2, "--batch-size", 8)
        self.assert_one_line(self.ask(*model, "--data", folder, "--loss", "softmax"), 1, "train.csv", "label", "whole numbers")
        words = self.folder / "words.csv"
        words.write_text("a,label\n" + "1,x\n2,y\n" * 10)
        self.assert_one_line(self.ask(*model, "--data", words, "--loss", "mse"), 1, "holds words")
        self.assert_one_line(self.ask(*model, "--data", "generated", "--loss", "mae"), 1, "its labels are classes")
        self.assert_one_line(self.ask(*model, "--data", folder, "--loss", "l1"), 2, '--loss "l1"', "softmax, mse, mae, huber or bce")
        self.assert_ok(self.ask(*model, "--data", folder))
        self.assert_one_line(self.ask("--data", words, "--evaluate"), 1, "words.csv")
        self.assert_one_line(self.ask("--loss", "softmax", "--steps", 4), 2, "--loss softmax", "finds numbers")


class Targets(Regression):
    """Several columns of a table, each a number to find."""
    NAMES = ("sum", "difference", "far")

    def table(self):
        folder = self.folder / "several"
        folder.mkdir()
        for name, count in (("train.csv", 400), ("test.csv", 60)):
            lines = ["sum,a,difference,b,far"]
            for _ in range(count):
                a, b = self.numbers.uniform(-1, 1), self.numbers.uniform(-1, 1)
                far, = struct.unpack("f", struct.pack("f", 1e6 + a))  # as kolo rounds it
                lines.append(f"{a + b},{a},{100 * (a - b)},{b},{far}")
            (folder / name).write_text("\n".join(lines) + "\n")
        return folder

    def test_are_found_and_told_each_by_its_name(self):
        folder = self.table()
        result = self.assert_ok(self.ask("--model", "mlp", "--data", folder, "--target", "sum,difference,far", "--normalize", "--epochs", 20,
                                         "--batch-size", 10, "--learning-rate", 0.003, "--json", ranks=2))
        self.assertIn('data: train.csv, 400 samples of 2 numbers, 3 numbers to find, targets: columns 1 "sum", 3 "difference", 5 "far", loss mse, and 60 for testing',
                      result.err)
        self.assertGreater(result.done["test_r2"], 0.9)
        right = list(zip(*(sum(self.rows(folder / "test.csv", name), []) for name in self.NAMES)))
        for ranks in (1, 2):
            found = self.predicted(folder / "test.csv", ranks=ranks)
            done = self.assert_ok(self.ask("--evaluate", "--json", ranks=ranks)).done
            self.assert_errors(done, found, right)
            self.assertEqual([one["target"] for one in done["targets"]], list(self.NAMES))
            for i, one in enumerate(done["targets"]):
                of_one = errors([[row[i]] for row in found], [[row[i]] for row in right])
                for key, value in zip(("mae", "rmse", "r2"), of_one):
                    self.assertAlmostEqual(one[key] / value, 1, places=4, msg=(one["target"], key))
        self.assertRegex(self.assert_ok(self.ask("--evaluate")).out,
                         r"test samples \(test.csv\)\ntarget +MAE +RMSE +R²\nsum( +[\d.]+){3}\ndifference( +[\d.]+){3}\nfar")
        self.assertEqual(json.loads((self.ck / "config.json").read_text())["data"]["class_names"], list(self.NAMES))
        out = self.folder / "out.csv"
        self.assert_ok(self.ask("--predict", folder / "test.csv", "--output", out, ranks=2))
        self.assertEqual(out.read_text().splitlines()[0], "name,sum,difference,far")
        # The columns of the samples alone, in another order.
        (self.folder / "new.csv").write_text("b,a\n" + "".join(f"{b[0]},{a[0]}\n" for a, b in zip(self.rows(folder / "test.csv", "a"), self.rows(folder / "test.csv", "b"))))
        self.assertEqual(self.predicted(self.folder / "new.csv"), self.predicted(folder / "test.csv"))
        self.assert_one_line(self.ask("--evaluate", "--target", "sum"), 2, "--target sum", "was trained with --target sum,difference,far")

    def test_each_loss_is_the_mean_over_samples_and_targets(self):
        folder = self.table()
        right = list(zip(*(sum(self.rows(folder / "test.csv", name), []) for name in ("sum", "difference"))))
        for loss, of in (("mse", lambda e: e * e), ("mae", abs), ("huber", lambda e: e * e / 2 if abs(e) <= 1 else abs(e) - 0.5)):
            self.ck = self.folder / loss
            done = self.assert_ok(self.ask("--model", "mlp", "--data", folder, "--target", "sum,difference", "--ignore", "far", "--loss", loss,
                                           "--steps", 5, "--batch-size", 16, "--json", ranks=2)).done
            found = self.predicted(folder / "test.csv")
            each = [of(f - r) for row, other in zip(found, right) for f, r in zip(row, other)]
            self.assertAlmostEqual(done["test_loss"] / (sum(each) / len(each)), 1, places=4)

    def test_that_are_not_there_are_refused(self):
        folder = self.table()
        model = ("--model", "mlp", "--data", folder, "--steps", 2, "--batch-size", 8)
        self.assert_one_line(self.ask(*model, "--target", "sum,price"), 1, "--target price: there is no such column", "sum, a, difference, b, far")
        self.assert_one_line(self.ask(*model, "--target", "sum,far", "--loss", "softmax"), 1, "--target names 2 columns", "--loss softmax is for one")
        self.assert_one_line(self.ask(*model, "--target", "sum,far", "--loss", "bce"), 1, "train.csv, line 2, column 1", "0 or 1")


class Arrays(Regression):
    def test_several_outputs_of_each_sample(self):
        folder = self.folder / "arrays"
        folder.mkdir()
        right = {}
        for split, count, kind, code in (("train", 256, "<f8", "d"), ("test", 40, "<f2", "e")):
            x = [[self.numbers.uniform(-1, 1) for _ in range(3)] for _ in range(count)]
            y = [[a + 2 * b, 100 * c - a] for a, b, c in x]
            (folder / f"x_{split}.npy").write_bytes(npy("<f4", f"({count}, 3)", struct.pack(f"<{3 * count}f", *sum(x, []))))
            (folder / f"y_{split}.npy").write_bytes(npy(kind, f"({count}, 2)", struct.pack(f"<{2 * count}{code}", *sum(y, []))))
            numbers = struct.unpack(f"<{2 * count}{code}", struct.pack(f"<{2 * count}{code}", *sum(y, [])))  # as they are rounded
            right[split] = list(zip(numbers[::2], numbers[1::2]))
        result = self.assert_ok(self.ask("--model", "mlp", "--data", folder, "--normalize", "--epochs", 40, "--batch-size", 16, "--learning-rate", 0.005, "--json", ranks=2))
        self.assertIn("data: arrays, 256 samples of 3 numbers, 2 numbers to find, loss mse, and 40 for testing", result.err)
        self.assertGreater(result.done["test_r2"], 0.95)
        self.assert_errors(result.done, self.predicted(folder / "x_test.npy"), right["test"])
        out = self.folder / "out.csv"
        self.assert_ok(self.ask("--predict", folder / "x_test.npy", "--output", out))
        self.assertEqual(out.read_text().splitlines()[0], "name,number_1,number_2")


class Pictures(Regression):
    def test_a_table_of_pictures_tells_their_scores(self):
        """The brightness of each half, as two columns."""
        folder = self.folder / "photos"
        folder.mkdir()
        lines, right = ["file;left;right;tag"], []
        for i in range(160):
            halves = [self.numbers.randrange(20, 220) for _ in range(2)]
            (folder / f"{i}.png").write_bytes(png([[halves[x >= 14] + self.numbers.randrange(20) for x in range(28)] for _ in range(28)]))
            right.append([half / 100 for half in halves])
            lines.append(f"{i}.png;{right[-1][0]:.2f};{right[-1][1]:.2f};x".replace(".", ",").replace(",png", ".png"))
        (folder / "scores.csv").write_text("\n".join(lines) + "\n")
        result = self.assert_ok(self.ask("--model", "lenet", "--data", folder, "--target", "left,right", "--normalize", "--batch-size", 8, "--epochs", 12,
                                         "--learning-rate", 0.001, "--json", ranks=2))
        self.assertIn('2 numbers to find, pictures: column 1 "file" of scores.csv, targets: columns 2 "left", 3 "right", fields between ";", 320 numbers with decimal commas, left out: column 4 "tag"', result.err)
        self.assertGreater(result.done["test_r2"], 0.8)
        config = json.loads((self.ck / "config.json").read_text())
        self.assertEqual((config["loss"], config["data"]["class_names"]), ("mse", ["left", "right"]))
        done = self.assert_ok(self.ask("--evaluate", "--json", ranks=2)).done
        self.assertAlmostEqual(done["test_r2"], result.done["test_r2"], places=4)
        self.assertEqual([row["target"] for row in done["targets"]], ["left", "right"])
        files = [folder / f"{i}.png" for i in range(40)]
        self.assertLess(errors(self.predicted(*files), right[:40])[0], 0.3)
        self.assert_ok(self.ask("--epochs", 13))


if __name__ == "__main__":
    unittest.main()
