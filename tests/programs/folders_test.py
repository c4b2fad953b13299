#!/usr/bin/env python3
"""What kolo-train takes of a folder of data, and what of it is none: its own checkpoints, logs and predictions, and links that lead back up."""
import os
import re
import shutil
import unittest

from data_files import DataFiles
from programs import run


class Folders(DataFiles):
    def evaluation(self, *args):
        result = self.assert_ok(self.ask("--evaluate", *args))
        return result.err

    def test_checkpoints_and_logs_among_pictures_are_no_class(self):
        pets = self.pictures("pets")
        self.ck, logs = pets / "ck", pets / "logs"
        for steps in (2, 4):
            said = self.assert_ok(self.train("lenet", pets, "--checkpoint-dir", self.ck, "--log-dir", logs, "--tensorboard", pets / "board",
                                             "--validate-every", 1, "--keep-best", "test_loss", steps=steps)).err
            self.assertIn("2 classes (left: ", said)
        self.assertRegex(self.evaluation(), r"2 classes .*left out: 1 folder board/, 1 folder ck/, 1 folder logs/")
        self.assertIn("2 classes", self.assert_ok(self.train("lenet", pets)).err)  # other options name none of these folders
        self.ck = pets / "ck" / "best"
        self.evaluation()
        self.ck = pets
        for steps in (2, 4):
            said = self.assert_ok(self.train("lenet", pets, "--checkpoint-dir", pets, "--validate-every", 1, "--keep-best", "test_loss", steps=steps)).err
        self.assertRegex(said, r"left out: .*\d+ files of kolo's checkpoints and logs")

    def test_a_class_with_checkpoints_among_its_pictures_stays_one(self):
        pets = self.pictures("pets")
        self.ck = pets / "left"
        for steps in (2, 3):
            self.assertIn("2 classes (left: ", self.assert_ok(self.train("lenet", pets, "--checkpoint-dir", self.ck, steps=steps)).err)
        self.assertIn("2 classes (left: ", self.evaluation())

    def test_an_empty_folder_is_still_a_class_without_pictures(self):
        pets = self.pictures("pets")
        (pets / "other").mkdir()
        (pets / "other" / "config.json").write_text("{}")
        self.assert_one_line(self.train("lenet", pets), 1, "pets/other: a class without images")

    def test_checkpoints_beside_a_text_are_no_text(self):
        books = self.folder / "books"
        books.mkdir()
        (books / "one.txt").write_text("the quick brown fox jumps over the lazy dog.\n" * 40)
        self.ck = books
        sizes = ("--width", 8, "--heads", 1, "--layers", 1, "--context", 8)
        for steps in (2, 3):
            self.assert_ok(self.train("gpt", books, *sizes, "--checkpoint-dir", books, "--log-dir", books, steps=steps))
        self.evaluation()
        (books / "two.txt").write_text("b")
        self.assert_one_line(self.train("gpt", books), 1, "in which 2 files lie, such as one.txt")

    def test_predictions_beside_their_data_are_no_data(self):
        tables = self.folder / "tables"
        tables.mkdir()
        for i in range(2):
            self.table("a,label", [f"{k % 7 - i},{'xy'[k % 2]}" for k in range(30)], f"tables/t{i}.csv")
        self.assert_ok(self.train("mlp", tables, "--checkpoint-dir", self.ck))
        self.assert_ok(self.ask("--predict", tables / "t0.csv", "--output", tables / "pred.csv"))
        said = self.evaluation()
        self.assertIn("left out: 1 table of predictions", said)
        self.assertIn("60 rows", said)
        named = self.folder / "named"
        named.mkdir()
        for i in range(20):
            (named / f"{i}.png").write_bytes(self.picture())
        for labels, columns in (("tags", [f"{i}.png,{('a|b', 'b')[i % 2]}" for i in range(20)]), ("class", [f"{i}.png,{'ab'[i % 2]}" for i in range(20)])):
            (named / "t.csv").write_text(f"file,{labels}\n" + "\n".join(columns) + "\n")
            self.ck = self.folder / f"ck-{labels}"
            self.assert_ok(self.train("lenet", named, "--checkpoint-dir", self.ck))
            self.assert_ok(self.ask("--predict", named, "--output", named / "pred.csv"))
            self.assertIn("1 table of predictions", self.evaluation())
        (named / "t.csv").unlink()
        (named / "pred.csv").write_text("name,class,share\n" + "".join(f"{i}.png,{'ab'[i % 2]},0.9\n" for i in range(20)))
        self.assertIn("--predict has written, and a model's answers are taken for labels", self.assert_ok(self.train("lenet", named)).err)

    def test_tables_with_names_are_no_predictions(self):
        tables = self.folder / "tables"
        tables.mkdir()
        for i in range(2):
            self.table("name,a,label", [f"n{k},{k % 7 - i},{k % 2}" for k in range(30)], f"tables/t{i}.csv")
        said = self.assert_ok(self.train("mlp", tables, "--ignore", "name")).err
        self.assertIn("60 rows", said)
        self.assertNotIn("predictions", said)

    def test_links_that_lead_back_up_are_left_out(self):
        pets = self.pictures("pets")
        (pets / "left" / "loop").symlink_to("..")
        (pets / "all").symlink_to(".")
        other = self.folder / "other"
        other.mkdir()
        (other / "back").symlink_to(pets)
        (other / "x.png").write_bytes(self.picture())
        (pets / "right" / "more").symlink_to(other)
        said = self.assert_ok(self.train("lenet", pets)).err
        self.assertIn("2 links that lead back up", said)
        left, right, testing = map(int, re.search(r"\(left: (\d+), right: (\d+)\).* and (\d+) for testing", said).groups())
        self.assertEqual(left + right + testing, 41, said)

    def test_a_pipe_among_tables_is_not_waited_for(self):
        tables = self.folder / "tables"
        tables.mkdir()
        (tables / "a.csv").write_text("x,label\n" + "".join(f"{i},{'no' if i % 2 else 'yes'}\n" for i in range(40)))
        os.mkfifo(tables / "b.csv")
        self.assert_ok(self.train("mlp", tables))

    def test_folders_of_hidden_files_are_no_class(self):
        pets = self.pictures("pets")

        def add_hidden(folder, of="left"):
            for path in ("__MACOSX/._pets", f"__MACOSX/pets/{of}/._0.png", "dots/.DS_Store", "dots/below/.x"):
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_bytes(b"")

        self.assert_ok(self.train("lenet", pets, "--checkpoint-dir", self.ck))
        add_hidden(pets), add_hidden(pets / "left")
        for said in (self.evaluation(), self.assert_ok(self.train("lenet", pets)).err, self.evaluation("--data", pets)):
            self.assertRegex(said, r"2 classes \(left: .*left out: 1 folder __MACOSX/, 1 folder dots/, 2 folders of hidden files")
        parts = self.folder / "parts"
        for part in ("train", "test"):
            shutil.copytree(pets, parts / part)
        add_hidden(parts)
        self.assertRegex(self.assert_ok(self.train("lenet", parts)).err, r"2 classes \(left: 20, right: 20\).*folder __MACOSX/")
        named, tables, texts = self.folder / "named", self.folder / "tables", self.folder / "texts"
        for folder in (named, tables, texts):
            add_hidden(folder)
        for i in range(20):
            (named / f"{i}.png").write_bytes(self.picture())
        (named / "t.csv").write_text("file,label\n" + "".join(f"{i}.png,{'ab'[i % 2]}\n" for i in range(20)))
        self.table("a,label", [f"{i},{i % 2}" for i in range(30)], "tables/t.csv")
        (texts / "one.txt").write_text("the quick brown fox jumps over the lazy dog.\n" * 40)
        self.assertIn("2 folders of hidden files", self.assert_ok(self.train("lenet", named)).err)
        self.assertIn("1 folder __MACOSX/, 1 folder dots/", self.assert_ok(self.train("mlp", tables)).err)
        self.assert_ok(self.train("gpt", texts, "--width", 8, "--heads", 1, "--layers", 1, "--context", 8))
        (pets / "dots" / "notes.txt").write_text("of a class that lost its pictures")
        self.assert_one_line(self.train("lenet", pets), 1, "pets/dots: a class without images")

    def test_one_link_that_leads_back_up_is_told_so(self):
        pets = self.pictures("pets")
        (pets / "left" / "loop").symlink_to("..")
        self.assertIn("1 link that leads back up", self.assert_ok(self.train("lenet", pets)).err)

    def test_pictures_that_a_table_names_by_absolute_paths_are_named(self):
        named = self.folder / "named"
        named.mkdir()
        for i in range(20):
            (named / f"{i}.png").write_bytes(self.picture())
        (named / "t.csv").write_text("file,label\n" + "".join(f"{named.resolve()}/{i}.png,{'ab'[i % 2]}\n" for i in range(20)))
        train = ("kolo-train", "--model", "lenet", "--batch-size", 4, "--threads", 1, "--steps", 2, "--json", "--data")
        self.assertNotIn("does not name", self.assert_ok(run(*train, "named", cwd=self.folder)).err)
        (named / "more.png").write_bytes(self.picture())
        self.assertIn("left out: 1 picture that it does not name", self.assert_ok(run(*train, "named", cwd=self.folder)).err)

    def test_a_gap_between_cifars_batches_is_refused(self):
        record = bytes([1]) + bytes(3072)
        cifar = self.folder / "cifar"
        cifar.mkdir()
        for i in (1, 3):
            (cifar / f"data_batch_{i}.bin").write_bytes(record * 8 + bytes(3073))
        self.assert_one_line(self.train("cifar10", cifar), 1, "data_batch_2.bin: it is not there, and data_batch_3.bin is")

    def test_files_of_cifar_are_predicted(self):
        cifar, ck = self.folder / "cifar", self.folder / "ck"
        cifar.mkdir()
        records = [bytes([i % 2]) + bytes(50 + 150 * (i % 2) for _ in range(3072)) for i in range(20)]
        for name in ("data_batch_1.bin", "test_batch.bin"):
            (cifar / name).write_bytes(b"".join(records))
        self.assert_ok(self.train("resnet20", cifar, "--checkpoint-dir", ck))
        done = self.assert_ok(run("kolo-train", "--checkpoint-dir", ck, "--evaluate", "--threads", 1, "--json")).done
        self.assert_ok(run("kolo-train", "--checkpoint-dir", ck, "--predict", cifar / "test_batch.bin", "--threads", 1, "--output", self.folder / "out.csv"))
        lines = (self.folder / "out.csv").read_text().splitlines()[1:]
        self.assertEqual([line.split(",")[0] for line in lines], [f"{cifar}/test_batch.bin[{i}]" for i in range(20)])
        names = ["airplane", "automobile"]
        self.assertEqual(sum(line.split(",")[1] == names[i % 2] for i, line in enumerate(lines)), sum(done["confusion"][i][i] for i in range(10)))
        (cifar / "cut.bin").write_bytes(records[0][:-1])
        self.assert_one_line(run("kolo-train", "--checkpoint-dir", ck, "--predict", cifar / "cut.bin"), 1, "cut.bin: 3072 bytes; CIFAR-10 has records of 3073 bytes")


if __name__ == "__main__":
    unittest.main()
