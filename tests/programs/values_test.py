#!/usr/bin/env python3
"""Later values that are written otherwise than the training's: each gets one clear line, or is refused."""
import struct
import unittest

from data_files import DataFiles
from data_test import npy

PLACES = "labels are numbers, and are taken for the training's classes in their order: 0 left, 1 right"


class Values(DataFiles):
    def said_of(self, data):
        return self.assert_ok(self.ask("--evaluate", "--data", data)).err

    def test_numbers_are_the_places_of_classes_with_names_in_arrays_alone(self):
        self.assert_ok(self.train("lenet", self.pictures("pets"), "--checkpoint-dir", self.ck))
        shares = []
        for labels, is_taken in (((0, 1), True), ((1, 0), True), ((0, 2), False), ((1, 2), False)):
            data = self.arrays(f"array{labels}", "|u1", 1, labels, "test", count=20)
            asked = self.ask("--evaluate", "--data", data)
            self.assertEqual(asked.code, 0 if is_taken else 1, asked.err)
            self.assertEqual(asked.err.count(PLACES), is_taken, asked.err)
            if is_taken:
                shares.append(asked.done["confusion"])
            else:
                self.assertIn("is none of the 2 classes, left, right, of the training", asked.err)
                self.assertIn("the labels of y_test.npy are numbers, and those of the training are names; write the names, or in arrays their places, 0 to 1", asked.err)
        self.assertEqual([sum(row) for row in shares[0]], [10, 10])
        self.ck = self.folder / "table"
        self.assert_ok(self.train("mlp", self.table("a,label", [f"{self.numbers.random()},{'left' if i % 2 else 'right'}" for i in range(40)]), "--checkpoint-dir", self.ck))
        asked = self.ask("--evaluate", "--data", self.table("a,label", [f"{self.numbers.random()},{i % 2}" for i in range(40)], "other.csv"))
        self.assertEqual(asked.code, 1)
        self.assertIn("the labels of other.csv are numbers, and those of the training are names; write the names, or in arrays their places, 0 to 1", asked.err)

    def test_numbers_that_were_rounded_are_told(self):
        def rows(count, price, size="{:.3f}"):
            return [f"{size.format(self.numbers.uniform(1, 90))},{self.numbers.randrange(9)},{price.format(self.numbers.uniform(100, 200))}" for _ in range(count)]

        header = "size,rooms,price"
        table = self.table(header, rows(200, "{:.2f}"))
        self.assert_ok(self.train("mlp", table, "--normalize", "--loss", "mse", "--checkpoint-dir", self.ck))
        told = "all numbers are whole in column {}, as if they were rounded, and in the training nearly all had fractions"
        price, size = told.format('3 "price"'), told.format('1 "size"')
        for written, words in ((rows(60, "{:.2f}"), ()), (rows(60, "{:.0f}"), (price,)), (rows(60, "{:.2f}", "{:.0f}"), (size,)), (rows(10, "{:.0f}"), ()), (["7,3,101.5"] * 40, ())):
            said = self.said_of(self.table(header, written, "later.csv"))
            for word in (price, size):
                self.assertEqual(said.count(word), word in words, said)
        self.assertIn(size, self.assert_ok(self.ask("--predict", self.table(header, rows(60, "{:.0f}", "{:.0f}"), "new.csv"))).err)
        self.ck, whole = self.folder / "whole", self.table(header, rows(200, "{:.0f}", "{:.0f}"), "whole.csv")
        self.assert_ok(self.train("mlp", whole, "--normalize", "--loss", "mse", "--checkpoint-dir", self.ck))
        self.assertNotIn("all numbers are whole", self.said_of(self.table(header, rows(60, "{:.0f}", "{:.0f}"), "later.csv")))

    def test_rounded_numbers_to_find_of_arrays_are_told(self):
        def arrays(name, split, digits):
            folder, x = self.folder / name, [self.numbers.random() for _ in range(120)]
            folder.mkdir(exist_ok=True)
            (folder / f"x_{split}.npy").write_bytes(npy("<f4", "(60, 2)", struct.pack("<120f", *x)))
            (folder / f"y_{split}.npy").write_bytes(npy("<f4", "(60,)", struct.pack("<60f", *(round(self.numbers.uniform(100, 200), digits) for _ in range(60)))))
            return folder

        self.assert_ok(self.train("mlp", arrays("first", "train", 2), "--checkpoint-dir", self.ck))
        for digits in (2, 0):
            said = self.said_of(arrays(f"later{digits}", "test", digits))
            self.assertEqual(said.count("numbers to find: all numbers are whole in column 1"), digits == 0, said)

    def flags(self, name, flags):
        return self.table("a,flag,label", [f"{self.numbers.random()},{flags[i // 2 % 2]},{'ab'[i % 2]}" for i in range(60)], name)

    def test_flags_that_have_become_words_are_refused_and_the_reverse_is_counted(self):
        for trained, later in ((("0", "1"), ("no", "yes")), (("no", "yes"), ("0", "1")), (("0", "1"), ("False", "True"))):
            self.ck = self.folder / f"ck-{trained[0]}-{later[0]}"
            self.assert_ok(self.train("mlp", self.flags("first.csv", trained), "--checkpoint-dir", self.ck))
            other = self.flags("later.csv", later)
            for asked in (self.ask("--predict", other), self.ask("--evaluate", "--data", other)):
                if trained[0] == "0":
                    self.assertEqual(asked.code, 1)
                    self.assertIn(f'later.csv, line 2, column 2: "{later[0]}" is no number that f32 holds, and in the training its column was one of numbers; write such words as numbers, as 1 and 0', asked.err)
                else:
                    self.assertIn('30 of the unknown word "0" (line 2, column 2), 30 of the unknown word "1" (line 4, column 2)', self.assert_ok(asked).err)
                    self.assertIn('column 2 "flag": 60 of 60 words are none of the training\'s, such as "0" in line 2; it had "no", "yes"', asked.err)

    def test_flags_in_other_letters_are_warned_of(self):
        self.assert_ok(self.train("mlp", self.flags("first.csv", ("False", "True")), "--checkpoint-dir", self.ck))
        for flags, words in ((("FALSE", "TRUE"), '"FALSE" in line 2; it had "False", "True"; "False" looks like it'), (("False", "TRUE"), None)):
            said = self.assert_ok(self.ask("--evaluate", "--data", self.flags("later.csv", flags))).err
            self.assertEqual("none of the training's" in said, words is not None, said)
            self.assertIn(words or '30 of the unknown word "TRUE"', said)


if __name__ == "__main__":
    unittest.main()
