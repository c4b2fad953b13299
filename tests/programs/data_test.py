#!/usr/bin/env python3
"""kolo-train on photographs, arrays, tables and texts: what it says of them, that it resumes in the same bytes, what it refuses."""
import hashlib
import json
import os
import random
import struct
import unittest
import zlib

from programs import ProgramTest, run


def png(pixels):
    """A grey picture, rows of numbers."""
    height, width = len(pixels), len(pixels[0])

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + bytes(row) for row in pixels)
    header = struct.pack(">2I5B", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def npy(kind, shape, data):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header.encode() + data


class Data(ProgramTest):
    def train(self, model, data, *args, ranks=1, batch=8):
        return run("kolo-train", "--model", model, "--data", data, "--batch-size", batch, "--json", "--threads", 1, *args, ranks=ranks)

    def photographs(self):
        """Light from the left, from the right, none: lenet tells them apart."""
        numbers = random.Random(1)
        for split, count in (("train", 24), ("test", 6)):
            for label, name in enumerate(("left", "right", "none")):
                folder = self.folder / "photos" / split / name
                folder.mkdir(parents=True)
                for i in range(count):
                    side = 28 + numbers.randrange(12)
                    light = [200 if (label == 0) == (x < side // 2) else 20 for x in range(side)] if label < 2 else [90] * side
                    (folder / f"{i}.png").write_bytes(png([[light[x] + numbers.randrange(40) for x in range(side)] for _ in range(side)]))
        return self.folder / "photos"

    def table(self, rows=120):
        """The label is which of two columns of very different sizes is above its mean."""
        numbers = random.Random(2)
        folder = self.folder / "table"
        folder.mkdir()
        for name, count in (("train.csv", rows), ("test.csv", 40)):
            lines = ["a,b,label"]
            for _ in range(count):
                a, b = numbers.uniform(-1, 1), numbers.uniform(-1, 1)
                lines.append(f"{1000 + a},{b / 1000},{int(a > b)}")
            (folder / name).write_text("\n".join(lines) + "\n")
        return folder

    def arrays(self):
        numbers = random.Random(3)
        folder = self.folder / "arrays"
        folder.mkdir()
        for split, count in (("train", 64), ("test", 16)):
            labels = [numbers.randrange(4) for _ in range(count)]
            rows = [[200 if i // 7 == label else 0 for i in range(28)] for label in labels]
            (folder / f"x_{split}.npy").write_bytes(npy("|u1", f"({count}, 28)", b"".join(map(bytes, rows))))
            (folder / f"y_{split}.npy").write_bytes(npy("<i8", f"({count},)", struct.pack(f"<{count}q", *labels)))
        return folder

    def text(self):
        path = self.folder / "text.txt"
        path.write_text("the quick brown fox jumps over the lazy dog and back again.\n" * 60)
        return path

    def checkpoint(self, folder):
        return hashlib.sha256(b"".join(file.read_bytes() for file in sorted(folder.glob("model.ckpt-*")))).hexdigest()

    def test_a_folder_whose_name_is_not_utf8_is_told_in_json_that_is(self):
        folder = self.folder / os.fsdecode(b"gr\xf6\xdfe")
        for name in "ab":
            (folder / name).mkdir(parents=True)
            for i in range(8):
                (folder / name / f"{i}.png").write_bytes(png([[20 * i] * 28] * 28))
        result = self.assert_ok(self.train("lenet", folder, "--steps", 2, "--log-dir", self.folder / "logs", batch=4))
        self.assertEqual(result.done["global_step"], 2)
        for text in (result.out, (self.folder / "logs" / "metrics.jsonl").read_text(encoding="utf-8")):
            self.assertIn("gr\ufffd\ufffde", text)

    def assert_learns(self, result, accuracy):
        self.assert_ok(result)
        self.assertGreaterEqual(result.done["test_accuracy"], accuracy)

    def assert_resumes(self, model, data, *args):
        """4 steps at once and 2 steps twice leave the same bytes, on two ranks."""
        for steps in (4, 2, 4):
            folder = self.folder / ("once" if steps == 4 and not (self.folder / "once").exists() else "twice")
            self.assert_ok(self.train(model, data, *args, "--steps", steps, "--keep", 1, "--checkpoint-dir", folder, ranks=2))
        self.assertEqual(self.checkpoint(self.folder / "once"), self.checkpoint(self.folder / "twice"))

    def test_photographs_are_learnt_from_their_folders(self):
        result = self.train("lenet", self.photographs(), "--epochs", 3, "--augment", "--normalize")
        self.assertIn("data: photos, 72 images of 1 channel, 28 x 28, 3 classes (left: 24, none: 24, right: 24), loss softmax, and 18 for testing", result.err)
        self.assert_learns(result, 0.9)

    def test_photographs_resume(self):
        self.assert_resumes("lenet", self.photographs(), "--augment")

    def test_photographs_that_are_cropped_turned_and_coloured_resume_and_are_evaluated_as_they_are(self):
        photos, changes = self.photographs(), "usual,crop:0.5,rotate:10,color"
        self.assert_resumes("lenet", photos, "--augment", changes)
        folder = self.folder / "once"
        config = json.loads((folder / "config.json").read_text())
        self.assertEqual((config["preprocessing"]["augment"], config["switches"]["augment"]), (changes, changes))
        evaluated = self.assert_ok(self.train("lenet", photos, "--evaluate", "--checkpoint-dir", folder)).done
        config["switches"]["augment"] = ""  # as an earlier version wrote it
        (folder / "config.json").write_text(json.dumps(config))
        again = self.assert_ok(self.train("lenet", photos, "--evaluate", "--checkpoint-dir", folder)).done
        self.assertEqual(again["test_loss"], evaluated["test_loss"])
        on = self.assert_ok(self.train("lenet", photos, "--augment", "--steps", 5, "--checkpoint-dir", folder))
        self.assertNotIn("--augment", on.err, "the same as the earlier version's")

    def test_refuses_changes_of_images_that_it_does_not_know(self):
        for wrong in ("zoom", "crop:2", "flip:1", "rotate:-3"):
            self.assert_one_line(self.train("lenet", "generated", "--augment", wrong), 2, f'--augment "{wrong}" is not valid')

    def test_a_damaged_photograph_ends_the_training_with_its_name(self):
        folder = self.photographs()
        damaged = folder / "train" / "left" / "0.png"
        damaged.write_bytes(damaged.read_bytes()[:-30])
        self.assert_one_line(self.train("lenet", folder, "--epochs", 1), 1, str(damaged), "damaged PNG")

    def damaged_photographs(self):
        """Three whose header is wrong or absent, one of them for testing, and one that ends within its pixels."""
        folder = self.photographs()
        paths = [folder / name for name in ("train/left/3.png", "train/right/5.png", "test/none/1.png", "train/none/7.png")]
        paths[0].write_bytes(b"")
        paths[1].write_bytes(b"GIF89a" + bytes(40))
        paths[2].write_bytes(paths[2].read_bytes()[:20])
        paths[3].write_bytes(paths[3].read_bytes()[:-30])
        return folder, paths

    def test_the_headers_of_all_photographs_are_checked_before_the_first_step(self):
        folder, paths = self.damaged_photographs()
        damaged = {path: path.read_bytes() for path in paths[:3]}
        for path in paths[:3]:
            for other in paths[:3]:
                other.write_bytes(damaged[path] if other == path else png([[90] * 28] * 28))
            for ranks in (1, 3):
                result = self.train("lenet", folder, "--steps", 1, batch=4, ranks=ranks)
                self.assert_one_line(result, 1, str(path))
                self.assertNotIn("threads:", result.err, "before the model is built")

    def test_damaged_photographs_are_left_out_and_counted_where_that_is_asked_for(self):
        folder, paths = self.damaged_photographs()
        for ranks in (1, 2):
            result = self.train("lenet", folder, "--epochs", 1, "--skip-damaged", "--normalize", "--checkpoint-dir", self.folder / f"ck{ranks}", batch=4, ranks=ranks)
            self.assert_ok(result)
            self.assertIn("left out: 3 damaged of 72 pictures of photos", result.err)
            self.assertIn("left out: 1 damaged of 18 pictures of photos", result.err)
            for path in paths:
                self.assertIn(str(path), result.err)
            again = self.assert_ok(self.train("lenet", folder, "--evaluate", "--checkpoint-dir", self.folder / f"ck{ranks}", ranks=ranks))
            self.assertEqual(sum(map(sum, again.done["confusion"])), 17)

    def test_tables_are_learnt_once_they_are_normalized_and_evaluated_so(self):
        folder, saved = self.table(), ("--checkpoint-dir", self.folder / "ck")
        result = self.train("mlp", folder, "--epochs", 6, "--normalize", *saved)
        self.assertRegex(result.err, r'data: train.csv, 120 samples of 2 numbers, 2 classes \(0: \d+, 1: \d+\), label: column 3 "label", loss softmax, and 40 for testing')
        self.assert_learns(result, 0.85)
        again = self.assert_ok(self.train("mlp", folder, "--evaluate", "--normalize", *saved))
        self.assertEqual(again.done["test_accuracy"], result.done["test_accuracy"])

    def test_tables_resume(self):
        self.assert_resumes("mlp", self.table(), "--normalize")

    def test_arrays_are_learnt(self):
        self.assert_learns(self.train("mlp", self.arrays(), "--epochs", 4, ranks=2), 0.95)

    def test_arrays_resume(self):
        self.assert_resumes("mlp", self.arrays())

    def test_texts_are_learnt_by_models_of_the_sizes_asked_for(self):
        size = ("--layers", 1, "--width", 32, "--context", 16)
        for model, heads in (("gpt", ("--heads", 2)), ("lstm", ())):
            with self.subTest(model=model):
                result = self.assert_ok(self.train(model, self.text(), *size, *heads, "--epochs", 6, "--learning-rate", 0.01))
                self.assertIn("data: text.txt, 202 pieces of 16 tokens of 29 kinds, loss softmax, and 22 for testing", result.err)
                self.assertLess(result.done["test_loss"], 1.5, "3.37 where nothing is known")
        plain = run("kolo-train", "--model", "gpt", "--data", self.text(), *size, "--steps", 1)
        self.assertRegex(plain.out, r"test loss [\d.]+ nats a token, test accuracy [\d.]+ % of 352 test tokens \(text.txt\)")

    def test_texts_resume(self):
        self.assert_resumes("gpt", self.text(), "--layers", 1, "--width", 16, "--heads", 2, "--context", 8)

    def test_averages_of_the_variables_are_evaluated_and_saved(self):
        folder, saved = self.arrays(), ("--checkpoint-dir", self.folder / "ck", "--average-decay", 0.5)
        result = self.train("mlp", folder, "--epochs", 4, *saved, ranks=2)
        self.assert_learns(result, 0.95)
        again = self.assert_ok(self.train("mlp", folder, "--evaluate", *saved))
        self.assertEqual(again.done["test_loss"], result.done["test_loss"])
        without = self.assert_ok(self.train("mlp", folder, "--evaluate", *saved[:2]))
        self.assertEqual(without.done["test_loss"], result.done["test_loss"], "the folder knows its switches")
        (self.folder / "ck" / "config.json").unlink()
        last = self.assert_ok(self.train("mlp", folder, "--evaluate", *saved[:2]))
        self.assertNotEqual(last.done["test_loss"], result.done["test_loss"], "the variables themselves are further on")

    def test_refuses_sizes_that_the_model_has_not(self):
        self.assert_one_line(self.train("lenet", "generated", "--width", 32), 2, "--width cannot be chosen for --model lenet")
        self.assert_one_line(self.train("lstm", self.text(), "--heads", 2), 2, "--heads cannot be chosen for --model lstm")
        self.assert_one_line(self.train("gpt", self.text(), "--width", 30), 1, "width 30, heads 4", "a multiple of the heads")
        self.assert_one_line(self.train("gpt", self.text(), "--normalize"), 2, "--normalize")

    def test_refuses_data_that_the_model_does_not_take(self):
        self.assert_one_line(self.train("gpt", "generated"), 1, "--data must name a file")
        self.assert_one_line(self.train("lenet", self.text()), 1, "text.txt", "takes no tokens")
        self.assert_one_line(self.train("mlp", self.photographs()), 1, "photographs", "[784]")


if __name__ == "__main__":
    unittest.main()
