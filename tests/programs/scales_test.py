#!/usr/bin/env python3
"""Numbers of quite another scale or unit than the training's are told, whatever holds them, and ordinary ones are not."""
import random
import struct
import unittest

from data_files import DataFiles
from data_test import npy, png


def idx(images):
    return struct.pack(">4I", 0x803, len(images), 28, 28) + b"".join(map(bytes, images))


class Scales(DataFiles):
    said = "its numbers are up to 1, and the model was trained on numbers up to 255; both must be of one scale"

    def digits(self, count=20):
        """Ten classes: as pictures in folders, and as MNIST's files."""
        pixels = [[self.numbers.randrange(256) for _ in range(784)] for _ in range(count)]
        mnist, photos = self.folder / "mnist", self.folder / "photos"
        mnist.mkdir()
        for split in ("train", "t10k"):
            (mnist / f"{split}-images-idx3-ubyte").write_bytes(idx(pixels))
            (mnist / f"{split}-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 0x801, count) + bytes(i % 10 for i in range(count)))
        for i, one in enumerate(pixels):
            path = photos / str(i % 10) / f"{i}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(png([one[28 * k:28 * k + 28] for k in range(28)]))
        return mnist, photos

    def test_pictures_and_digits_of_another_scale_than_the_arrays_are_told(self):
        mnist, photos = self.digits()
        labels = tuple(range(10))
        for name, scale in (("large", 1), ("right", 1 / 255)):
            self.ck = self.folder / f"ck-{name}"
            self.assert_ok(self.train("lenet", self.arrays(name, "<f4", scale, labels, count=20), "--checkpoint-dir", self.ck))
            check = self.assertIn if name == "large" else self.assertNotIn
            check(f"mnist: {self.said}", self.assert_ok(self.ask("--evaluate", "--data", mnist)).err)
            check(f"0/0.png: {self.said}", self.assert_ok(self.ask("--predict", photos / "0" / "0.png")).err)
            several = self.assert_ok(self.ask("--predict", photos)).err
            check(f"0/0.png and 19 other pictures: {self.said}", several)
            self.assertLessEqual(several.count(self.said), 1)
            check(self.said, self.assert_ok(self.ask("--predict", mnist / "t10k-images-idx3-ubyte")).err)
            (self.folder / "both").mkdir(exist_ok=True)
        self.ck = self.folder / "ck-mnist"
        said = self.assert_ok(self.train("lenet", mnist, "--checkpoint-dir", self.ck)).err
        self.assertNotIn("numbers are up to", said + self.assert_ok(self.ask("--predict", photos)).err)

    def test_a_table_of_another_scale_than_the_array_is_told(self):
        folder = self.folder / "rows"
        folder.mkdir()
        values = [self.numbers.uniform(-1, 1) for _ in range(120)]
        (folder / "x_train.npy").write_bytes(npy("<f4", "(40, 3)", struct.pack("<120f", *values)))
        (folder / "y_train.npy").write_bytes(npy("|u1", "(40,)", bytes(i % 2 for i in range(40))))
        self.assert_ok(self.train("mlp", folder, "--checkpoint-dir", self.ck))
        for factor in (1, 1000):
            rows = [",".join(f"{factor * value:.4f}" for value in values[3 * i:3 * i + 3]) + f",{i % 2}" for i in range(40)]
            table = self.table("a,b,c,label", rows)
            for result in (self.ask("--predict", table), self.ask("--evaluate", "--data", table)):
                self.assertEqual(result.err.count("each column must be in the unit"), factor > 1, result.err)
                self.assert_ok(result)
        several = self.assert_ok(self.ask("--predict", self.table("a,b,c,label", ["300,20,1000,0"]))).err
        self.assertEqual(several.count("each column must be in the unit"), 1, several)

    def test_a_column_of_an_array_in_another_unit_is_told(self):
        def folder(name, split, column=None, factor=1, count=60):
            made = self.folder / name
            made.mkdir(exist_ok=True)
            values = [self.numbers.uniform(0, scale) * (factor if k == column else 1) for _ in range(count) for k, scale in enumerate((1, 1000, 5))]
            (made / f"x_{split}.npy").write_bytes(npy("<f4", f"({count}, 3)", struct.pack(f"<{3 * count}f", *values)))
            (made / f"y_{split}.npy").write_bytes(npy("|u1", f"({count},)", bytes(i % 2 for i in range(count))))
            return made

        both = folder("both", "train")
        self.assert_ok(self.train("mlp", both, "--checkpoint-dir", self.ck))
        for column, factor, words in ((None, 1, None), (0, 1000, r"up to 9\d\d.* in column 1 \((1|0\.9\d*) in the training\)"), (1, 1 / 1000, r"up to 0\.9\d* in column 2 \(9\d\d")):
            new = folder(f"new{column}", "test", column, factor)
            folder("both", "test", column, factor)
            for result in (self.ask("--predict", new / "x_test.npy"), self.ask("--evaluate", "--data", new), self.ask("--evaluate"), self.train("mlp", both)):
                said = self.assert_ok(result).err
                self.assertEqual(said.count("each column must be in the unit"), words is not None, said)
                if words:
                    self.assertRegex(said, words)

    def test_pixels_of_a_table_and_rare_sums_are_of_their_own_unit(self):
        """The largest number of some rows says nothing where most are 0, and of a long tail."""
        numbers = random.Random(3)

        def row(i):
            border = [numbers.choice((1, 3, 128, 255)) if numbers.random() < 0.02 else 0 for _ in range(40)]
            middle = [numbers.randrange(256) for _ in range(10)]
            gain = numbers.choice((99999, 7298)) if numbers.random() < 0.02 else numbers.choice((0, 0, 0, 594, 792))
            long = round(numbers.lognormvariate(0, 2.5), 4)
            return ",".join(map(str, [*border, *middle, gain, long, i % 2]))

        header = ",".join([*(f"p{i}" for i in range(50)), "gain", "long", "label"])
        said = self.assert_ok(self.train("mlp", self.table(header, [row(i) for i in range(300)]), "--normalize", "--checkpoint-dir", self.ck)).err
        self.assertNotIn("in the training", said)
        for count in (1, 30, 100, 500):
            table = self.table(header, [row(i) for i in range(count)], f"later{count}.csv")
            for result in (self.ask("--predict", table), self.ask("--evaluate", "--data", table)):
                self.assertNotIn("in the training", self.assert_ok(result).err)
        unit = self.table(header, [",".join(str(1000 * float(one)) if i == 51 else one for i, one in enumerate(row(k).split(","))) for k in range(100)], "unit.csv")
        said = self.assert_ok(self.ask("--predict", unit)).err
        self.assertRegex(said, r'numbers are up to [\d.e+]+ in column 52 "long" \([\d.e+]+ in the training\); each column')

    def test_a_column_that_has_become_0_is_told(self):
        self.assert_ok(self.train("mlp", self.table("a,b,label", [f"{i % 7 + 1},{i % 5 + 1},{i % 2}" for i in range(60)]), "--checkpoint-dir", self.ck))
        later = self.table("a,b,label", [f"{i % 7 + 1},0,{i % 2}" for i in range(60)], "later.csv")
        self.assertIn('numbers are up to 0 in column 2 "b" (5 in the training)', self.assert_ok(self.ask("--predict", later)).err)
        few = self.table("a,b,label", ["1,0,1", "2,0,0"], "few.csv")
        self.assertNotIn("in the training", self.assert_ok(self.ask("--predict", few)).err)

    def said_of(self, table):
        """By a prediction and by an evaluation, which say the same."""
        predicted, evaluated = (self.assert_ok(self.ask(*asked)).err for asked in (("--predict", table), ("--evaluate", "--data", table)))
        for said in (predicted, evaluated):
            self.assertLessEqual(said.count("in the unit that"), 1, said)
        self.assertEqual("in the unit that" in predicted, "in the unit that" in evaluated)
        return predicted

    def test_columns_that_lie_outside_of_the_trainings_are_told(self):
        def rows(count, temperature=lambda x: x, way=lambda x: x, rain=lambda x: x):
            return [f"{temperature(self.numbers.uniform(-4, 45)):.3f},{way(self.numbers.uniform(1, 100)):.3f},{rain(self.numbers.choice((0, 0, 0, 1)) * self.numbers.uniform(1, 20)):.3f},{i % 2}" for i in range(count)]

        header = "temperature,way,rain,label"
        self.assert_ok(self.train("mlp", self.table(header, rows(200)), "--normalize", "--checkpoint-dir", self.ck))
        for change, words in (({"temperature": lambda x: x + 273}, r'numbers are 2\d\d.* to 31\d.* in column 1 "temperature" \(-3.* to 44.* in the training\); each column .*, and of numbers so far outside the model has learnt nothing'),
                              ({"way": lambda x: 15 * x}, r'numbers are .* to 1\d\d\d.* in column 2 "way" \(.* to 9\d.* in the training\)'),
                              ({"way": lambda x: -x}, r'numbers are -9\d.* to -.* in column 2 "way"'),
                              ({"rain": lambda x: 1000 * x}, r'numbers are up to 1\d\d\d\d.* in column 3 "rain"')):
            self.assertRegex(self.said_of(self.table(header, rows(100, **change), "unit.csv")), words)
            few = self.table(header, rows(10, **change), "few.csv")
            self.assertNotIn(" to 3", self.assert_ok(self.ask("--predict", few)).err)
        for change in ({}, {"temperature": lambda x: x / 3}, {"way": lambda x: x / 9}, {"rain": lambda x: 0}, {"temperature": lambda x: 1.3 * x + 5}):
            self.assertNotIn("in the training", self.said_of(self.table(header, rows(100, **change), "same.csv")))

    def test_fractions_for_percents_and_percents_for_fractions_are_told(self):
        def rows(count, factor, unknown=()):
            return [f"{9999 if i in unknown else factor * self.numbers.uniform(0, 1):.5f},{self.numbers.random()},{i % 2}" for i in range(count)]

        header = "share,b,label"
        for unknown in ((), (3, 77)):
            for trained, given in ((100, 1), (1, 100)):
                self.ck = self.folder / f"ck{trained}-{len(unknown)}"
                self.assert_ok(self.train("mlp", self.table(header, rows(300, trained, unknown)), "--normalize", "--checkpoint-dir", self.ck))
                for count, factor, is_told in ((100, given, True), (100, trained, False), (30, given, True), (30, trained / 8, False)):
                    said = self.said_of(self.table(header, rows(count, factor), "later.csv"))
                    self.assertEqual('in column 1 "share"' in said, is_told, (unknown, trained, count, factor, said))
                    if is_told:
                        mostly = unknown and trained == 1
                        self.assertRegex(said, rf'numbers are {"mostly " if mostly else ""}up to (1|0\.[89]\d*|100|[89]\d(\.\d+)?) in column 1')

    def test_codes_are_told_as_codes(self):
        def rows(count, zip_code, shop, height):
            return [f"{self.numbers.randrange(*zip_code)},{self.numbers.randrange(*shop)},{self.numbers.randrange(*height)},{self.numbers.random()},{i % 2}" for i in range(count)]

        header, berlin, munich = "postal,shop id,height,b,label", (10115, 14199), (80331, 81929)
        self.assert_ok(self.train("mlp", self.table(header, rows(200, berlin, (1, 40), (120, 200))), "--normalize", "--checkpoint-dir", self.ck))
        code, unit, nothing = "a code, such as an id or a postal code, is no measure", "each column must be in the unit", "the model has learnt nothing"
        for changed, words in (((berlin, (1, 40), (120, 200)), ()), ((munich, (1, 40), (120, 200)), (code, nothing, "column 1")), ((berlin, (90000, 90040), (120, 200)), (code, "column 2")),
                               ((berlin, (1, 40), (1200, 2000)), (unit, nothing, "column 3")), ((munich, (1, 40), (1200, 2000)), (code, unit, nothing, "column 1", "column 3"))):
            said = self.assert_ok(self.ask("--predict", self.table(header, rows(50, *changed), "later.csv"))).err
            for word in (code, unit, nothing, "column 1", "column 2", "column 3"):
                self.assertEqual(word in said, word in words, (word, said))

    def test_names_of_codes_are_known_in_capitals_too(self):
        for name, is_code in (("userId", True), ("customerID", True), ("Zip", True), ("humidity", False), ("Idle", False)):
            self.ck = self.folder / f"ck-{name}"
            self.assert_ok(self.train("mlp", self.table(f"{name},a,label", [f"{7 * i % 50},{i % 11}.5,{i % 2}" for i in range(60)]), "--checkpoint-dir", self.ck))
            said = self.said_of(self.table(f"{name},a,label", [f"{9000 + 7 * i % 50},{i % 11}.5,{i % 2}" for i in range(60)], "later.csv"))
            self.assertIn(f'column 1 "{name}"', said)
            self.assertEqual("a code, such as an id" in said, is_code, said)

    def test_a_number_that_stands_for_none_is_told(self):
        def rows(number, one_of):
            return [f"{number if i % one_of == 0 else round(self.numbers.uniform(20, 30), 1)},{self.numbers.random()},{i % 2}" for i in range(60)]

        self.assert_ok(self.train("mlp", self.table("bmi,b,label", rows(25, 60)), "--normalize", "--checkpoint-dir", self.ck))
        for number, one_of, is_told in ((-999, 3, True), (0, 3, True), (999, 20, True), (-999, 60, False), (33, 3, False), (25, 3, False)):
            said = self.said_of(self.table("bmi,b,label", rows(number, one_of), "later.csv"))
            self.assertEqual(f'numbers are {number} in {60 // one_of} of 60 rows of column 1 "bmi" (20' in said, is_told, (number, one_of, said))
            self.assertEqual("in the training" in said, is_told, said)
        self.ck = self.folder / "ck-with"
        self.assert_ok(self.train("mlp", self.table("bmi,b,label", rows(-999, 4)), "--normalize", "--checkpoint-dir", self.ck))
        self.assertNotIn("in the training", self.said_of(self.table("bmi,b,label", rows(-999, 3), "later.csv")))

    def test_numbers_that_are_whole_in_some_rows_may_be_whole_in_all(self):
        """Doses in quarters, of an arm of 0 and 1; and cents of millions, which f32 itself does not hold."""
        quarters = [f"{i % 9},{0.25 * (i % 5)},{1e6 + 7312.37 * i:.2f},{i % 2}" for i in range(300)]
        self.assert_ok(self.train("mlp", self.table("a,dose,revenue,label", quarters), "--normalize", "--checkpoint-dir", self.ck))
        later = [f"{i % 9},{i % 2},{8.39e6 + 1001.37 * i:.2f},{i % 2}" for i in range(40)]
        self.assertNotIn("as if they were rounded", self.said_of(self.table("a,dose,revenue,label", later, "later.csv")))

    def test_dates_and_numbers_of_rows_that_go_on_are_not_told(self):
        def rows(first, count):
            return [f"{i},{2000 + i // 50},{20200100 + i % 28 + 100 * (i // 60)},{1600000000 + 60 * i},{i % 7},{i % 2}" for i in range(first, first + count)]

        header = "row,year,day,time,a,label"
        self.assert_ok(self.train("mlp", self.table(header, rows(0, 100)), "--normalize", "--checkpoint-dir", self.ck))
        for first, count in ((100, 50), (100, 1000), (110, 100)):
            self.assertNotIn("in the training", self.said_of(self.table(header, rows(first, count), "later.csv")))

    def test_ordinary_tables_are_not_told(self):
        numbers = random.Random(7)

        def row(i):
            gain = numbers.paretovariate(0.9) if numbers.random() < 0.1 else 0
            return ",".join(map(str, [numbers.lognormvariate(0, 2), numbers.paretovariate(0.9), int(numbers.expovariate(1 / 3)), int(numbers.random() < 0.05), gain,
                                      numbers.gauss(0, 1), numbers.choice((0, 0, 1, 200)), i % 2]))

        for count in (5, 40, 600):
            self.ck = self.folder / f"ck-{count}"
            self.assert_ok(self.train("mlp", self.table("a,b,c,d,e,f,g,label", [row(i) for i in range(count)]), "--normalize", "--checkpoint-dir", self.ck))
            for later in (2, 25, 100, 2000):
                self.assertNotIn("in the training", self.said_of(self.table("a,b,c,d,e,f,g,label", [row(i) for i in range(later)], "later.csv")))

    def test_numbers_to_find_in_another_unit_are_told(self):
        def rows(count, factor=1):
            return [f"{self.numbers.uniform(0, 9):.3f},{factor * self.numbers.uniform(100, 900):.4f}" for _ in range(count)]

        first = self.table("size,price", rows(200))
        said = self.assert_ok(self.train("mlp", first, "--normalize", "--checkpoint-dir", self.ck)).err
        self.assertNotIn("in the training", said)
        words = r'{}, numbers to find: numbers are .* in column 2 "price" \(.* in the training\); each column'
        for factor, is_told in ((1, False), (0.001, True), (15, True)):
            later = self.table("size,price", rows(100, factor), f"later{factor}.csv")
            for result in (self.ask("--evaluate", "--data", later), self.train("mlp", later, "--init-from", self.ck, "--checkpoint-dir", self.folder / f"on{factor}")):
                self.assert_ok(result)
            said = self.ask("--evaluate", "--data", later).err
            self.assertEqual(said.count("in the unit that"), is_told, said)
            if is_told:
                self.assertRegex(said, words.format(later.name))
                self.assertEqual(self.assert_ok(self.ask("--data", later, "--steps", 3)).err.count("in the unit that"), 1)

    def test_arrays_of_pixels_from_minus_1_on_are_told(self):
        pixels = [self.numbers.randrange(256) for _ in range(40 * 784)]

        def images(name, scale, split="test", first=0, kind="<f4"):
            folder = self.folder / name
            folder.mkdir(exist_ok=True)
            data = bytes(pixels) if kind == "|u1" else struct.pack(f"<{len(pixels)}f", *(first + scale * pixel / 255 for pixel in pixels))
            (folder / f"x_{split}.npy").write_bytes(npy(kind, "(40, 28, 28)", data))
            (folder / f"y_{split}.npy").write_bytes(npy("|u1", "(40,)", bytes(i % 3 for i in range(40))))
            return folder

        learnt = {"bytes": images("bytes", 1, "train", kind="|u1"), "signs": images("signs", 2, "train", -1)}
        tested = {"bytes": images("bytes-test", 1), "signs": images("signs-test", 2, first=-1)}
        for name, folder in learnt.items():
            self.ck = self.folder / f"ck-{name}"
            self.assert_ok(self.train("lenet", folder, "--checkpoint-dir", self.ck))
            for other, test in tested.items():
                for asked in (("--evaluate", "--data", test), ("--predict", test / "x_test.npy")):
                    said = self.assert_ok(self.ask(*asked)).err
                    here, there = ("-1", "0") if name == "bytes" else ("0", "-1")
                    self.assertEqual(f": its numbers start at {here}, and the training's were {there} to 1; both" in said, name != other, said)

    def test_pixels_that_a_mean_and_a_deviation_have_moved_are_told(self):
        learnt = self.arrays("learnt", "|u1", 1, count=40)
        normal = self.folder / "normal"
        for split in ("train", "test"):
            self.arrays("normal", "<f4", 1, split=split, count=40)
            pixels = [self.numbers.choice((0, 0, self.numbers.randrange(256))) for _ in range(40 * 784)]
            (normal / f"x_{split}.npy").write_bytes(npy("<f4", "(40, 28, 28)", struct.pack(f"<{len(pixels)}f", *((pixel / 255 - 0.1307) / 0.3081 for pixel in pixels))))
        for folder, other, words in ((learnt, normal, r"start at -0\.42\d*, and the training's were 0 to"),
                                     (normal, self.arrays("bytes", "|u1", 1, split="test", count=40), r"start at 0, and the training's were -0\.42\d* to")):
            self.ck = self.folder / f"ck-{folder.name}"
            self.assert_ok(self.train("lenet", folder, "--checkpoint-dir", self.ck))
            self.assertRegex(self.assert_ok(self.ask("--evaluate", "--data", other)).err, words)
        self.assertNotIn("trained on numbers", self.assert_ok(self.ask("--evaluate")).err)

    def test_whole_numbers_that_go_on_are_not_told(self):
        header = "month,quarter,label"
        self.assert_ok(self.train("mlp", self.table(header, [f"{i % 5 + 1},{i % 2 + 1},{i % 2}" for i in range(60)]), "--checkpoint-dir", self.ck))
        later = self.table(header, [f"{i % 7 + 6},{(3, 4, 4)[i % 3]},{i % 2}" for i in range(60)], "later.csv")
        self.assertNotIn("in the training", self.said_of(later))
        far = self.table(header, [f"{i % 5 + 13},1,{i % 2}" for i in range(60)], "far.csv")
        self.assertIn('column 1 "month" (1 to 5 in the training)', self.said_of(far))

    def test_more_classes_than_a_million_are_refused(self):
        table = self.table("a,label", [f"{i},{2000000000 * (i % 2)}" for i in range(30)])
        self.assert_one_line(self.train("mlp", table, "--loss", "softmax"), 1, "labels up to 2000000000 would be 2000000001 classes", "--loss mse finds numbers")
        codes = self.table("a,label", [f"{i},{(10000, 11554, 10100)[i % 3]}" for i in range(60)])
        self.assert_one_line(self.train("mlp", codes), 1, "--loss softmax takes them for 11555 classes")

    def test_tables_of_many_columns_are_read_column_by_column(self):
        columns = 3000
        header = ",".join([*(f"g{i}" for i in range(columns)), "label"])
        table = self.table(header, [",".join([*(str(i * k % 97) for k in range(columns)), "ab"[i % 2]]) for i in range(20)])
        self.assert_ok(self.train("mlp", table, "--checkpoint-dir", self.ck))
        turned = self.table(",".join(reversed(header.split(","))), [",".join(reversed(row.split(","))) for row in table.read_text().splitlines()[1:]], "turned.csv")
        first, second = (self.assert_ok(self.ask("--predict", one)).out.replace(str(one), "") for one in (table, turned))
        self.assertEqual(first, second)


if __name__ == "__main__":
    unittest.main()
