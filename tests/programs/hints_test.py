#!/usr/bin/env python3
"""Lines of kolo-train that name what a person would not see: names that look alike, quotes too many, numbers that are no labels, options without effect."""
import struct
import unittest

from data_files import DataFiles
from data_test import npy


class Hints(DataFiles):
    def said(self, *args, **options):
        return self.assert_ok(self.train(*args, **options)).err

    def test_classes_that_look_alike_are_told(self):
        composed, marks = "caf\u00e9", "cafe\u0301"
        pets = self.pictures("pets", 40, (composed, marks))
        self.assertIn("look alike and are two: their accents are written in two ways", self.said("lenet", pets))
        accents = self.table("a,label", [f"{i},{(composed, marks)[i % 2]}" for i in range(60)])
        self.assertIn("their accents are written in two ways", self.said("mlp", accents))
        letters = self.table("a,label", [f"{i},{('far', 'FAR', 'near')[i % 3]}" for i in range(60)])
        self.assertIn('the words "FAR" and "far" look alike and are two: they differ in the size of letters', self.said("mlp", letters))
        for words in (("caf\u00e9", "caf\u00e8", "cafe"), ("A", "a", "Ab"), ("\u00fcber", "uber", "Uberlingen")):
            self.assertNotIn("look alike", self.said("mlp", self.table("a,label", [f"{i},{words[i % 3]}" for i in range(60)])))

    def test_a_name_of_other_accents_is_told_where_it_is_missing(self):
        self.said("mlp", self.table("gr\u00f6\u00dfe,label", [f"{i},{i % 2}" for i in range(60)]), "--checkpoint-dir", self.ck)
        other = self.table("gro\u0308\u00dfe,label", [f"{i},{i % 2}" for i in range(60)], "other.csv")
        one, two = "\u00e4b", "a\u0308b"
        self.assert_one_line(self.ask("--predict", other), 1, "looks like it, and their accents are written in two ways")
        self.said("mlp", self.table("a,label", [f"{i},{(one, 'x')[i % 2]}" for i in range(60)]), "--checkpoint-dir", self.folder / "ck2")
        self.ck = self.folder / "ck2"
        other = self.table("a,label", [f"{i},{(two, 'x')[i % 2]}" for i in range(60)], "other.csv")
        self.assert_one_line(self.ask("--evaluate", "--data", other), 1, "look alike, but their accents are written in two ways")

    def test_a_column_of_the_first_file_that_another_lacks_is_told_so(self):
        parts = self.folder / "parts"
        parts.mkdir()
        self.table("a,b,label", [f"{i},1,{i % 2}" for i in range(30)], "parts/a.csv")
        self.table("c,b,label", [f"{i},1,{i % 2}" for i in range(30)], "parts/b.csv")
        self.assert_one_line(self.train("mlp", parts), 1, 'parts/b.csv: there is no column "a", which the first of these files has')

    def test_a_row_of_many_lines_is_told(self):
        rows = [f"{i},w{i % 3},{'xy'[i % 2]}" for i in range(60)]
        rows[5], rows[45] = '1,"w1,x', '2,w2",y'
        self.assertIn("t.csv: lines 7 to 47 are one row, which quotes join", self.said("mlp", self.table("a,b,label", rows)))
        texts = [f'{i},"one\ntwo\nthree",{i % 2}' for i in range(60)]
        self.assertNotIn("which quotes join", self.said("mlp", self.table("a,b,label", texts)))

    def test_names_where_the_training_had_none_are_told(self):
        rows = [f"{i % 7},{i % 5},{i % 2}" for i in range(60)]
        path = self.folder / "plain.csv"
        path.write_text("\n".join(rows) + "\n")
        self.said("mlp", path, "--checkpoint-dir", self.ck)
        self.assertNotIn("had no names", self.assert_ok(self.ask("--predict", path)).err)
        named = self.table("b,a,label", rows)
        for result in (self.ask("--predict", named), self.ask("--evaluate", "--data", named)):
            self.assertIn('the training\'s table had no names in its first line, so the columns of this one are taken by their places: 1 "b", 2 "a", 3 "label"',
                          self.assert_ok(result).err)
        self.ck = self.folder / "ck2"
        self.said("mlp", named, "--checkpoint-dir", self.ck)
        self.assertEqual(self.assert_ok(self.ask("--predict", path)).err.count("places"), 1)  # once is enough

    def test_words_that_make_a_class_of_almost_each_row_are_refused(self):
        table = self.table("a,cost", [f"{i},${i}.{i % 90 + 10}" for i in range(240)])
        self.assert_one_line(self.train("mlp", table), 1, 't.csv: the labels are 240 words in', 'such as "$0.10"; --target names another column, numbers are written as 1234.5')
        self.assert_one_line(self.train("mlp", table, "--loss", "mse"), 1, 'holds words, such as "$0.10", and --loss asks for numbers; a number is written as 1234.5')
        self.said("mlp", table, "--loss", "softmax")
        self.said("mlp", self.table("a,name", [f"{i},n{i // 3}" for i in range(400)]))

    def test_few_rows_of_words_without_names_lose_none(self):
        words = self.folder / "words.csv"
        words.write_text("".join(f"{'abc'[i % 3]},{'xyz'[i % 5 % 3]},{('yes', 'no')[i % 2]}\n" for i in range(60)))
        self.said("mlp", words, "--checkpoint-dir", self.ck)
        few = self.folder / "few.csv"
        for rows in (["a,x"], ["a,x", "b,y", "c,z"], ["b,new", "c,z"][1:], ["a,x,yes", "b,y,no"]):
            few.write_text("".join(row + "\n" for row in rows))
            predicted = self.assert_ok(self.ask("--predict", few))
            self.assertEqual(len(predicted.out.splitlines()), len(rows), predicted.out)
            self.assertNotIn("had no names", predicted.err)
        self.assertEqual(self.evaluated(few)[0], 2)
        few.write_text("size,kind\na,x\n")
        named = self.assert_ok(self.ask("--predict", few))
        self.assertEqual(len(named.out.splitlines()), 1)
        self.assertIn('taken by their places: 1 "size", 2 "kind"', named.err)

    def test_first_weights_of_columns_words_and_classes_in_another_order_are_told(self):
        def table(name, header, words, classes):
            return self.table(header, [f"{self.numbers.random():.4f},{i},{words[i % 3]},{classes[i % 2]}" for i in range(60)], name)

        header, words, classes = "a,b,colour,label", ("red", "green", "blue"), ("neg", "pos")
        first = table("first.csv", header, words, classes)
        self.said("mlp", first, "--checkpoint-dir", self.ck)
        self.said("mlp", first, "--checkpoint-dir", self.folder / "second", "--seed", 2)
        for name, other, told in (("same", (header, words, classes), None), ("letters", ("A,b,Colour,label", words, classes), None), ("columns", ("b,a,colour,label", words, classes), 'column "b" is where the source\'s training had column "a"'),
                                  ("words", (header, ("red", "aqua", "blue"), classes), 'the word "aqua" of column "colour" is where the source\'s training had the word "blue" of column "colour"'),
                                  ("classes", (header, words, ("z_neg", "a_pos")), 'the class "a_pos" is where the source\'s training had the class "neg"')):
            said = self.said("mlp", table(f"{name}.csv", *other), "--init-from", self.ck)
            (self.assertIn if told else self.assertNotIn)(f"--init-from {self.ck}: {told}" if told else "is where the source", said)
        unnamed = self.folder / "unnamed.csv"
        unnamed.write_text("".join(f"{i},{i % 7},{i / 3:.2f}\n" for i in range(60)))
        self.said("mlp", unnamed, "--checkpoint-dir", self.folder / "unnamed")
        named = self.table("a,b,price", [f"{i},{i % 7},{i / 3:.2f}" for i in range(60)], "named.csv")
        self.assertNotIn("is where the source", self.said("mlp", named, "--init-from", self.folder / "unnamed"))

    def test_what_stands_in_lines_that_are_dropped_is_no_class_and_no_word(self):
        rows = [f"{i},{'uv'[i % 2]},{'xy'[i % 2]}" for i in range(60)] + [",rare,none"]
        said = self.said("mlp", self.table("a,b,label", rows), "--missing", "drop")
        self.assertIn('2 words in column 2 "b"', said)
        self.assertIn("2 classes", said)

    def test_a_column_that_is_empty_in_all_later_rows_is_told(self):
        header = "a,b,label"
        self.said("mlp", self.table(header, [f"{i},{i % 5},{i % 2}" for i in range(60)]), "--missing", "mean", "--checkpoint-dir", self.ck)
        empty = self.table(header, [f"{i},,{i % 2}" for i in range(60)], "empty.csv")
        some = self.table(header, [f"{i},{i % 5 if i % 2 else ''},{i % 2}" for i in range(60)], "some.csv")
        said = 'column 2 "b" is empty in all 60 rows: the training\'s mean stands there'
        for asked in (("--predict",), ("--evaluate", "--data")):
            self.assertIn(said, self.assert_ok(self.ask(*asked, empty)).err)
            self.assertNotIn("is empty in all", self.assert_ok(self.ask(*asked, some)).err)

    def test_numbers_among_words_are_told(self):
        rows = [f"{'unknown' if i % 3 else i % 11},{i % 2}" for i in range(60)]
        self.assertIn('column 1 "a" is one of words', self.said("mlp", self.table("a,label", rows)))
        rows = [f"{('1', '2', '3', 'other', 'none')[i % 5]},{i % 2}" for i in range(60)] + ["other,1"] * 40
        self.assertNotIn("is one of words", self.said("mlp", self.table("a,label", rows)))

    def test_floats_that_are_labels_are_told(self):
        def arrays(name, values, shape, kind="<f4"):
            folder = self.folder / name
            folder.mkdir()
            (folder / "x_train.npy").write_bytes(npy("<f4", "(24, 2)", struct.pack("<48f", *(i % 7 for i in range(48)))))
            data = struct.pack(f"<{len(values)}f", *values) if kind == "<f4" else bytes(values)
            (folder / "y_train.npy").write_bytes(npy(kind, shape, data))
            return folder

        one = self.said("mlp", arrays("one", [i % 2 for i in range(24)], "(24,)"))
        self.assertIn("all numbers are 0 or 1 and are numbers to find, as floats are; if they are classes, give whole numbers (numpy: y.astype(int))", one)
        self.assertIn("if they are labels, --loss bce takes them", self.said("mlp", arrays("several", [int(i % 5 < 2) for i in range(72)], "(24, 3)")))
        for quiet in (arrays("half", [i % 2 / 2 for i in range(24)], "(24,)"), arrays("whole", [i % 2 for i in range(24)], "(24,)", "|u1")):
            self.assertNotIn("all numbers are 0 or 1", self.said("mlp", quiet))
        self.assertNotIn("all numbers are", self.said("mlp", self.folder / "several", "--loss", "bce"))

    def test_labels_without_samples_are_told_of_several_labels_too(self):
        folder = self.folder / "labels"
        folder.mkdir()
        for split in ("train", "test"):
            (folder / f"x_{split}.npy").write_bytes(npy("<f4", "(24, 2)", struct.pack("<48f", *(i % 7 for i in range(48)))))
            marks = bytes(v for i in range(24) for v in (i % 2, 0, int(i % 3 == 0), int(i % 4 < 2 if split == "train" else 0)))
            (folder / f"y_{split}.npy").write_bytes(npy("|u1", "(24, 4)", marks))
        said = self.said("mlp", folder)
        self.assertIn("there is no training sample of the label 1, and the model has 4 outputs, one of each label", said)
        self.assertIn("there is no test sample of the label 3, of which the test exact match says nothing", said)

    def test_folders_of_numbers_are_the_classes_of_a_model_without_names(self):
        labels = tuple(range(10))
        self.said("lenet", self.arrays("known", "|u1", 1, labels, count=20), "--checkpoint-dir", self.ck)
        self.assertEqual(self.evaluated(self.pictures("some", 12, ("7", "3")))[0], 12)
        self.pictures("all", 20, tuple(map(str, labels)))
        self.assertEqual(self.evaluated(self.folder / "all")[0], 20)
        self.assert_one_line(self.ask("--evaluate", "--data", self.pictures("pets")), 1, 'class "left" is none of the 10 classes, 0, 1, 2')
        self.ck = self.folder / "ck-folders"
        self.said("lenet", self.folder / "all", "--checkpoint-dir", self.ck)
        self.assertEqual(self.evaluated(self.arrays("known", "|u1", 1, labels, "test", 20))[0], 20)

    def test_ages_of_pictures_may_be_numbers_to_find(self):
        folder = self.folder / "ages"
        folder.mkdir()
        for i in range(40):
            (folder / f"{i}.png").write_bytes(self.picture())
        (folder / "list.csv").write_text("file,age\n" + "".join(f"{i}.png,{20 + i % 30}\n" for i in range(40)))
        self.assertIn('the label, column 2 "age", has 30 classes, whole numbers, in 40 rows; --loss mse finds numbers', self.said("lenet", folder))
        self.assertNotIn("whole numbers, in", self.said("lenet", folder, "--loss", "mse"))
        (folder / "list.csv").write_text("file,age\n" + "".join(f"{i}.png,{i % 4}\n" for i in range(40)))
        self.assertNotIn("whole numbers, in", self.said("lenet", folder))

    def test_a_target_called_name_leaves_the_samples_another_word(self):
        table = self.table("a,name,x", [f"{i},{i / 7:.3f},{i / 3:.3f}" for i in range(60)])
        self.said("mlp", table, "--target", "name,x", "--checkpoint-dir", self.ck)
        output = self.folder / "p.csv"
        self.assert_ok(self.ask("--predict", table, "--output", output))
        self.assertEqual(output.read_text().splitlines()[0], "sample,name,x")

    def test_options_without_effect_are_told(self):
        table = self.table("a,label", [f"{i},{i % 2}" for i in range(60)])
        self.assert_one_line(self.train("mlp", table, "--augment"), 1, "--augment is for pictures, and t.csv is a table")
        self.assert_one_line(self.train("lenet", self.arrays("known", "|u1", 1), "--augment", "flip"), 1, "--augment is for pictures, and known holds arrays")
        self.assertIn("--warmup 100: the training ends at step 2, before", self.said("mlp", table, "--warmup", 100))
        self.assertNotIn("--warmup", self.said("mlp", table, "--warmup", 2))
        self.said("lenet", self.pictures("pets"), "--augment")

    def test_r2_of_numbers_that_are_alike_is_refused(self):
        folder = self.folder / "pair"
        folder.mkdir()
        for name, u in (("train", 1.5), ("test", 0)):
            self.table("a,t,u", [f"{i},{i / 7:.3f},{u * i + 0.5}" for i in range(30)], f"pair/{name}.csv")
        asked = ("--target", "t,u", "--validate-every", 1, "--checkpoint-dir", self.ck)
        for option in (("--keep-best", "test_r2"), ("--early-stopping", "test_r2:2")):
            self.assert_one_line(self.train("mlp", folder, *asked, *option), 1, f"{option[0]} test_r2: u is 0.5 in all 30 test samples", "test_rmse and test_mae are")
        self.said("mlp", folder, *asked, "--keep-best", "test_mae")
        self.table("a,t,u", [f"{i},{i / 7:.3f},{i + 0.5}" for i in range(30)], "pair/test.csv")
        self.ck = self.folder / "ck2"
        self.said("mlp", folder, *asked[:-1], self.ck, "--keep-best", "test_r2")

    def test_another_text_is_tested_whole_and_lines_that_the_training_had_are_known_again(self):
        def lines(count, begin=0):
            return [f"line {i} says that {self.numbers.random():.12f} is a number\n" for i in range(begin, begin + count)]

        alphabet = "0123456789 abcdefgh\nijklmnopqrstuvwxyz.\n"
        text, other, head = self.folder / "text.txt", self.folder / "other.txt", self.folder / "head.txt"
        first, second = lines(200), lines(60)  # which have some of the characters alone
        text.write_text(alphabet + "".join(first))
        other.write_text("".join(second))
        head.write_text("".join(first[:100]))
        sizes = ("--width", 8, "--heads", 1, "--layers", 1, "--context", 16)
        self.said("gpt", text, *sizes, "--checkpoint-dir", self.ck)
        pieces = {}
        for one in (text, other, head):
            result = self.assert_ok(self.ask("--evaluate", "--data", one))
            pieces[one] = int(result.err.split("data: ")[1].split(" pieces")[0].split()[-1])
            said = r"the training has learnt from about (9\d|100) % of this text: the accuracy is not that of a new text"
            (self.assertRegex if one == head else self.assertNotRegex)(result.err, said)
            self.assertNotIn("no longer holds", result.err)
        self.assertAlmostEqual(pieces[text], len(text.read_text()) / 160, delta=1)
        self.assertAlmostEqual(pieces[other], len(other.read_text()) / 16, delta=1)
        copy = self.folder / "copy.txt"
        copy.write_text(text.read_text())
        said = self.assert_ok(self.ask("--evaluate", "--data", copy)).err
        self.assertIn("these are the 200 lines of the training, so that only the", said)
        self.assertIn(f"{pieces[text]} pieces", said)
        # Short lines are known together.
        names, self.ck = self.folder / "names.txt", self.folder / "ck-names"

        def short(count):
            return "".join(f"{''.join(self.numbers.choice('abcdefghij') for _ in range(self.numbers.randrange(4, 12)))}\n" for _ in range(count))

        names.write_text(short(1500))
        self.said("gpt", names, *sizes, "--checkpoint-dir", self.ck)
        for new, words in ((names.read_text()[1003:9000], "the training has learnt from about"), (names.read_text(), "of the training, so that only the"), (short(1500), "all of it for testing")):
            copy.write_text(new)
            said = self.assert_ok(self.ask("--evaluate", "--data", copy)).err
            self.assertIn(words, said)
            self.assertEqual("has learnt" in said, "has learnt" in words, said)
        # One long line is known by its pieces.
        long, self.ck = self.folder / "long.txt", self.folder / "ck-long"
        long.write_text(alphabet.replace("\n", " ") + "".join(first).replace("\n", " "))
        self.said("gpt", long, *sizes, "--checkpoint-dir", self.ck)
        for begin, end, words in ((0, 5000, "the training has learnt from about"), (3, 8 * len(long.read_text()) // 10, "the training has learnt from about"),
                                  (0, None, "lines and pieces of lines of the training, so that only the")):
            copy.write_text(long.read_text()[begin:end])
            self.assertIn(words, self.assert_ok(self.ask("--evaluate", "--data", copy)).err)
        copy.write_text("".join(lines(200, 500)).replace("\n", " "))
        self.assertNotIn("the training", self.assert_ok(self.ask("--evaluate", "--data", copy)).err.replace("with which", ""))
        self.ck = self.folder / "ck"
        text.write_text(text.read_text() + "".join(lines(40, 200)))  # it has grown
        for asked in (self.ask("--evaluate"), self.ask("--steps", 3)):
            self.assertNotIn("--data", self.assert_ok(asked).err)
        other.write_text("".join(second) + "stra\u00dfe\n")
        refused = self.ask("--evaluate", "--data", other)
        self.assertEqual(refused.code, 1)
        self.assertIn('other.txt: "\u00df" is not among the characters of the training\'s text, whose 39 bytes are', refused.err)
        # Who goes on with a part of the characters does not forget the others.
        other.write_text("".join(second[:5]))
        self.assert_ok(self.ask("--steps", 4, "--data", other))
        self.assert_ok(self.ask("--prompt", "xyz", "--length", 3))


if __name__ == "__main__":
    unittest.main()
