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
            check = self.assertIn if factor > 1 else self.assertNotIn
            for result in (self.ask("--predict", table), self.ask("--evaluate", "--data", table)):
                check("and the model was trained on numbers up to 0.99", self.assert_ok(result).err)

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
