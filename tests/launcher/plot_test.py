"""kolo-inspect plot: pages from files as trainings leave them, looked at with headless Chromium where there is one.

Usage: plot_test.py KOLO_INSPECT
"""
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
import zlib

INSPECT = sys.argv[1]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def inspect(*words):
    return subprocess.run([INSPECT, "plot", *words], capture_output=True, text=True, timeout=60)


def progress(step, run="a", **more):
    return {"event": "progress", "run": run, "global_step": step, "epoch": step / 10, "loss": 2 / step,
            "learning_rate": 0.1, "samples_per_s": 1000 + step, **more}


def charts(page):
    """The polylines' points by the chart's title."""
    found = {}
    for title, svg in re.findall(r'<figure><h2>([^<]+?)(?: <small>.*?)?</h2>\n(<svg .*?</svg>)', page, re.S):
        root = ElementTree.fromstring(svg)
        found[title] = [[tuple(map(float, point.split(","))) for point in line.get("points").split()]
                        for line in root.iter("polyline")]
    return found


def pixels(file):
    """The RGB of each pixel of a PNG as Chromium writes it."""
    with open(file, "rb") as opened:
        data = opened.read()
    at, packed = 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        if kind == b"IHDR":
            width, height, depth, color = struct.unpack(">IIBB", body[:10])
            assert depth == 8 and color in (2, 6)
            bytes_each = 3 if color == 2 else 4
        if kind == b"IDAT":
            packed += body
        at += 12 + size
    raw, row = zlib.decompress(packed), bytearray(width * bytes_each)
    colors = set()
    for y in range(height):
        start = y * (len(row) + 1)
        kind, line = raw[start], bytearray(raw[start + 1:start + 1 + len(row)])
        for i in range(len(line)):
            left = line[i - bytes_each] if i >= bytes_each else 0
            up, corner = row[i], row[i - bytes_each] if i >= bytes_each else 0
            if kind == 1: line[i] = (line[i] + left) & 255
            elif kind == 2: line[i] = (line[i] + up) & 255
            elif kind == 3: line[i] = (line[i] + (left + up) // 2) & 255
            elif kind == 4:
                p = left + up - corner
                best = min((abs(p - left), 0, left), (abs(p - up), 1, up), (abs(p - corner), 2, corner))[2]
                line[i] = (line[i] + best) & 255
        row = line
        colors.update(bytes(line[i:i + 3]) for i in range(0, len(line), bytes_each))
    return colors


class Plot(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def run_of(self, name, rows, end=""):
        folder = os.path.join(self.folder, name)
        os.makedirs(folder)
        with open(os.path.join(folder, "metrics.jsonl"), "w") as file:
            file.write("".join(json.dumps(row) + "\n" for row in rows) + end)
        return folder

    def page(self, *paths):
        done = inspect(*paths)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_draws_what_kolo_train_has_written(self):
        rows = [progress(step, communication_share=[.1, .2]) for step in range(1, 101)]
        rows.insert(50, {"event": "validation", "run": "a", "global_step": 50, "test_accuracy": .5})
        rows.append({"event": "done", "run": "a", "global_step": 100, "loss": .02, "test_accuracy": .9,
                     "samples_per_s": 1000, "ranks": 2})
        found = charts(self.page(self.run_of("one", rows)))
        self.assertEqual(list(found), ["loss", "accuracy", "learning rate", "samples/s", "share of communication"])
        self.assertEqual([len(lines) for lines in found.values()], [1, 1, 1, 1, 2])
        self.assertEqual(len(found["accuracy"][0]), 2)
        loss = found["loss"][0]  # falls: y grows downwards
        self.assertTrue(all(a[1] <= b[1] for a, b in zip(loss, loss[1:])))

    def test_draws_several_trainings_over_each_other(self):
        paths = [self.run_of(name, [progress(step) for step in (1, 2, 3)]) for name in ("one", "<two>")]
        page = self.page(*paths)
        self.assertEqual(len(charts(page)["loss"]), 2)
        self.assertIn("&lt;two&gt;", page)
        self.assertNotIn("<two>", page)

    def test_needs_nothing_else(self):
        page = self.page(self.run_of("one", [progress(1), progress(2)]))
        self.assertNotRegex(page, r"https?:|<script|<link|@import|url\(|src=")

    def test_takes_no_more_points_than_can_be_seen(self):
        page = self.page(self.run_of("long", [progress(step) for step in range(1, 5001)]))
        self.assertEqual(len(charts(page)["loss"][0]), 400)

    def test_a_restart_replaces_what_came_behind_it(self):
        rows = [progress(step) for step in (10, 20, 30)] + [progress(step, run="b") for step in (21, 40)]
        self.assertEqual(len(charts(self.page(self.run_of("again", rows)))["loss"][0]), 4)

    def test_passes_over_a_cut_last_line(self):
        page = self.page(self.run_of("killed", [progress(1), progress(2)], '{"event": "progr'))
        self.assertEqual(len(charts(page)["loss"][0]), 2)

    def test_draws_keras_csv_by_epochs(self):
        path = os.path.join(self.folder, "log.csv")
        with open(path, "w") as file:
            file.write("epoch,acc,loss,val_acc,val_loss\n0,0.5,1.5,0.4,1.6\n1,0.7,0.5,NA,0.6\n")
        page = self.page(path, self.run_of("one", [progress(10), progress(20)]))
        found = charts(page)
        self.assertEqual([len(line) for line in found["loss"]], [2, 2, 2])
        self.assertEqual([len(line) for line in found["accuracy"]], [2, 1])
        self.assertIn(">epoch</text>", page)
        self.assertIn("validation", page)

    def test_says_what_is_wrong(self):
        for words, code, text in (((), 2, "no folder given"), (("--nope",), 2, "unknown option --nope"),
                                  ((os.path.join(self.folder, "none"),), 1, "cannot be read"),
                                  ((self.run_of("bad", [{"a": 1}]),), 1, "metrics.jsonl:1: this is no line"),
                                  ((self.run_of("empty", []),), 1, "there is nothing to plot")):
            done = inspect(*words)
            self.assertEqual((done.returncode, done.stdout), (code, ""))
            self.assertIn(text, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)

    @unittest.skipUnless(CHROMIUM, "there is no Chromium to look with")
    def test_chromium_shows_the_curves_in_light_and_dark(self):
        page, shot = os.path.join(self.folder, "plot.html"), os.path.join(self.folder, "shot.png")
        paths = [self.run_of(name, [progress(step) for step in range(1, 50)]) for name in ("one", "two")]
        with open(page, "w") as file:
            file.write(self.page(*paths))
        for dark, ground, lines in (([], (0xfc, 0xfc, 0xfb), (0xd5, 0x5e, 0x00)),
                                    (["--blink-settings=preferredColorScheme=0"], (0x14, 0x17, 0x1a),
                                     (0xff, 0x9a, 0x4d))):
            subprocess.run([CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
                            "--disable-background-networking", "--disable-sync",
                            "--user-data-dir=" + os.path.join(self.folder, "profile"), *dark, "--window-size=390,500",
                            "--screenshot=" + shot, "file://" + page], capture_output=True, timeout=90, check=True)
            colors = pixels(shot)
            self.assertIn(bytes(ground), colors)
            self.assertIn(bytes(lines), colors)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
