#!/usr/bin/env python3
"""kolo-train --predict and --prompt: what a trained folder says of new files."""
import atexit
import base64
import csv
import functools
import gzip
import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import tempfile
import unittest

from data_test import npy, png
from programs import BIN, DEADLINE_S, SOURCE, ProgramTest, command, environment, kolorun, run

CLASSES = ("left", "none", "right")
# 28 x 28 pixels, grey 200 in the left half and 20 in the right one, as libwebp 1.2.4 writes them without losses.
LEFT_WEBP = "UklGRioAAABXRUJQVlA4TB4AAAAvG8AGAA9wCtpT0J6Cdv4DD0ICwjP/V1mgR/Q/El4="


def light(kind, numbers, side=28):
    """A picture with its light on the left, on the right or nowhere."""
    at = {"left": lambda x: 200 if x < side // 2 else 20, "right": lambda x: 20 if x < side // 2 else 200, "none": lambda _: 90}[kind]
    return [[at(x) + numbers.randrange(40) for x in range(side)] for _ in range(side)]


@functools.cache
def shared_folder():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="kolo-test-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


class Predict(ProgramTest):
    def setUp(self):
        super().setUp()
        self.ck, self.numbers = self.folder / "ck", random.Random(1)

    def ask(self, *args, ranks=1, **options):
        return run("kolo-train", "--checkpoint-dir", self.ck, "--threads", 1, *args, ranks=ranks, **options)

    def picture(self, path, kind):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(light(kind, self.numbers)))
        return path

    def train_on_photographs(self):
        """Once: each test has the trained folder, of whose weights no test changes a byte, and sees the same photographs."""
        photos, trained = (shared_folder() / name for name in ("photos", "trained"))
        if not trained.exists():
            for split, count in (("train", 24), ("test", 2)):
                for kind in CLASSES:
                    for i in range(count):
                        self.picture(photos / split / kind / f"{i}.png", kind)
            self.assert_ok(run("kolo-train", "--checkpoint-dir", trained, "--threads", 1, "--model", "lenet", "--data", photos, "--batch-size", 8, "--epochs", 3))
        (self.folder / "photos").symlink_to(photos)
        shutil.copytree(trained, self.ck, copy_function=lambda file, copy: (os.link if file.endswith(".safetensors") else shutil.copy2)(file, copy))
        self.numbers.seed(2)

    def train_on_table(self):
        folder = self.folder / "table"
        folder.mkdir()
        rows = [(a, b) for a, b in ((self.numbers.uniform(-1, 1), self.numbers.uniform(-1, 1)) for _ in range(160))]
        (folder / "train.csv").write_text("a,b,label\n" + "".join(f"{a},{b},{int(a > b)}\n" for a, b in rows))
        self.assert_ok(self.ask("--model", "mlp", "--data", folder, "--batch-size", 8, "--epochs", 12, "--normalize"))

    def rows(self, result):
        return [json.loads(line) for line in self.assert_ok(result).out.splitlines()]


