#!/usr/bin/env python3
"""What kolo-train says of data that may not be as their owner thinks, and of a model that does not take them."""
import json
import random
import shutil
import unittest

from data_files import DataFiles
from data_test import npy, png
from programs import run


class Warnings(DataFiles):
    def test_pixels_of_another_scale_are_told(self):
        words = "its numbers are up to 255, and the model was trained on numbers up to 1; pixels must be divided by 255"
        known = self.arrays("known", "|u1", 1)
        for model, source in (("u1", known), ("drawn", "generated")):
            self.ck = self.folder / f"ck-{model}"
            classes = (0, 1, 2) if model == "u1" else tuple(range(10))
            self.assert_ok(self.train("lenet", source, "--checkpoint-dir", self.ck))
            large = self.arrays(f"large-{model}", "<f4", 1, classes, "test")
            right = self.arrays(f"right-{model}", "<f4", 1 / 255, classes, "test")
            self.assertIn(f"x_test.npy: {words}", self.assert_ok(self.ask("--predict", large / "x_test.npy")).err)
            self.assertIn(f"x_test.npy: {words}", self.assert_ok(self.ask("--evaluate", "--data", large)).err)
            for asked in (("--predict", right / "x_test.npy"), ("--evaluate", "--data", right)):
                self.assertNotIn("numbers are up to", self.assert_ok(self.ask(*asked)).err)
        self.arrays("known", "<f4", 1, split="test")
        self.assertIn(f"known, x_test.npy: {words}", self.assert_ok(self.train("lenet", known)).err)

    def test_a_column_that_was_always_0_is_told(self):
        table = self.table("a,b,label", [f"{i % 7},0,{i % 2}" for i in range(60)])
        self.assert_ok(self.train("mlp", table, "--normalize", "--checkpoint-dir", self.ck))
        later = self.table("a,b,label", [f"{i % 7},1000,{i % 2}" for i in range(60)])
        self.assertIn('numbers are up to 1000 in column 2 "b" (0 in the training)', self.assert_ok(self.ask("--predict", later)).err)

    def test_columns_in_another_unit_are_told(self):
        folder, numbers = self.folder / "units", random.Random(5)
        folder.mkdir()
        rows = [(numbers.uniform(0, 9), numbers.choice("ab"), numbers.uniform(-5, 5)) for _ in range(200)]

        def write(path, factor, header="size,kind,depth,price\n"):
            path.write_text(header + "".join(f"{a * factor},{kind},{b},{a + b}\n" for a, kind, b in rows))
            return path

        write(folder / "train.csv", 1), write(folder / "test.csv", 1)
        first = self.assert_ok(self.train("mlp", folder, "--normalize", "--checkpoint-dir", self.ck)).err
        large, small = write(self.folder / "large.csv", 1000), write(self.folder / "small.csv", 0.001)
        few = self.folder / "few.csv"
        few.write_text("size,kind,depth,price\n0.01,a,0.01,1\n")
        said = r'numbers are up to [\d.]+ in column 1 "size" \([\d.]+ in the training\); each column must be in the unit'
        self.assertNotRegex(first, "in the training")
        for name in (large, small):
            self.assertRegex(self.assert_ok(self.ask("--predict", name)).err, said)
            both = self.assert_ok(self.ask("--predict", folder / "train.csv", name)).err
            self.assertRegex(both, f"{name}: {said}")
            self.assertNotRegex(both, f"train.csv: {said}")
        self.assertRegex(self.assert_ok(self.ask("--evaluate", "--data", large)).err, said)
        for asked in (self.ask("--predict", few), self.ask("--evaluate")):
            self.assertNotRegex(self.assert_ok(asked).err, "in the training")
        write(folder / "test.csv", 1000)
        self.assertRegex(self.assert_ok(self.train("mlp", folder, "--normalize")).err, "test.csv: " + said)
        write(folder / "test.csv", 1, header="")
        for asked in (self.ask("--evaluate"), self.train("mlp", folder, "--normalize")):
            self.assertIn('test.csv: its first line has no names, so its columns are taken by their places in the training\'s table: 1 "size", 2 "kind", 3 "depth"; in another order',
                          self.assert_ok(asked).err)
        config = self.ck / "config.json"  # of a folder of an earlier version
        found = json.loads(config.read_text())
        known = found["data"].pop("column_largest")
        self.assertAlmostEqual(known[0], max(row[0] for row in rows), places=3)
        self.assertEqual(known[1], 0)  # words
        config.write_text(json.dumps(found))
        self.assertNotRegex(self.assert_ok(self.ask("--predict", large)).err, said)
        config.write_text(json.dumps({**found, "data": {**found["data"], "column_largest": known}}))
        self.assertRegex(self.assert_ok(self.train("mlp", large, "--checkpoint-dir", self.ck, steps=3)).err, said)
        self.assertGreater(json.loads(config.read_text())["data"]["column_largest"][0], 1000)  # of all that it has learnt from

    def test_classes_without_samples_are_told(self):
        result = self.assert_ok(self.train("lenet", self.arrays("gaps", "|u1", 1, (0, 1, 5)), ranks=2))
        self.assertEqual(result.err.count("there is no training sample of the classes 2, 3, 4, and the model has 6 outputs"), 1, result.err)
        self.arrays("gaps", "|u1", 1, (0, 1, 3), "test")
        result = self.assert_ok(self.train("lenet", self.folder / "gaps"))
        self.assertIn("there are 4 test samples of 3, of which there is no training sample: the model cannot name such samples", result.err)
        rows = [f"{i},{'a' if i % 2 else 'b'}" for i in range(60)] + ["61,rare"]
        result = self.assert_ok(self.train("mlp", self.table("x,label", rows)))
        self.assertIn("there is no test sample of the class rare, of which the test accuracy says nothing", result.err)
        self.assertNotIn("there is no training sample", result.err)

    def test_columns_of_very_different_sizes_are_told_once(self):
        rows = [f"{self.numbers.uniform(-1, 1) / 1000},{1000 + i % 7},{i % 7 + 100000.5}" for i in range(60)]
        table = self.table("a,b,price", rows)
        said = ('numbers are up to 0.00', 'in column 1 "a" and up to 1006 in column 2 "b", and numbers to find are up to 1e+05: ', "--normalize brings all to one size")
        first = self.assert_ok(self.train("mlp", table, "--checkpoint-dir", self.ck))
        for words in said:
            self.assertIn(words, first.err)
        self.assertNotIn("--normalize", self.assert_ok(self.ask("--steps", 3)).err)
        words = self.table("a,b,label", [f"{i % 5 * 1000},w{i % 3},{i % 2}" for i in range(60)])
        self.assertIn('numbers are up to 4000 in column 1 "a", and words are 0 or 1: ', self.assert_ok(self.train("mlp", words)).err)
        self.assertNotIn("brings all", self.assert_ok(self.train("mlp", table, "--normalize")).err)
        self.assertNotIn("brings all", self.assert_ok(self.train("mlp", self.table("a,b,label", [f"{i % 5},{i % 3},{i % 2}" for i in range(60)]))).err)

    def test_arrays_of_pixels_up_to_255_are_told(self):
        words = "numbers are up to 255 (pixels may be divided by 255, or be u1, which kolo divides): a model learns little from such numbers, and --normalize"
        self.assertIn(words, self.assert_ok(self.train("lenet", self.arrays("large", "<f4", 1))).err)
        for result in (self.train("lenet", self.arrays("large", "<f4", 1), "--normalize"), self.train("lenet", self.arrays("small", "<f4", 1 / 255)),
                       self.train("lenet", self.arrays("bytes", "|u1", 1))):
            self.assertNotIn("brings all", self.assert_ok(result).err)

    def test_images_of_another_shape_are_told_with_the_models(self):
        folder = self.folder / "colours"
        folder.mkdir()
        (folder / "x_train.npy").write_bytes(npy("|u1", "(12, 3, 28, 28)", bytes(12 * 3 * 784)))
        (folder / "y_train.npy").write_bytes(npy("|u1", "(12,)", bytes(i % 2 for i in range(12))))
        self.assert_one_line(self.train("lenet", folder), 1, "--model lenet: it takes images [1,28,28], and samples of colours are [3,28,28]", "resnet20 (32 x 32 in colour)")

    def test_a_wrong_option_is_told_alone(self):
        table = self.table("a,b,label", [f"{i % 7},{i % 5},{i % 2}" for i in range(60)])
        self.assert_ok(self.train("mlp", table, "--checkpoint-dir", self.ck))
        result = self.ask("--epochs", 0)
        self.assert_one_line(result, 2, '--epochs "0" is not valid')
        self.assertNotIn("takes the place", result.err)

    def test_pictures_with_large_numbers_to_find_are_told(self):
        folder = self.folder / "prices"
        folder.mkdir()
        for i in range(12):
            (folder / f"{i}.png").write_bytes(png([[self.numbers.randrange(256) for _ in range(28)] for _ in range(28)]))
        (folder / "list.csv").write_text("file,price\n" + "".join(f"{i}.png,{i * 1000}.5\n" for i in range(12)))
        self.assertIn("numbers to find are up to 1.1e+04: a model learns little from such numbers, and --normalize", self.assert_ok(self.train("lenet", folder)).err)

    def test_a_column_that_is_a_name_is_told(self):
        table = self.table("id,a,label", [f"n{i},{i % 5},{i % 2}" for i in range(60)])
        result = self.assert_ok(self.train("mlp", table, ranks=2))
        self.assertEqual(result.err.count('column 1 "id" is one of words, with 60 different ones in 60 rows'), 1, result.err)
        self.assertIn("--ignore id leaves it out", result.err)
        self.assertNotIn("different ones", self.assert_ok(self.train("mlp", table, "--ignore", "id")).err)

    def photographs(self):
        for split, count in (("train", 8), ("test", 2)):
            for name in ("left", "right"):
                folder = self.folder / "photos" / split / name
                folder.mkdir(parents=True)
                for i in range(count):
                    (folder / f"{i}.png").write_bytes(png([[self.numbers.randrange(256) for _ in range(28)] for _ in range(28)]))
        return self.folder / "photos"

    def test_a_damaged_picture_comes_with_the_way_to_leave_it_out(self):
        folder = self.photographs()
        self.assert_ok(self.train("lenet", folder, "--checkpoint-dir", self.ck))
        for name in ("train/left/3.png", "test/left/0.png"):
            whole = (folder / name).read_bytes()
            for damaged in (whole[:-30], b"GIF89a" + bytes(40)):
                (folder / name).write_bytes(damaged)
                asked = [self.ask("--evaluate"), self.ask("--predict", folder / name)] if "test" in name else []
                for result in (self.train("lenet", folder, steps=9), *asked):
                    self.assert_one_line(result, 1, name, "; --skip-damaged leaves such pictures out")
            self.assertNotIn("leaves such pictures out", self.assert_ok(self.train("lenet", folder, "--skip-damaged")).err)
            (folder / name).write_bytes(whole)

    def test_a_training_whose_test_picture_is_damaged_says_that_it_is_saved(self):
        folder = self.photographs()
        picture = folder / "test" / "left" / "0.png"
        picture.write_bytes(picture.read_bytes()[:-30])
        result = self.train("lenet", folder, "--checkpoint-dir", self.ck)
        self.assert_one_line(result, 1, "0.png", "--skip-damaged leaves such pictures out",
                             f"the training itself is saved in {self.ck}, and --evaluate with --skip-damaged, or without that file, gives its accuracy")
        self.assertRegex(self.assert_ok(self.ask("--evaluate", "--skip-damaged")).out, '"test_accuracy":[01]')

    def test_models_that_do_not_take_the_data_are_told_with_those_that_do(self):
        self.assert_one_line(self.train("mlp", self.photographs()), 1, "photographs", "lenet (28 x 28 in grey)", "resnet20 (32 x 32 in colour)")
        table = self.table("a,b,label", [f"{i},{i},{i % 2}" for i in range(60)])
        self.assert_one_line(self.train("lenet", table), 1, "--model lenet: it takes images, and samples of t.csv are [2]", "--model mlp takes rows of numbers")
        holes = self.table("a,b,label", ["1,,0", "2,3,1"])
        for model, size in (("resnet20", 32), ("vgg16", 224)):
            for data in (table, holes):
                self.assert_one_line(self.train(model, data), 1, f"t.csv: a table, and the model takes images [3,{size},{size}]; --model mlp takes tables")

    def test_the_folder_names_what_was_drawn_for_testing(self):
        table = self.table("a,label", [f"{i},{i % 2}" for i in range(60)])
        result = self.assert_ok(self.train("mlp", table, "--checkpoint-dir", self.ck))
        names = (self.ck / "testing.txt").read_text().splitlines()
        self.assertIn(f"and {len(names)} for testing ({self.ck}/testing.txt names them)", result.err)
        for name in names:
            self.assertRegex(name, r"^t\.csv:\d+$")
        tested = self.assert_ok(self.ask("--evaluate")).done
        self.assertEqual(sum(map(sum, tested["confusion"])), len(names))

    def test_another_spelling_of_the_same_path_tests_what_was_drawn_alone(self):
        pets, tables = self.pictures("pets"), self.folder / "tables"
        tables.mkdir()
        (tables / "t.csv").write_text("a,label\n" + "".join(f"{i},{i % 2}\n" for i in range(60)))
        for data, model in ((pets, "lenet"), (tables, "mlp")):
            link = self.folder / f"link-{model}"
            link.symlink_to(data)
            spellings = (str(data), f"{data}/", f"{data}//", f"{data}/.", link, f"{link}/")
            for trained in (f"{data}/", str(data), link):
                self.ck = self.folder / f"ck-{model}-{spellings.index(trained)}"
                self.assert_ok(self.train(model, trained, "--checkpoint-dir", self.ck))
                drawn = len((self.ck / "testing.txt").read_text().splitlines())
                for spelling in spellings:
                    with self.subTest(trained=trained, spelling=spelling):
                        count, said = self.evaluated(spelling)
                        self.assertEqual(count, drawn)
                        self.assertNotIn("takes the place of", said)

    def test_the_trainings_samples_elsewhere_are_known_again(self):
        pets, table = self.pictures("pets"), self.table("a,b,label", [f"{self.numbers.random()},{'uvw'[i % 3]},{'no' if i % 2 else 'yes'}" for i in range(60)])
        for data, model, count in ((pets, "lenet", 40), (table, "mlp", 60)):
            self.ck = self.folder / f"ck-{model}"
            self.assert_ok(self.train(model, data, "--checkpoint-dir", self.ck, "--seed", 3))
            drawn = len((self.ck / "testing.txt").read_text().splitlines())
            copied = self.folder / f"copy{data.suffix}"
            (shutil.copytree if data.is_dir() else shutil.copy)(data, copied)
            with self.subTest(model=model):
                tested, said = self.evaluated(copied)
                self.assertEqual(tested, drawn)
                self.assertEqual(said.count(f"--data {copied}: these are the {count} samples of the training, so that only the {drawn} that it drew for testing"), 1, said)
                data.rename(self.folder / f"renamed-{model}{data.suffix}")
                self.assertEqual(self.evaluated(self.folder / f"renamed-{model}{data.suffix}")[0], drawn)

    def test_samples_that_the_training_may_have_seen_are_told(self):
        self.pictures("pets")
        rows = [f"{self.numbers.random()},{i % 2}" for i in range(60)]
        for data, model in ((self.folder / "pets", "lenet"), (self.table("a,label", rows), "mlp")):
            self.ck = self.folder / f"ck-{model}"
            self.assert_ok(self.train(model, data, "--checkpoint-dir", self.ck))
        shutil.copytree(self.folder / "pets", self.folder / "more")
        shutil.copy(self.folder / "pets/left/0.png", self.folder / "more/left/another.png")
        (self.folder / "mixed.csv").write_text("a,label\n" + "".join(row + "\n" for row in rows[::-1]))
        (self.folder / "others.csv").write_text("a,label\n" + "".join(f"{self.numbers.random()},{i % 2}\n" for i in range(60)))
        for data, model, count, seen in (("more", "lenet", 41, 40), ("mixed.csv", "mlp", 60, 60)):
            self.ck = self.folder / f"ck-{model}"
            tested, said = self.evaluated(self.folder / data)
            self.assertEqual(tested, count)
            drawn = len((self.ck / "testing.txt").read_text().splitlines())
            self.assertRegex(said, f"the training has learnt from ({seen - drawn}|{seen - drawn + 1}) of these {count} samples")
        tested, said = self.evaluated(self.folder / "others.csv")
        self.assertEqual(tested, 60)
        self.assertNotIn("training", said)
        self.ck = self.folder / "ck-lenet"
        tested, said = self.evaluated(self.pictures("others"))  # of the same names
        self.assertEqual(tested, 40)
        self.assertNotIn("of the training", said)

    def test_pictures_are_known_again_by_what_is_in_them(self):
        pets = self.pictures("pets")
        self.assert_ok(self.train("lenet", pets, "--checkpoint-dir", self.ck))
        drawn = len((self.ck / "testing.txt").read_text().splitlines())
        for layout in ("renamed/{label}/x{i}.png", "deeper/{label}/below/{i}.png", "split/{part}/{label}/{i}.png"):
            for label in ("left", "right"):
                for i, picture in enumerate(sorted((pets / label).iterdir())):
                    for part in ("train", "test"):
                        path = self.folder / layout.format(part=part, label=label, i=i)
                        path.parent.mkdir(parents=True, exist_ok=True)
                        shutil.copy(picture, path)
            with self.subTest(layout=layout):
                tested, said = self.evaluated(self.folder / layout.split("/")[0])
                self.assertEqual(tested, 40)
                self.assertIn(f"the training has learnt from {40 - drawn} of these 40 samples", said)
        names = self.folder / "named"
        names.mkdir()
        for i, picture in enumerate(sorted(pets.rglob("*.png"))):
            shutil.copy(picture, names / f"{i}.png")
        (names / "list.csv").write_text("file,label\n" + "".join(f"{i}.png,{picture.parent.name}\n" for i, picture in enumerate(sorted(pets.rglob("*.png")))))
        self.assertIn("the training has learnt from", self.evaluated(names)[1])
        config = self.ck / "config.json"  # of a folder of an earlier version
        found = json.loads(config.read_text())
        self.assertEqual(len(found["data"]["drawn"].pop("bytes")), 40)
        del found["data"]["drawn"]["kept"], found["data"]["learnt"]
        config.write_text(json.dumps(found))
        tested, said = self.evaluated(self.folder / "renamed")
        self.assertEqual(tested, 40)
        self.assertIn("is of a version that kept names of pictures and not what is in them", said)
        self.assert_ok(self.ask("--steps", 3))
        self.assertIn("the training has learnt from", self.evaluated(self.folder / "renamed")[1])

    def test_rows_that_were_moved_in_their_own_file_are_told(self):
        rows = [f"{self.numbers.random()},{i % 2}" for i in range(200)]
        table = self.table("a,label", rows)
        self.assert_ok(self.train("mlp", table, "--checkpoint-dir", self.ck))
        drawn = len((self.ck / "testing.txt").read_text().splitlines())
        self.assertEqual(self.evaluated(table)[0], drawn)
        self.table("a,label", rows + [f"{self.numbers.random()},1" for _ in range(100)])  # it has grown
        tested, said = self.evaluated(table)
        self.assertGreater(tested, drawn)
        self.assertLess(tested, 60)
        self.assertNotIn("--data", said)
        for moved in (rows[::-1], ["0.5,1", *rows], sorted(rows)):
            self.table("a,label", moved)
            tested, said = self.evaluated(table)
            self.assertEqual(tested, len(moved))
            self.assertIn(f"the training has learnt from {200 - drawn} of these {len(moved)} samples", said)
            shutil.copytree(self.ck, self.folder / "on")
            went_on = self.assert_ok(run("kolo-train", "--checkpoint-dir", self.folder / "on", "--threads", 1, "--steps", 3)).err
            self.assertRegex(went_on, r"the training has learnt from \d+ of these \d+ samples for testing")
            shutil.rmtree(self.folder / "on")
        self.table("a,label", [f"{self.numbers.random()},{i % 2}" for i in range(200)])
        tested, said = self.evaluated(table)
        self.assertEqual(tested, 200)
        self.assertIn("it no longer holds the samples that the training had, and all 200 are tested", said)

    def test_samples_of_an_earlier_start_and_learnt_ones_alone_are_known_again(self):
        first, second = self.folder / "first.csv", self.folder / "second.csv"
        rows = [f"{self.numbers.random()},{i % 2}" for i in range(200)]
        self.table("a,label", rows).rename(first)
        self.table("a,label", [f"{self.numbers.random()},{i % 2}" for i in range(100)]).rename(second)
        self.assert_ok(self.train("mlp", first, "--checkpoint-dir", self.ck))
        drawn = (self.ck / "testing.txt").read_text().splitlines()
        learnt = self.table("a,label", [row for i, row in enumerate(rows) if f"first.csv:{i + 2}" not in drawn])
        for after in (False, True):
            if after:
                self.assertNotIn("samples for testing, as where", self.assert_ok(self.ask("--data", second, "--steps", 3)).err)
            with self.subTest(after=after):
                tested, said = self.evaluated(learnt)
                self.assertEqual(tested, 200 - len(drawn))
                self.assertIn(f"the training has learnt from {tested} of these {tested} samples", said)
                self.assertEqual(self.evaluated(first)[0], len(drawn))
        self.assertLess(self.evaluated(second)[0], 20)
        pets = self.pictures("pets", 120)
        self.ck = self.folder / "ck-pets"
        self.assert_ok(self.train("lenet", pets, "--checkpoint-dir", self.ck))
        names = (self.ck / "testing.txt").read_text().splitlines()
        (pets / names[0]).unlink()
        tested, said = self.evaluated(pets)
        self.assertEqual(tested, len(names) - 1)
        self.assertNotIn("--data", said)

    def test_samples_that_the_first_weights_had_learnt_are_known_again(self):
        rows = [f"{self.numbers.random()},{i % 2}" for i in range(200)]
        first = self.table("a,label", rows, "first.csv")
        other = self.table("a,label", [f"{self.numbers.random()},{i % 2}" for i in range(200)], "other.csv")
        self.assert_ok(self.train("mlp", first, "--checkpoint-dir", self.folder / "before"))
        drawn = len((self.folder / "before" / "testing.txt").read_text().splitlines())
        for name, seed in (("before", 1), ("before/model.ckpt-2", 2)):
            self.ck = self.folder / f"ck{seed}"
            said = self.assert_ok(self.train("mlp", other, "--init-from", self.folder / name, "--seed", seed, "--checkpoint-dir", self.ck)).err
            self.assertNotIn("learnt", said)
            tested, said = self.evaluated(first)
            self.assertEqual(tested, drawn if seed == 1 else 200)  # with another seed others are drawn
            if seed == 2:
                self.assertIn(f"the training has learnt from {200 - drawn} of these 200 samples", said)
            self.assertLess(self.evaluated(other)[0], 40)

    def test_pictures_that_were_renamed_in_place_are_told(self):
        pets = self.pictures("pets", 120)
        self.assert_ok(self.train("lenet", pets, "--checkpoint-dir", self.ck))
        for picture in sorted(pets.rglob("*.png")):
            picture.rename(picture.with_name(f"n{picture.name}"))
        tested, said = self.evaluated(pets)
        self.assertEqual(tested, 120)
        self.assertRegex(said, r"the training has learnt from 1\d\d of these 120 samples")

    def test_other_tables_of_rows_that_are_alike_are_not_known_again(self):
        def rows(seed):
            numbers = random.Random(seed)
            return [",".join("1" if numbers.random() < 0.05 else "0" for _ in range(3)) + f",{'fault' if numbers.random() < 0.1 else 'ok'}" for _ in range(60)]

        self.assert_ok(self.train("mlp", self.table("a,b,c,label", rows(1)), "--checkpoint-dir", self.ck))
        for seed in range(2, 8):
            self.table("a,b,c,label", rows(seed)).rename(self.folder / "other.csv")
            tested, said = self.evaluated(self.folder / "other.csv")
            self.assertEqual(tested, 60, seed)
            self.assertNotIn("of the training", said)
            self.assertNotIn("has learnt", said)

    def test_a_copy_of_few_rows_is_known_again(self):
        table = self.table("a,label", [f"{self.numbers.random()},{i % 2}" for i in range(8)])
        self.assert_ok(self.train("mlp", table, "--checkpoint-dir", self.ck))
        shutil.copy(table, self.folder / "copy.csv")
        self.assertIn("the training has learnt from 8 of these 8 samples", self.evaluated(self.folder / "copy.csv")[1])

    def test_rows_are_known_again_in_a_test_table(self):
        rows = [f"{self.numbers.random()},{i % 2}" for i in range(60)]
        self.assert_ok(self.train("mlp", self.table("a,label", rows), "--checkpoint-dir", self.ck))
        folder = self.folder / "pair"
        folder.mkdir()
        for name in ("train.csv", "test.csv"):
            (folder / name).write_text("a,label\n" + "".join(row + "\n" for row in rows[::-1]))
        tested, said = self.evaluated(folder)
        self.assertEqual(tested, 60)
        self.assertRegex(said, r"the training has learnt from 5\d of these 60 samples")

    def test_a_label_that_its_name_alone_has_chosen_is_told(self):
        points = [f"{i % 5},{i % 3},{('blue', 'red')[i % 2]}" for i in range(60)]
        result = self.assert_ok(self.train("mlp", self.table("x,y,colour", points), ranks=2))
        self.assertEqual(result.err.count('the label is column 2 "y" by its name, and not the last one, column 3 "colour", which --target colour takes'), 1, result.err)
        for header, options in (("x,y,colour", ("--target", "colour")), ("x,y,colour", ("--ignore", "colour")), ("y,a,b", ("--target", "y")), ("a,b,y", ()),
                                ("label,a,b", ())):
            rows = points if "colour" in header else [f"{i % 3},{i % 5},{i % 2}" for i in range(60)]
            self.assertNotIn("by its name, and", self.assert_ok(self.train("mlp", self.table(header, rows), *options)).err)

    def test_what_becomes_of_empty_cells_is_told_of_numbers_and_words_apart(self):
        table = self.table("a,word,label", [f"{'' if i == 5 else i % 5},{'' if i % 20 == 7 else 'uvw'[i % 3]},{i % 2}" for i in range(60)])
        said = self.assert_ok(self.train("mlp", table, "--missing", "mean")).err
        self.assertIn("1 empty cell: mean (such as line 7, column 1), 3 empty cells among words: none of the column's words (such as line 9, column 2)", said)
        table = self.table("a,word,label", [f"{i % 5},{'' if i % 20 == 7 else 'uvw'[i % 3]},{i % 2}" for i in range(60)])
        self.assert_one_line(self.train("mlp", table), 1, "an empty cell; --missing mean or zero takes it as none of the column's words")

    def test_data_that_are_not_there_are_told_from_those_of_another_kind(self):
        self.assert_one_line(self.train("mlp", self.folder / "none.csv"), 1, "none.csv: there is no such file or folder")
        (self.folder / "t.csv.gz").write_bytes(b"packed")
        self.assert_one_line(self.train("mlp", self.folder / "t.csv.gz"), 1, "t.csv.gz: a table with another ending; unpack it")
        (self.folder / "cat.jpg").write_bytes(bytes(5000))
        self.assert_one_line(self.train("gpt", self.folder / "cat.jpg"), 1, "cat.jpg: a picture, and the model learns from a text")

    def test_one_class_alone_is_told_by_its_word(self):
        self.assert_one_line(self.train("mlp", self.table("a,label", ["1,ja", "2,ja", "3,ja"])), 1, 't.csv: one class: all 3 labels are "ja"')

    def test_a_class_without_pictures_may_be_another_folder(self):
        self.pictures("all/pets")
        (self.folder / "all" / "tables").mkdir()
        self.assert_one_line(self.train("lenet", self.folder / "all"), 1, "all/tables: a class without images", "or --data names the wrong folder")


if __name__ == "__main__":
    unittest.main()
