"""What the tests of kolo-train's data share: small tables, arrays and pictures, and what is said of them."""
import random
import struct

from data_test import npy, png
from programs import ProgramTest, run


class DataFiles(ProgramTest):
    def setUp(self):
        super().setUp()
        self.ck, self.numbers = self.folder / "ck", random.Random(1)

    def train(self, model, data, *args, steps=2, ranks=1):
        return run("kolo-train", "--model", model, "--data", data, "--batch-size", 4, "--threads", 1, "--steps", steps, "--json", *args, ranks=ranks)

    def ask(self, *args):
        return run("kolo-train", "--checkpoint-dir", self.ck, "--threads", 1, "--json", *args)

    def table(self, header, rows, name="t.csv"):
        path = self.folder / name
        path.write_text(header + "\n" + "".join(row + "\n" for row in rows))
        return path

    def arrays(self, name, dtype, scale, labels=(0, 1, 2), split="train", count=12):
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        pixels = [self.numbers.randrange(256) for _ in range(count * 784)]
        data = bytes(pixels) if dtype == "|u1" else struct.pack(f"<{len(pixels)}f", *(scale * pixel for pixel in pixels))
        (folder / f"x_{split}.npy").write_bytes(npy(dtype, f"({count}, 28, 28)", data))
        (folder / f"y_{split}.npy").write_bytes(npy("|u1", f"({count},)", bytes(labels[i % len(labels)] for i in range(count))))
        return folder

    def picture(self):
        return png([[self.numbers.randrange(256) for _ in range(28)] for _ in range(28)])

    def pictures(self, name, count=40, classes=("left", "right")):
        for i in range(count):
            path = self.folder / name / classes[i % len(classes)] / f"{i}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self.picture())
        return self.folder / name

    def evaluated(self, data):
        """How many samples were tested, and what was said."""
        result = self.assert_ok(self.ask("--evaluate", "--data", data))
        return sum(map(sum, result.done["confusion"])), result.err
