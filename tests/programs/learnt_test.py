#!/usr/bin/env python3
"""What kolo-train says of samples for testing that stand in the training, too: in other data, in parts, in the same table, and through --init-from."""
import random
import shutil
import struct
import unittest

from data_files import DataFiles
from data_test import npy

LEARNT = "the training has learnt from"
FOR_TESTING = "samples for testing, as where rows were moved"


class Learnt(DataFiles):
    def rows(self, count):
        return [f"{self.numbers.random()},{i % 2}" for i in range(count)]

    def drawn_rows(self, rows):
        """Those that the folder's training has drawn, and the others."""
        lines = {int(name.split(":")[1]) - 2 for name in (self.ck / "testing.txt").read_text().splitlines()}
        return [row for i, row in enumerate(rows) if i in lines], [row for i, row in enumerate(rows) if i not in lines]

    def test_test_data_that_were_cut_from_the_trainings_are_told(self):
        rows = self.rows(200)
        self.assert_ok(self.train("mlp", self.table("a,label", rows), "--checkpoint-dir", self.ck))
        _, learnt = self.drawn_rows(rows)
        for count in (20, 60, 90):
            cut = self.table("a,label", learnt[:count], "cut.csv")
            with self.subTest(count=count):
                tested, said = self.evaluated(cut)
                self.assertEqual(tested, count)
                self.assertIn(f"{LEARNT} {count} of these {count} samples: the accuracy is not that of new samples", said)
        few = self.table("a,label", learnt[:3] + self.rows(400), "few.csv")
        self.assertIn(f"{LEARNT} 3 of these 403 samples", self.evaluated(few)[1])
        self.assertNotIn(LEARNT, self.evaluated(self.table("a,label", self.rows(100), "new.csv"))[1])

    def test_a_few_rows_of_a_large_training_are_counted(self):
        rows = self.rows(20000)
        self.assert_ok(self.train("mlp", self.table("a,label", rows), "--checkpoint-dir", self.ck))
        drawn, learnt = self.drawn_rows(rows)
        cut = self.table("a,label", learnt[5000:5100] + drawn[:50] + self.rows(900), "cut.csv")
        self.assertIn(f"{LEARNT} 100 of these 1050 samples", self.evaluated(cut)[1])

    def kept(self):
        (file,) = self.ck.glob("learnt-*.u64")
        return file

    def test_a_folder_without_its_file_of_samples_gives_an_estimate(self):
        rows = self.rows(200)
        table = self.table("a,label", rows)
        self.assert_ok(self.train("mlp", table, "--checkpoint-dir", self.ck))
        self.assertEqual(self.kept().stat().st_size, 8 * len(self.drawn_rows(rows)[1]))
        self.assert_ok(self.ask("--steps", 3))
        moved = self.table("a,label", rows[::-1], "moved.csv")
        whole = self.kept().read_bytes()
        for damage in (lambda file: file.write_bytes(whole[:-8]), lambda file: file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1])), lambda file: file.unlink()):
            damage(self.kept())
            said = self.evaluated(moved)[1]
            self.assertRegex(said, r"learnt-\w+\.u64: (missing|it is not as it was written); how many samples .* is estimated by 64 of its samples")
            self.assertIn("64 of 64 samples that the training had are among these 200, so that it may have learnt from about", said)
        self.assert_ok(self.ask("--steps", 4))
        self.assertEqual(self.kept().read_bytes(), whole)

    def test_a_passage_of_a_text_is_found_within_its_lines(self):
        words = ["".join(self.numbers.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(self.numbers.randrange(2, 9))) for _ in range(2000)]

        def prose(count):
            return " ".join(self.numbers.choice(words) for _ in range(count))

        lines = [prose(500) for _ in range(20)]  # of some 3 kB
        text = self.folder / "text.txt"
        text.write_text("\n".join(lines))
        sizes = ("--width", 8, "--heads", 1, "--layers", 1, "--context", 16)
        self.assert_ok(self.train("gpt", text, *sizes, "--checkpoint-dir", self.ck))
        passage = lines[7][700:1750]
        for other, is_told in ((prose(800) + " " + passage + prose(800), True), (prose(300) + passage.replace(" ", "\n") + prose(300), False), (prose(2000), False), (prose(20), False), (lines[19][1500:], False), (lines[3][:100] + prose(2000), False)):
            with self.subTest(begin=other[:20]):
                (self.folder / "other.txt").write_text(other)
                said = self.assert_ok(self.ask("--evaluate", "--data", self.folder / "other.txt")).err
                self.assertEqual("the training has learnt from about" in said, is_told, said)
                if is_told:
                    self.assertRegex(said, r"the training has learnt from about (8|9|10)(\.\d)? % of this text: the accuracy is not that of a new text")
        moved = self.folder / "moved.txt"
        moved.write_text("\n".join(lines[::-1]))
        self.assertRegex(self.assert_ok(self.ask("--evaluate", "--data", moved)).err, r"the training has learnt from about (8\d|9\d) % of this text")
        self.assertRegex(self.assert_ok(self.ask("--data", moved, "--steps", 3)).err, r"the training has learnt from about (9\d|100) % of this text for testing, as where")

    def test_lines_of_a_text_that_were_drawn_at_random_are_told(self):
        def lines(count):
            return [" ".join("".join(self.numbers.choice("abcdefgh") for _ in range(self.numbers.randrange(3, 9))) for _ in range(6)) for _ in range(count)]

        learnt, other = lines(1000), self.folder / "other.txt"
        text = self.folder / "text.txt"
        text.write_text("\n".join(learnt))
        self.assert_ok(self.train("gpt", text, "--width", 8, "--heads", 1, "--layers", 1, "--context", 16, "--checkpoint-dir", self.ck))
        for asked, is_told in ((self.numbers.sample(learnt[:850], 300), True), (self.numbers.sample(learnt[:850], 200) + lines(100), True), (lines(300), False), (learnt[:2] + lines(300), False)):
            self.numbers.shuffle(asked)
            other.write_text("\n".join(asked))
            said = self.assert_ok(self.ask("--evaluate", "--data", other)).err
            self.assertEqual("64 lines that the training had are among these" in said, is_told, said)
            self.assertNotIn(LEARNT, said, "no passage is whole")
        self.numbers.shuffle(learnt)
        other.write_text("\n".join(learnt))
        self.assertRegex(self.assert_ok(self.ask("--data", other, "--steps", 3)).err, rf"{LEARNT} about \d+ of these \d+ lines for testing, as where rows were moved")

    def test_samples_of_several_starts_are_counted_together(self):
        first, second = self.rows(200), self.rows(200)
        self.assert_ok(self.train("mlp", self.table("a,label", first, "first.csv"), "--checkpoint-dir", self.ck))
        self.assert_ok(self.ask("--data", self.table("a,label", second, "second.csv"), "--steps", 3))
        both = self.table("a,label", first + second, "both.csv")
        tested, said = self.evaluated(both)
        self.assertEqual(tested, 400)
        self.assertRegex(said, rf"{LEARNT} 3\d\d of these 400 samples")

    def test_coarse_rows_that_coincide_by_chance_are_not_told(self):
        def coarse(seed, count):
            numbers = random.Random(seed)
            return [f"{numbers.choice('KSNT')},{numbers.choice('SML')},{numbers.choice('yn')},{numbers.randrange(18, 80)},{numbers.choice(('buys', 'leaves'))}" for _ in range(count)]

        header, rows = "city,size,member,age,label", coarse(1, 600)
        self.assert_ok(self.train("mlp", self.table(header, rows), "--checkpoint-dir", self.ck))
        for count in (300, 600, 2000, 6000):
            other = self.table(header, coarse(count, count), "other.csv")
            with self.subTest(count=count):
                self.assertNotIn(LEARNT, self.evaluated(other)[1])
                shutil.copytree(self.ck, self.folder / "on")
                said = self.assert_ok(self.train("mlp", other, "--init-from", self.folder / "on", "--checkpoint-dir", self.folder / "new")).err
                self.assertNotIn(FOR_TESTING, said)
                shutil.rmtree(self.folder / "on"), shutil.rmtree(self.folder / "new")
        moved = self.table(header, rows[::-1], "moved.csv")
        self.assertRegex(self.evaluated(moved)[1], rf"{LEARNT} 5\d\d of these 600 samples")

    def test_copies_in_a_table_are_no_chance(self):
        rows, new, pair = self.rows(200), self.rows(100), self.folder / "pair"
        pair.mkdir()
        for name, learnt in (("twice", 2 * rows), ("drawn", [self.numbers.choice(rows) for _ in rows])):
            self.ck = self.folder / name
            self.table("a,label", learnt, "pair/train.csv")
            for test in (sorted(set(learnt)), new):
                self.table("a,label", test, "pair/test.csv")
                said = self.assert_ok(self.train("mlp", pair, steps=1)).err
                self.assertEqual(f"{len(test)} of {len(test)} samples for testing stand in train.csv, too" in said, test != new, said)
            self.assert_ok(self.train("mlp", self.table("a,label", learnt, f"{name}.csv"), "--checkpoint-dir", self.ck))
            for test in (sorted(set(learnt)), sorted(set(learnt))[::2], learnt[:120], new, 2 * new):
                said = self.evaluated(self.table("a,label", test, "other.csv"))[1]
                self.assertEqual(LEARNT in said, test[0] in learnt, said)

    def test_a_rare_class_that_was_copied_before_is_no_chance(self):
        often, rare = self.rows(400), [row.rsplit(",", 1)[0] + ",2" for row in self.rows(20)]
        for copies in (8, 20):
            said = self.assert_ok(self.train("mlp", self.table("a,label", often + copies * rare, f"{copies}.csv"), steps=1)).err
            self.assertRegex(said, r"rows for testing by the seed 1, \d+ of these", f"{copies} copies")

    def test_pixels_are_the_same_as_bytes_and_as_numbers_up_to_1(self):
        learnt, new = ([self.numbers.randbytes(784) for _ in range(60)] for _ in range(2))

        def as_bytes(name, images, split):
            return self.npy(self.folder / name, images, split)

        def as_floats(name, images, split):
            folder = as_bytes(name, images, split)
            (folder / f"x_{split}.npy").write_bytes(npy("<f4", f"({len(images)}, 784)", struct.pack(f"<{784 * len(images)}f", *(pixel / 255 for image in images for pixel in image))))
            return folder

        for write, other in ((as_bytes, as_floats), (as_floats, as_bytes)):
            self.ck = self.folder / f"ck-{write.__name__}"
            self.assert_ok(self.train("mlp", write(write.__name__, learnt, "train"), "--checkpoint-dir", self.ck))
            for name, images in (("learnt", learnt), ("new", new)):
                said = self.evaluated(other(f"{name}-{write.__name__}", images, "test"))[1]
                self.assertEqual(f"{LEARNT} 60 of these 60 samples" in said, images == learnt, said)

    def test_doubled_arrays_of_pictures_are_no_chance(self):
        learnt, new = ([bytes(self.numbers.choice((0, 0, 0, 90, 255)) for _ in range(784)) for _ in range(60)] for _ in range(2))
        both = self.folder / "both"
        self.npy(both, 2 * learnt, "train")
        for tested in (learnt, new):
            said = self.assert_ok(self.train("mlp", self.npy(both, tested, "test"))).err
            self.assertEqual("60 of 60 samples for testing stand in x_train.npy, too" in said, tested == learnt, said)

    def test_rows_of_a_sensor_that_is_off_are_chance(self):
        def measured(count):
            return [f"{self.numbers.random()},{self.numbers.random()},{i % 2}" if i % 3 else "0,0,0" for i in range(count)]

        header = "a,b,label"
        self.assert_ok(self.train("mlp", self.table(header, measured(300)), "--checkpoint-dir", self.ck))
        self.assertNotIn(LEARNT, self.evaluated(self.table(header, measured(200), "other.csv"))[1])

    def test_rows_of_idle_machines_are_chance(self):
        def measured(count, machines, name):
            rows = []
            for _ in range(count):
                machine = f"{name}{self.numbers.randint(1, machines)}"
                rows.append(f"{machine},0,0,0,off" if self.numbers.random() < 0.3 else f"{machine},{self.numbers.gauss(1500, 90):.1f},{self.numbers.gauss(60, 5):.2f},{self.numbers.gammavariate(2, 1):.3f},on")
            return rows

        header = "machine,rpm,temp,vibration,label"
        for machines, name in ((4, ""), (8, ""), (8, "M")):
            self.ck, rows = self.folder / f"ck-{machines}{name}", measured(1000, machines, name)
            said = self.assert_ok(self.train("mlp", self.table(header, rows), "--checkpoint-dir", self.ck)).err
            self.assertNotIn("stand in the training", said)
            new = measured(400, machines, name)
            self.assertNotIn(LEARNT, self.evaluated(self.table(header, new, "new.csv"))[1])
            self.assertIn(LEARNT, self.evaluated(self.table(header, self.drawn_rows(rows)[1][:200] + new[:200], "half.csv"))[1])

    def test_new_rows_of_a_subgroup_are_not_told(self):
        header = "class,sex,age,siblings,parents,port,label"

        def passengers(numbers, count):
            rows = []
            for _ in range(count):
                sex = numbers.choices(("male", "female"), (65, 35))[0]
                rows.append((numbers.choices((1, 2, 3), (24, 20, 56))[0], sex, int(min(75, max(1, numbers.gauss(30, 12)))), numbers.choices((0, 1, 2), (70, 24, 6))[0],
                             numbers.choices((0, 1, 2), (76, 14, 10))[0], numbers.choices("SCQ", (72, 19, 9))[0], int(numbers.random() < (0.75 if sex == "female" else 0.2))))
            return rows

        def said_of(rows):
            return self.evaluated(self.table(header, [",".join(map(str, row)) for row in rows], "asked.csv"))[1]

        def men(rows):
            return [row for row in rows if row[:2] == (3, "male")]

        for seed in (1, 4, 6, 7, 8):
            self.ck, rows = self.folder / f"ck-{seed}", passengers(random.Random(seed), 1300)
            self.assert_ok(self.train("mlp", self.table(header, [",".join(map(str, row)) for row in rows[:900]]), "--normalize", "--checkpoint-dir", self.ck))
            self.assertNotIn(LEARNT, said_of(rows[900:]))
            self.assertNotIn(LEARNT, said_of(men(rows[900:])))
            learnt = self.drawn_rows(rows[:900])[1]
            self.assertIn(f"{LEARNT} 147 of these 147 samples", said_of(men(learnt)[:147]))
            self.assertIn(LEARNT, said_of(learnt[:200] + rows[900:1100]))

    def test_first_weights_that_have_learnt_what_is_drawn_for_testing_are_told(self):
        rows, before = self.rows(200), self.folder / "before"
        table = self.table("a,label", rows)
        self.assert_ok(self.train("mlp", table, "--checkpoint-dir", before))
        moved = self.table("a,label", rows[::-1], "moved.csv")
        new = self.table("a,label", self.rows(200), "new.csv")
        for data, seed, is_told in ((table, 7, True), (moved, 1, True), (table, 1, False), (new, 7, False)):
            self.ck = self.folder / f"ck-{data.stem}-{seed}"
            with self.subTest(data=data, seed=seed):
                trained = self.assert_ok(self.train("mlp", data, "--init-from", before, "--seed", seed, "--checkpoint-dir", self.ck)).err
                went_on = self.assert_ok(self.ask("--steps", 3)).err
                for said in (trained, went_on, self.evaluated(data)[1]):
                    self.assertEqual(FOR_TESTING in said, is_told, said)
        self.ck = self.folder / "ck-t-7"
        shutil.copy(table, self.folder / "copy.csv")
        self.assertIn(FOR_TESTING, self.evaluated(self.folder / "copy.csv")[1])

    def test_rows_of_a_test_table_that_the_training_table_holds_are_counted(self):
        rows, pair = self.rows(200), self.folder / "pair"
        pair.mkdir()

        def trained(test, train=rows, header="a,label"):
            self.table(header, train, "pair/train.csv"), self.table(header, test, "pair/test.csv")
            return self.assert_ok(self.train("mlp", pair)).err

        for test, count in ((rows, 200), (rows[:80], 80), (rows[:5] + self.rows(95), 5)):
            self.assertEqual(trained(test).count(f"test.csv: {count} of {len(test)} samples for testing stand in train.csv, too"), 1)
        coarse = [f"{self.numbers.choice('KSNT')},{self.numbers.randrange(9)},{self.numbers.choice('yn')}" for _ in range(600)]
        for said in (trained(self.rows(100)), trained(rows[:2] + self.rows(300)), trained(coarse[:100], coarse[100:], "a,b,label")):
            self.assertNotIn("stand in", said)

    def test_rows_that_stand_twice_in_a_table_and_are_drawn_are_counted(self):
        rows = self.rows(200)
        coarse = [f"{self.numbers.randrange(100)},{i % 2}" for i in range(300)]
        for table, is_told in ((rows, False), ([row for row in rows for _ in range(2)], True), (rows + rows[:6], False), (coarse, False)):
            data = self.table("a,label", table)
            said = self.assert_ok(self.train("mlp", data, "--checkpoint-dir", self.ck)).err
            drawn, others = self.drawn_rows(table)
            shared = sum(row in others for row in drawn)
            self.assertEqual(f"{shared} of these stand in the training, too" in said, is_told, said)
            self.assertEqual("stand in the training, too" in self.evaluated(data)[1], is_told)
            shutil.rmtree(self.ck)

    def test_copies_of_pictures_that_are_drawn_are_counted(self):
        pets = self.pictures("pets", 40)
        for picture in sorted(pets.rglob("*.png")):
            shutil.copy(picture, picture.with_name(f"copy of {picture.name}"))
        said = self.assert_ok(self.train("lenet", pets, "--checkpoint-dir", self.ck)).err
        drawn = (self.ck / "testing.txt").read_text().splitlines()
        originals = [name.replace("copy of ", "") for name in drawn]
        shared = sum(originals.count(name) == 1 for name in originals)
        self.assertGreater(shared, 2)
        self.assertIn(f"{len(drawn)} of 80 pictures for testing by the seed 1, {shared} of these stand in the training, too", said)
        self.assertIn(f"{shared} of these stand in the training, too", self.evaluated(pets)[1])
        self.assertNotIn("stand in", self.assert_ok(self.train("lenet", self.pictures("new", 40))).err)

    def test_pictures_of_a_part_for_testing_that_the_training_holds_are_counted(self):
        pets, parts = self.pictures("pets", 100), self.folder / "parts"
        shutil.copytree(pets, parts / "train")
        new = self.pictures("new", 100)
        for test, count in ((pets, 100), (new, 0)):
            shutil.copytree(test, parts / "test")
            for i, picture in enumerate(sorted((parts / "test").rglob("*.png"))):
                picture.rename(picture.with_name(f"x{i}.png"))
            said = self.assert_ok(self.train("lenet", parts, "--checkpoint-dir", self.ck)).err
            self.assertEqual(f"{count} of 100 samples for testing stand in" in said, count > 0, said)
            self.assertEqual("stand in" in said, count > 0, said)
            if count > 0:
                shutil.rmtree(parts / "test"), shutil.rmtree(self.ck)
        for data, is_told in ((parts / "train", True), (pets, True), (parts, False), (self.pictures("others", 100), False)):
            with self.subTest(data=data):
                tested, said = self.evaluated(data)
                self.assertEqual(tested, 100)
                self.assertEqual(f"{LEARNT} 100 of these 100 samples" in said, is_told, said)

    def test_an_evaluation_of_the_own_folder_tells_what_the_training_has_learnt(self):
        rows, pair = self.rows(200), self.folder / "pair"
        pair.mkdir()
        self.table("a,label", rows, "pair/train.csv")
        for name, test, is_told in (("same", rows, True), ("new", self.rows(100), False)):
            self.ck = self.folder / name
            self.table("a,label", test, "pair/test.csv")
            self.assert_ok(self.train("mlp", pair, "--checkpoint-dir", self.ck))
            self.assertEqual(f"{LEARNT} {len(test)} of these {len(test)} samples" in self.assert_ok(self.ask("--evaluate")).err, is_told)
            went_on = self.assert_ok(self.ask("--steps", 3)).err
            self.assertEqual("samples for testing stand in train.csv" in went_on, is_told)
            self.assertNotIn(LEARNT, went_on)
        self.ck = self.folder / "on"
        self.table("a,label", rows, "pair/test.csv"), self.table("a,label", self.rows(200), "pair/train.csv")
        for asked in (self.train("mlp", pair, "--init-from", self.folder / "same", "--checkpoint-dir", self.ck), self.ask("--evaluate")):
            self.assertIn(LEARNT, self.assert_ok(asked).err)

    def idx(self, folder, images, split):
        folder.mkdir(exist_ok=True)
        for kind, data in (("images-idx3", struct.pack(">4I", 2051, len(images), 28, 28) + b"".join(images)), ("labels-idx1", struct.pack(">2I", 2049, len(images)) + bytes(i % 10 for i in range(len(images))))):
            (folder / f"{split}-{kind}-ubyte").write_bytes(data)
        return folder

    def cifar(self, folder, images, name):
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.bin").write_bytes(b"".join(bytes([i % 10]) + image for i, image in enumerate(images)))
        return folder

    def npy(self, folder, images, split):
        folder.mkdir(exist_ok=True)
        (folder / f"x_{split}.npy").write_bytes(npy("|u1", f"({len(images)}, {len(images[0])})", b"".join(images)))
        (folder / f"y_{split}.npy").write_bytes(npy("|u1", f"({len(images)},)", bytes(i % 3 for i in range(len(images)))))
        return folder

    def test_samples_in_memory_are_known_again(self):
        kinds = (("mlp", 784, self.npy, "train", "test", "x_test.npy: ", "x_train.npy"),
                 ("mlp", 784, self.idx, "train", "t10k", "MNIST: ", "the training's part"),
                 ("resnet20", 3072, self.cifar, "data_batch_1", "test_batch", "CIFAR-10: ", "the training's part"))
        for model, size, write, train, test, name, part in kinds:
            self.ck = self.folder / f"ck-{train}-{test}"
            name = name.replace("MNIST", f"of-{test}")
            learnt, new = ([self.numbers.randbytes(size) for _ in range(100)] for _ in range(2))
            both = self.folder / f"of-{test}"
            write(both, learnt, train)
            for tested, count in ((learnt, 100), (learnt[:30] + new[:70], 30), (new, 0)):
                write(both, tested, test)
                shutil.rmtree(self.ck, ignore_errors=True)
                said = self.assert_ok(self.train(model, both, "--checkpoint-dir", self.ck)).err
                self.assertEqual(said.count("stand in"), count > 0, said)
                if count:
                    self.assertIn(f"{name}{count} of 100 samples for testing stand in {part}, too", said)
            for tested, hits in ((learnt, 100), (learnt[:50] + new[:50], 50), (new, None)):
                said = self.evaluated(write(self.folder / f"other-{test}", tested, test))[1]
                if hits:
                    self.assertIn(f"{LEARNT} {hits} of these 100 samples", said)
                else:
                    self.assertNotIn(LEARNT, said)
            self.assertNotIn(LEARNT, self.evaluated(both)[1])
            self.assertIn(LEARNT, self.assert_ok(self.train(model, write(write(self.folder / f"on-{test}", new, train), learnt, test), "--init-from", self.ck, "--checkpoint-dir", self.folder / f"on-ck-{test}")).err)

    def test_coarse_arrays_that_coincide_by_chance_are_not_told(self):
        def coarse(count):
            return [bytes(self.numbers.choice((0, 0, 1)) for _ in range(9)) for _ in range(count)]

        folder = self.npy(self.npy(self.folder / "coarse", coarse(400), "train"), coarse(200), "test")
        self.assertNotIn("stand in", self.assert_ok(self.train("mlp", folder, "--checkpoint-dir", self.ck)).err)
        self.assertNotIn(LEARNT, self.evaluated(self.npy(self.folder / "other", coarse(500), "test"))[1])


if __name__ == "__main__":
    unittest.main()