class Pictures(Predict):
    def setUp(self):
        super().setUp()
        self.train_on_photographs()
        self.new = self.folder / "new"
        # Neither the names' order nor the kinds' is that of the classes.
        self.kinds = ["right", "left", "none", "none", "left", "right", "left"]
        self.files = [self.picture(self.new / f"{name}.png", kind) for name, kind in zip("dbagcfe", self.kinds)]

    def test_shares_of_sure_answers_differ_from_1_and_from_each_other(self):
        table, self.ck = self.folder / "t.csv", self.folder / "sure"
        table.write_text("a,label\n" + "".join(f"{i},{'no' if i < 30 else 'yes'}\n" for i in range(60)))
        self.assert_ok(run("kolo-train", "--model", "mlp", "--data", table, "--normalize", "--batch-size", 16, "--learning-rate", 0.05, "--threads", 1, "--steps", 600, "--checkpoint-dir", self.ck))
        self.assert_ok(self.ask("--predict", table, "--top", 2, "--output", self.folder / "p.csv"))
        rows = list(csv.DictReader((self.folder / "p.csv").read_text().splitlines()))
        lines = [json.loads(line) for line in self.assert_ok(self.ask("--predict", table, "--top", 2, "--json")).out.splitlines()]
        self.assertLess(min(float(row["share_2"]) for row in rows), 1e-7)  # what a float near 1 cannot lack
        for row, line in zip(rows, lines, strict=True):
            self.assertLess(float(row["share"]), 1, row)
            self.assertLess(line["share"], 1)
            self.assertGreater(float(row["share_2"]), 0)
            if line["top"][1]["share"] > 1e-12:
                self.assertAlmostEqual((1 - line["share"]) / line["top"][1]["share"], 1, delta=1e-2)

    def test_files_are_named_in_their_order_with_class_and_share(self):
        lines = self.assert_ok(self.ask("--predict", *self.files)).out.splitlines()
        self.assertEqual([line.split()[:2] for line in lines], [[str(file), kind] for file, kind in zip(self.files, self.kinds)])
        for line in lines:
            self.assertTrue(0.5 < float(line.split()[2]) <= 1, line)

    def test_several_ranks_say_the_same_in_the_same_order(self):
        alone = self.ask("--predict", *self.files, "--json")
        for ranks, batch in ((2, 2), (3, 1), (4, 64)):
            together = self.rows(self.ask("--predict", *self.files, "--json", "--batch-size", batch, ranks=ranks))
            self.assertEqual([row["name"] for row in together], [str(file) for file in self.files])
            for one, other in zip(self.rows(alone), together):
                self.assertEqual(one["class"], other["class"])
                self.assertAlmostEqual(one["share"], other["share"], places=4)

    def test_a_folder_is_sorted_and_says_what_it_leaves_out(self):
        (self.new / "a.heic").write_bytes(b"x")
        (self.new / "a.webp").write_bytes(base64.b64decode(LEFT_WEBP))
        self.picture(self.new / "below" / "0.png", "left")
        result = self.ask("--predict", self.new, "--json")
        rows = self.rows(result)
        self.assertEqual([row["name"] for row in rows],
                         [*sorted(map(str, [*self.files, self.new / "a.webp"])), str(self.new / "below" / "0.png")])
        self.assertEqual(rows[1]["class"], "left", "the WebP")
        self.assertIn("left out: 1 .heic", result.err)

    def test_the_largest_shares_add_up(self):
        for row in self.rows(self.ask("--predict", self.files[0], "--top", 9, "--json")):
            self.assertEqual({guess["class"] for guess in row["top"]}, set(CLASSES))
            self.assertEqual(row["top"][0], {"class": row["class"], "share": row["share"]})
            self.assertAlmostEqual(sum(guess["share"] for guess in row["top"]), 1, places=5)
            self.assertEqual(row["top"], sorted(row["top"], key=lambda guess: -guess["share"]))

    def test_a_file_of_comma_separated_values_is_read_back(self):
        odd = self.picture(self.folder / 'a "b", c.png', "left")
        out = self.folder / "out.csv"
        self.assertEqual(self.assert_ok(self.ask("--predict", odd, *self.files, "--top", 2, "--output", out)).out, "")
        with open(out, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([row["name"] for row in rows], [str(odd), *map(str, self.files)])
        self.assertEqual([row["class"] for row in rows], ["left", *self.kinds])
        self.assertEqual(list(rows[0]), ["name", "class", "share", "class_2", "share_2"])

    def test_a_file_of_json_lines_holds_what_json_prints(self):
        out = self.folder / "out.jsonl"
        self.assert_ok(self.ask("--predict", *self.files, "--output", out, ranks=2))
        self.assertEqual([json.loads(line)["class"] for line in out.read_text().splitlines()], self.kinds)

    def test_names_come_from_standard_input(self):
        names = "".join(f"{file}\n" for file in self.files)
        args = ("--checkpoint-dir", self.ck, "--predict", "-", "--json")
        for words in (command("kolo-train", *args), [*kolorun(2, "-q", "--stdin"), *command("kolo-train", *args)]):
            done = subprocess.run(words, input=names, capture_output=True, text=True, timeout=DEADLINE_S, env=environment())
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual([json.loads(line)["class"] for line in done.stdout.splitlines()], self.kinds)

    def test_names_that_kolorun_does_not_hand_on_are_missed_with_a_hint(self):
        done = subprocess.run([*kolorun(2, "-q"), *command("kolo-train", "--checkpoint-dir", self.ck, "--predict", "-")], input=f"{self.files[0]}\n",
                              capture_output=True, text=True, timeout=DEADLINE_S, env=environment())
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("kolo-train: --predict -: standard input names no file; kolorun --stdin hands it on", done.stderr)
        self.assert_one_line(self.ask("--predict", "-"), 1, "--predict -: standard input names no file")

    def test_options_stand_anywhere_between_the_files(self):
        a, b, c = map(str, self.files[:3])
        for words in (("--predict", "--top", 2, a, b, c), ("--predict", a, "--top", 2, b, c), ("--top", 2, "--predict", "--json", a, b, c),
                      ("--predict", a, b, "--skip-damaged", c, "--top", 2), (f"--predict={a}", b, "--top", 2, "--predict", c)):
            rows = self.rows(self.ask(*words, "--json")) if "--json" not in words else self.rows(self.ask(*words))
            self.assertEqual([row["name"] for row in rows], [a, b, c], words)
            self.assertEqual({len(row["top"]) for row in rows}, {2}, words)
        self.assert_one_line(self.ask("--predict", "--top", "--json", a), 2, "--top needs a value, and the option --json follows it")
        self.assert_one_line(self.ask("--predict", "--top", 2), 2, "--predict names no file")
        self.assert_one_line(self.ask("--evaluate", a), 2, f'"{a}" stands without an option before it; --data takes what a model learns from')

    def test_damaged_pictures_are_left_out_counted_and_named_where_that_is_asked(self):
        whole = self.rows(self.ask("--predict", *self.files, "--json"))
        for i in (3, 5):
            self.files[i].write_bytes(self.files[i].read_bytes()[:-30])
        for ranks, batch in ((1, 64), (2, 2), (3, 1)):
            out = self.folder / "out.jsonl"
            result = self.assert_ok(self.ask("--predict", *self.files, "--skip-damaged", "--output", out, "--batch-size", batch, ranks=ranks))
            rows = [json.loads(line) for line in out.read_text().splitlines()]
            self.assertEqual([(row["name"], row["class"]) for row in rows], [(row["name"], row["class"]) for i, row in enumerate(whole) if i not in (3, 5)])
            said = [line for line in result.err.splitlines() if "left out: 2 damaged of 7 samples; " in line]
            self.assertEqual(len(said), 1, result.err)
            for i in (3, 5):
                self.assertIn(str(self.files[i]), said[0])
            self.assertIn(f"5 predictions of {self.ck}", result.err)
            out.unlink()
        self.assert_one_line(self.ask("--predict", self.files[3], self.files[5], "--skip-damaged", "--output", self.folder / "none.csv"), 1, "all 2 samples are damaged")
        self.assertEqual(list(self.folder.glob("none.csv*")), [])

    def test_small_shares_keep_their_order(self):
        (self.folder / "x.npy").write_bytes(npy("|u1", "(1, 1, 28, 28)", bytes(sum(light("left", self.numbers), []))))
        top = self.rows(self.ask("--predict", self.folder / "x.npy", "--top", 3, "--json"))[0]["top"]
        self.assertTrue(all(one["share"] > 0 for one in top), top)
        self.assertGreater(top[1]["share"], top[2]["share"])

    def test_a_program_in_cpp_says_the_same(self):
        if not (BIN / "predict_arrays").exists():
            self.skipTest("the examples are not built")
        pixels = b"".join(bytes(sum(light(kind, self.numbers), [])) for kind in CLASSES)
        (self.folder / "x.npy").write_bytes(npy("|u1", "(3, 1, 28, 28)", pixels))
        told = self.rows(self.ask("--predict", self.folder / "x.npy", "--json"))
        self.assertEqual(self.assert_ok(run("predict_arrays", self.ck, self.folder / "x.npy")).out,
                         "".join(f"{one['class']} {one['share']:.4f}\n" for one in told))

    def test_a_damaged_picture_is_named_and_no_file_is_left(self):
        self.files[3].write_bytes(self.files[3].read_bytes()[:-30])
        for ranks in (1, 2):
            out = self.folder / "out.csv"
            self.assert_one_line(self.ask("--predict", *self.files, "--output", out, "--batch-size", 2, ranks=ranks), 1, str(self.files[3]))
            self.assertEqual(list(self.folder.glob("out.csv*")), [])

    def test_what_cannot_be_predicted_is_named(self):
        (self.folder / "a.txt").write_text("x")
        (self.folder / "empty").mkdir()
        (self.folder / "t.csv").write_text("1,2\n")
        for path, words in (("a.txt", ["nothing that can be predicted"]), ("nowhere.png", ["there is no such file"]),
                            ("empty", ["there are no pictures"]), ("t.csv", ["a table", "[1,28,28]; name pictures or arrays"])):
            for ranks in (1, 2):
                self.assert_one_line(self.ask("--predict", self.folder / path, ranks=ranks), 1, path, *words)


class Numbers(Predict):
    def test_rows_of_a_table_go_by_their_line_with_and_without_a_label(self):
        self.train_on_table()
        plain, labelled = self.folder / "plain.csv", self.folder / "labelled.csv"
        plain.write_text("a,b\n0.9,-0.9\n\n-0.9,0.9\n")
        labelled.write_text("a,b,label\n0.9,-0.9,?\n-0.9,0.9,\n")
        rows = self.rows(self.ask("--predict", plain, labelled, "--json"))
        self.assertEqual([(row["name"], row["class"]) for row in rows],
                         [(f"{plain}:2", "1"), (f"{plain}:4", "0"), (f"{labelled}:2", "1"), (f"{labelled}:3", "0")])
        wide = self.folder / "wide.csv"
        wide.write_text("1,2,3,4\n")
        self.assert_one_line(self.ask("--predict", wide), 1, "wide.csv, line 1", "4 columns", "takes 2")

    def test_arrays_of_each_layout_are_the_same_samples(self):
        self.assert_ok(self.ask("--model", "lenet", "--data", "generated", "--steps", 30, "--batch-size", 32))
        pixels = bytes(self.numbers.randrange(256) for _ in range(3 * 784))
        floats = struct.pack(f"<{3 * 784}f", *(pixel / 255 for pixel in pixels))
        layouts = {"chw": npy("|u1", "(3, 1, 28, 28)", pixels), "hw": npy("|u1", "(3, 28, 28)", pixels),
                   "hwc": npy("|u1", "(3, 28, 28, 1)", pixels), "f32": npy("<f4", "(3, 28, 28)", floats)}
        found = []
        for name, content in layouts.items():
            path = self.folder / f"{name}.npy"
            path.write_bytes(content)
            rows = self.rows(self.ask("--predict", path, "--json"))
            self.assertEqual([row["name"] for row in rows], [f"{path}[{i}]" for i in range(3)])
            found.append([(row["class"], row["share"]) for row in rows])
        for name, pack in (("few-images-idx3-ubyte", bytes), ("few-images-idx3-ubyte.gz", gzip.compress)):
            path = self.folder / name
            path.write_bytes(pack(struct.pack(">4I", 0x803, 3, 28, 28) + pixels))
            rows = self.rows(self.ask("--predict", path, "--json"))
            self.assertEqual([row["name"] for row in rows], [f"{path}[{i}]" for i in range(3)])
            found.append([(row["class"], row["share"]) for row in rows])
        self.assertEqual(found, found[:1] * 6)
        path = self.folder / "wide-idx3-ubyte"
        path.write_bytes(struct.pack(">4I", 0x803, 2, 14, 28) + pixels[:784])
        self.assert_one_line(self.ask("--predict", path), 1, "wide-idx3-ubyte", "14×28", "[1,28,28]")
        one = self.folder / "one.npy"
        one.write_bytes(npy("|u1", "(28, 28)", pixels[:784]))
        self.assertEqual([(row["class"], row["share"]) for row in self.rows(self.ask("--predict", one, "--json"))], found[0][:1])
        one.write_bytes(npy("|u1", "(2, 14, 28)", pixels[:784]))
        self.assert_one_line(self.ask("--predict", one), 1, "one.npy", "[2,14,28]", "28,28]")

    def test_colours_have_the_names_of_cifar(self):
        folder = self.folder / "cifar"
        folder.mkdir()
        records = b"".join(bytes([i % 10]) + bytes(self.numbers.randrange(256) for _ in range(3072)) for i in range(20))
        (folder / "data_batch_1.bin").write_bytes(records)
        self.assert_ok(self.ask("--model", "cifar10", "--data", folder, "--steps", 1, "--batch-size", 4))
        self.assertEqual(json.loads((self.ck / "config.json").read_text())["data"]["class_names"][:3], ["airplane", "automobile", "bird"])
        (folder / "batches.meta.txt").write_text("".join(f"kind {i}\n" for i in range(10)) + "\n")
        other = self.folder / "other"
        self.assert_ok(run("kolo-train", "--checkpoint-dir", other, "--threads", 1, "--model", "cifar10", "--data", folder, "--steps", 1, "--batch-size", 4))
        self.assertEqual(json.loads((other / "config.json").read_text())["data"]["class_names"][9], "kind 9")


class Words(Predict):
    """A table of words with holes, in one file."""

    def setUp(self):
        super().setUp()
        rows = ["id;colour;size;kind"]
        for i in range(200):
            colour, size = self.numbers.choice(("red", "blue", "green")), self.numbers.uniform(-1, 1)
            kind = "cat" if colour == "red" else "dog"
            rows.append(f"n{i};{colour};{'' if i % 20 == 7 else f'{size:.3f}'.replace('.', ',')};{kind}")
        self.file = self.folder / "pets.csv"
        self.file.write_text("\n".join(rows) + "\n")
        self.options = ("--model", "mlp", "--data", self.file, "--target", "kind", "--ignore", "id", "--batch-size", 8, "--epochs", 8)

    def parts(self, result):
        """How many samples the line data: names for training, and how many for testing."""
        return tuple(int(re.search(words, result.err).group(1)) for words in (r"data: \S+, (\d+) samples", r"and (\d+) for testing"))

    def test_is_learnt_evaluated_and_predicted_by_its_words(self):
        self.assert_one_line(self.ask(*self.options), 1, "pets.csv, line 9, column 3: an empty cell", "--missing mean")
        done = self.ask(*self.options, "--missing", "mean", "--seed", 5, "--json")
        self.assertGreater(self.rows(done)[-1]["test_accuracy"], 0.9)
        for words in ('label: column 4 "kind"', 'left out: column 1 "id"', 'fields between ";"', "3 words in column 2", "10 empty cells: mean", " of 200 rows for testing by the seed 5"):
            self.assertIn(words, done.err)
        for ranks in (1, 2):
            again = self.rows(self.ask("--evaluate", "--json", ranks=ranks))[-1]
            self.assertEqual(again["test_accuracy"], self.rows(done)[-1]["test_accuracy"])
        self.assertEqual([row["class"] for row in again["classes"]], ["cat", "dog"])
        trained, tested = self.parts(done)
        self.assertEqual((trained + tested, sum(map(sum, again["confusion"]))), (200, tested))
        new = self.folder / "new.csv"
        new.write_text("size,colour\n0.5,red\n,blue\n0.1,pink\n")
        for ranks in (1, 2):
            result = self.ask("--predict", new, "--json", ranks=ranks)
            self.assertEqual([row["class"] for row in self.rows(result)][:2], ["cat", "dog"])
            self.assertIn('1 of the unknown word "pink" (line 4, column 2)', result.err)
            self.assertIn("1 empty cell: mean (such as line 3, column 1)", result.err)
        other = self.folder / "other.csv"
        other.write_text("kind,size,colour\ncat,0.5,red\ndog,0.5,blue\ndog,0.1,pink\n")
        result = self.ask("--evaluate", "--data", other, "--json")
        self.assertEqual(sum(map(sum, self.rows(result)[-1]["confusion"])), 3, "all of another file")
        for words in ("data: other.csv, 3 samples of 4 numbers, 2 classes (cat: 1, dog: 2)", '1 of the unknown word "pink"', "all 3 rows for testing"):
            self.assertIn(words, result.err)
        other.write_text("kind,size,colour\nfox,0.5,red\n")
        self.assert_one_line(self.ask("--evaluate", "--data", other), 1, "other.csv, line 2", 'label "fox" is none of the 2 classes, cat, dog')

    def test_goes_on_with_the_same_words(self):
        self.assert_ok(self.ask(*self.options, "--missing", "zero"))
        self.assert_ok(self.ask("--epochs", 9))
        table = json.loads((self.ck / "config.json").read_text())["data"]["table"]
        self.assertEqual([column.get("words") for column in table["features"]], [["blue", "green", "red"], None])
        self.assertEqual((table["label"]["words"], table["missing"]), (["cat", "dog"], "zero"))

    def test_files_of_a_folder_are_one_table(self):
        lines = self.file.read_text().splitlines()
        parts = self.folder / "parts"
        parts.mkdir()
        (parts / "a.csv").write_text("\n".join(lines[:101]) + "\n")
        (parts / "b.csv").write_text("\n".join([lines[0], *lines[101:]]) + "\n")
        options = [parts if word == self.file else word for word in self.options]
        result = self.assert_ok(self.ask(*options, "--missing", "drop"))
        self.assertIn("samples of 4 numbers, 2 classes", result.err)
        self.assertEqual(sum(self.parts(result)), 190)


class Texts(Predict):
    def setUp(self):
        super().setUp()
        text = self.folder / "text.txt"
        text.write_text("abcdefgh\\\té" * 400, encoding="utf-8")
        self.assert_ok(self.ask("--model", "gpt", "--data", text, "--layers", 1, "--width", 32, "--heads", 2, "--context", 16,
                                "--batch-size", 16, "--steps", 120, "--learning-rate", 0.01))

    def test_a_prompt_is_continued(self):
        for ranks in (1, 2):
            out = self.assert_ok(self.ask("--prompt", "abcd", "--length", 22, "--temperature", 0, ranks=ranks)).out
            self.assertEqual(out, "abcd" + "efgh\\\té" + "abcdefgh\\\té" + "ab\n")

    def test_characters_of_four_bytes_are_learnt_and_continued(self):
        period, emoji = "hi \U0001f600 yo \U0001f44d ", self.folder / "emoji.txt"
        emoji.write_text(period * 400, encoding="utf-8")
        self.ck = self.folder / "ck-emoji"
        self.assert_ok(self.ask("--model", "gpt", "--data", emoji, "--layers", 1, "--width", 32, "--heads", 2, "--context", 16,
                                "--batch-size", 16, "--steps", 160, "--learning-rate", 0.01))
        out = self.assert_ok(self.ask("--prompt", period, "--length", 2 * len(period.encode()), "--temperature", 0)).out
        self.assertEqual(out, 3 * period + "\n")
        refused = self.ask("--prompt", "hi \U0001f601", "--length", 3)
        self.assertEqual(refused.code, 1)
        self.assertIn('"\U0001f601"', refused.err)

    def test_a_seed_gives_the_same_text_and_another_another(self):
        def written(seed):
            return self.rows(self.ask("--prompt", "a", "--length", 60, "--temperature", 9, "--seed", seed, "--json"))[0]

        first = written(1)
        self.assertEqual(first["prompt"], "a")
        self.assertEqual(first, written(1))
        self.assertNotEqual(first["text"], written(2)["text"])

    def test_a_character_of_four_bytes_is_one(self):
        text, own = self.folder / "emoji.txt", self.folder / "emoji"
        text.write_text("ab🙂c🇩🇪" * 500, encoding="utf-8")
        ask = lambda *args: run("kolo-train", "--checkpoint-dir", own, *args)
        self.assert_ok(ask("--model", "gpt", "--data", text, "--layers", 1, "--width", 32, "--heads", 2, "--context", 16, "--batch-size", 16,
                           "--steps", 120, "--learning-rate", 0.01))
        twice = "ab🙂c🇩🇪ab🙂c"  # and behind it the two characters of a flag
        for length, told in ((29, twice + "🇩🇪a"), (28, twice + "🇩🇪"), (27, twice + "🇩"), (24, twice + "🇩"), (23, twice), (20, twice)):
            self.assertEqual(self.assert_ok(ask("--prompt", "ab", "--length", length, "--temperature", 0)).out, told + "\n", length)
        self.assert_one_line(ask("--prompt", "🙃"), 1, '"🙃" is not among the characters')

    def test_what_cannot_be_continued_is_said(self):
        self.assert_one_line(self.ask("--prompt", "xyz"), 1, '"x" is not among the characters')
        self.assert_one_line(self.ask("--prompt", ""), 1, "at least one character")
        # Of 💤 and 🐧 all bytes stand in the text, and none of them as a character.
        config, text = self.ck / "config.json", self.folder / "other.txt"
        text.write_text("ab💧🐤 " * 400, encoding="utf-8")
        shutil.rmtree(self.ck)
        sizes = ("--layers", 1, "--width", 32, "--heads", 2, "--context", 16, "--batch-size", 4, "--steps", 1)
        self.assert_ok(self.ask("--model", "gpt", "--data", text, *sizes))
        self.assert_one_line(self.ask("--prompt", "a💤"), 1, '"💤" is not among the characters of the training\'s text, which are " ab🐤💧"')
        self.assert_ok(self.ask("--prompt", "a💧"))
        found = json.loads(config.read_text())
        self.assertEqual(found["data"].pop("characters"), " ab🐤💧")
        config.write_text(json.dumps(found))  # of an earlier version
        self.assert_ok(self.ask("--prompt", "a💤"))
        shutil.rmtree(self.ck)
        text.write_bytes("aß".encode("latin-1") * 400)
        self.assert_ok(self.ask("--model", "gpt", "--data", text, *sizes))
        self.assert_one_line(self.ask("--prompt", "aß"), 1, "the training's text is not UTF-8", "save the text as UTF-8 and train again")
        self.assert_ok(self.ask("--prompt", "a"))
        self.assert_one_line(self.ask("--predict", self.folder / "text.txt"), 2, "give --prompt")


class CommandLine(Predict):
    def test_what_does_not_go_together_is_refused(self):
        self.train_on_table()
        table = self.folder / "table" / "train.csv"
        for args, words in (((), ["--model is missing"]), (("--prompt", "a"), ["give --predict"]),
                            (("--predict", table, "--prompt", "a"), ["both given"]), (("--predict", table, "--evaluate"), ["--evaluate"]),
                            (("--predict", table, "--steps", 3), ["--steps", "trains nothing"]), (("--predict", table, "--seed", 3), ["--seed"]),
                            (("--predict", table, "--data", table), ["--data"]), (("--evaluate", "--top", 3), ["--top needs --predict"]),
                            (("--predict", table, "--output", "a.txt"), [".csv or .jsonl"]), (("--predict", table, "--length", 3), ["--length needs --prompt"]),
                            (("--predict", table, "--model", "lenet"), ["is mlp"]), (("--predict", table, "--top", 0), ["--top"])):
            if args:
                self.assert_one_line(self.ask(*args), 2, *words)
        self.assert_one_line(run("kolo-train", "--predict", table), 2, "needs --checkpoint-dir")
        before = table.read_bytes()
        for path in (table, f"{table.parent}/./{table.name}"):
            self.assert_one_line(self.ask("--predict", table, "--output", path), 1, f"--output {path}: --predict reads this file; name another one")
        self.assertEqual(table.read_bytes(), before)
        new = self.folder / "new.csv"
        new.write_bytes(before)
        (self.folder / "place.csv").mkdir()
        self.assert_one_line(self.ask("--predict", new, "--output", self.folder / "place.csv"), 1, "place.csv: a folder is there; name a file, as", "place.csv/predictions.csv")
        self.assert_one_line(self.ask("--predict", new, "--output", table), 1, f"--output {table}: there is a file that --predict has not written")
        self.assertEqual(table.read_bytes(), before)
        for ending in ("csv", "jsonl"):  # what it has written itself it writes anew, and what is empty
            out = self.folder / f"out.{ending}"
            out.write_text("")
            for _ in range(2):
                self.assert_ok(self.ask("--predict", new, "--output", out))
            self.assertIn("new.csv:", out.read_text())
            out.write_text("mine\n1\n")
            self.assert_one_line(self.ask("--predict", new, "--output", out), 1, "name another one, or remove it")
        self.assert_one_line(self.ask("--predict", self.folder / "table"), 1, "a folder, and the model takes [2] and no images; name the files in it: tables (.csv)")
        self.assert_one_line(run("kolo-train", "--predict", table, "--checkpoint-dir", self.folder / "none"), 2, "there is no folder", "none")

    def test_the_training_goes_on_as_if_nobody_had_asked(self):
        self.train_on_table()
        before = (self.ck / "config.json").read_text()
        self.assert_ok(self.ask("--predict", self.folder / "table" / "train.csv"))
        self.assertEqual((self.ck / "config.json").read_text(), before)


class Evaluated(Predict):
    def test_the_confusion_matrix_of_a_folder_is_the_one_counted_by_hand(self):
        self.train_on_photographs()
        # By their folders 4, 3 and 4; by what they show, the matrix below.
        shown = {"left": ["left", "left", "left", "right"], "none": ["none", "right", "none"], "right": ["right"] * 4}
        other = self.folder / "other"
        for label, kinds in shown.items():
            self.picture(other / "train" / label / "0.png", label)
            for i, kind in enumerate(kinds):
                self.picture(other / "test" / label / f"{i}.png", kind)
        for ranks in (1, 3):
            found = self.rows(self.ask("--evaluate", "--data", other, "--json", ranks=ranks))[-1]
            self.assertEqual(found["confusion"], [[3, 0, 1], [0, 2, 1], [0, 0, 4]])
            self.assertEqual([(row["class"], row["count"]) for row in found["classes"]], [("left", 4), ("none", 3), ("right", 4)])
            self.assertEqual([row["precision"] for row in found["classes"]], [1, 1, 4 / 6])
            self.assertEqual([row["recall"] for row in found["classes"]], [3 / 4, 2 / 3, 1])
            self.assertEqual(found["test_accuracy"], 9 / 11)
            self.assertNotIn("auc", found)
        lines = self.assert_ok(self.ask("--evaluate", "--data", other)).out.splitlines()
        self.assertEqual([line.split() for line in lines[1:]],
                         [["class", "count", "precision", "recall", "taken", "for", "left", "none", "right"],
                          ["left", "4", "1.0000", "0.7500", "3", "0", "1"], ["none", "3", "1.0000", "0.6667", "0", "2", "1"],
                          ["right", "4", "0.6667", "1.0000", "0", "0", "4"]])

    def test_the_area_under_the_curve_is_the_share_of_pairs_that_stand_right(self):
        self.train_on_table()
        # Labels that the model does not always find.
        rows = [(self.numbers.uniform(-1, 1), self.numbers.uniform(-1, 1)) for _ in range(60)]
        labels = [int(a + self.numbers.uniform(-1, 1) > b) for a, b in rows]
        folder = self.folder / "noisy"
        folder.mkdir()
        for name in ("train", "test"):
            (folder / f"{name}.csv").write_text("a,b,label\n" + "".join(f"{a},{b},{label}\n" for (a, b), label in zip(rows, labels)))
        guesses = self.rows(self.ask("--predict", folder / "test.csv", "--json"))
        scores = [row["share"] if row["class"] == "1" else 1 - row["share"] for row in guesses]
        pairs = [(x > y) + (x == y) / 2 for x, i in zip(scores, labels) for y, j in zip(scores, labels) if i == 1 and j == 0]
        for ranks in (1, 2):
            found = self.rows(self.ask("--evaluate", "--data", folder, "--json", ranks=ranks))[-1]
            # Shares have six digits: two that are equal there may not be.
            self.assertAlmostEqual(found["auc"], sum(pairs) / len(pairs), places=2)
            self.assertEqual(sum(map(sum, found["confusion"])), 60)
        self.assertIn(f"area under the ROC curve {found['auc']:.4f}", self.ask("--evaluate", "--data", folder).out)


class Documented(Predict):
    def test_the_page_says_what_happens(self):
        self.train_on_photographs()
        for name, kind in (("1", "left"), ("2", "none")):
            self.picture(self.folder / "new" / f"{name}.png", kind)
        page = (SOURCE / "docs" / "prediction.md").read_text()
        lines = re.search(r"```\n(kolo-train .*?)```", page, re.DOTALL)[1].splitlines()
        commands = [line.split()[1:] for line in lines if line.startswith("kolo-train ")]
        self.assertEqual(len(commands), 2)
        shutil.rmtree(self.ck)
        out = [self.assert_ok(run("kolo-train", *words, "--threads", 1, cwd=self.folder)).out for words in commands]
        promised = [line.split()[:2] for line in lines[2:]]
        self.assertEqual([line.split()[:2] for line in out[1].splitlines()], promised)


if __name__ == "__main__":
    unittest.main()
