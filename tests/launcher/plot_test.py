"""kolo-inspect plot: pages from files as trainings leave them, looked at with headless Chromium where there is one.

Usage: plot_test.py KOLO_INSPECT
"""
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
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


def linear(color):
    parts = [int(color[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    return [part / 12.92 if part <= .04045 else ((part + .055) / 1.055) ** 2.4 for part in parts]


def contrast(a, b):
    """Of two colours, by WCAG 2.1."""
    low, high = sorted(sum(part * weight for part, weight in zip(linear(color), (.2126, .7152, .0722))) for color in (a, b))
    return (high + .05) / (low + .05)


def difference(a, b):
    """The distance of two sRGB colours in CIE L*a*b* (1976), where 2.3 can just be noticed."""
    def lab(color):
        red, green, blue = linear(color)
        x, y, z = ((value / white) ** (1 / 3) if value / white > .008856 else 7.787 * value / white + 16 / 116 for value, white in (
            (.4124 * red + .3576 * green + .1805 * blue, .9505), (.2126 * red + .7152 * green + .0722 * blue, 1),
            (.0193 * red + .1192 * green + .9505 * blue, 1.089)))
        return 116 * y - 16, 500 * (x - y), 200 * (y - z)
    return sum((one - other) ** 2 for one, other in zip(lab(a), lab(b))) ** .5


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

    def test_draws_every_metric_of_an_evaluation(self):
        rows = [progress(step) for step in range(1, 11)]
        for step in (5, 10):
            rows.append({"event": "validation", "run": "a", "global_step": step, "test_loss": 1 / step, "test_exact_match": .5, "test_mae": 3, "test_rmse": 4,
                         "test_r2": -.5 if step == 5 else .9, "auc": .7})
        evaluated = {"event": "done", "run": "b", "global_step": 10, "loss": None, "test_loss": .1,
                     "labels": [{"label": name, "count": 3, "precision": .5, "recall": .25, "f1": value} for name, value in (("cat", .4), ("dog", None))],
                     "targets": [{"target": name, "mae": 1, "rmse": 2, "r2": .5} for name in ("age", "size")]}
        page = self.page(self.run_of("one", [*rows, evaluated]))
        found = charts(page)
        self.assertEqual(list(found), ["loss", "exact match", "MAE", "RMSE", "R²", "AUC", "precision", "recall", "F1", "learning rate", "samples/s"])
        self.assertEqual([len(line) for line in found["loss"]], [10, 3], "the evaluation of step 10 takes nothing away")
        self.assertEqual([len(line) for line in found["R²"]], [2, 1, 1], "and those of the targets")
        for words in ("cat", "age"):
            self.assertIn(words, page)
        other = self.run_of("other", [progress(1), {"event": "validation", "run": "a", "global_step": 1, "test_accuracy": .5},
                                      {**evaluated, "labels": [], "targets": evaluated["targets"][:1]}])
        self.assertEqual(list(charts(self.page(other, os.path.join(self.folder, "one"))))[:4], ["loss", "accuracy", "exact match", "MAE"], "in one order")
        self.assertNotIn("age", self.page(other), "the only target is the whole")
        many = {**evaluated, "labels": [{"label": f"l{i}", "f1": i / 100} for i in range(40)]}
        page = self.page(self.run_of("two", [*rows, many]))
        self.assertIn("mean of 40 labels", page)
        self.assertNotIn("l7", page)

    def test_draws_several_trainings_over_each_other(self):
        paths = [self.run_of(name, [progress(step) for step in (1, 2, 3)]) for name in ("one", "<two>")]
        page = self.page(*paths)
        self.assertEqual(len(charts(page)["loss"]), 2)
        self.assertIn("&lt;two&gt;", page)
        self.assertNotIn("<two>", page)

    def test_needs_nothing_else(self):
        page = self.page(self.run_of("one", [progress(1), progress(2)]))
        self.assertNotRegex(page, r"https?:|<script[^>]|<link|@import|url\(|src=|fetch\(|import\(")
        drawn = re.sub(r"<script>.*?</script>", "", page, flags=re.S)  # what is seen without it
        self.assertEqual(len(charts(drawn)["loss"][0]), 2)

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
                                  ((self.run_of("odd", [progress(1), {"event": 3, "global_step": 1}]),), 1, "metrics.jsonl:2: this is no line"),
                                  ((self.run_of("odd2", [{"global_step": "x"}]),), 1, "metrics.jsonl:1: this is no line"),
                                  ((self.run_of("empty", []),), 1, "there is nothing to plot")):
            done = inspect(*words)
            self.assertEqual((done.returncode, done.stdout), (code, ""))
            self.assertIn(text, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)

    def csv(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
        return path

    def test_names_runs_by_what_tells_their_paths_apart(self):
        def named(*paths):
            return re.findall(r"</svg>([^<]*?)</li>", self.page(*paths).split('class="charts"')[0])
        logs = [self.run_of(f"runs/{name}/logs", [progress(1), progress(2)]) for name in "ab"]
        self.assertEqual(named(*logs), ["a", "b"])
        self.assertEqual(named(*logs, self.run_of("runs/c", [progress(1)])), ["a/logs", "b/logs", "c"])
        self.assertEqual(named(logs[0]), ["logs"])
        for number in (1, 2, 10):
            self.run_of(f"seeds/{number}", [progress(1)])
        self.assertEqual(named(os.path.join(self.folder, "seeds")), ["1", "2", "10"])
        self.assertEqual(named(logs[0], logs[0] + "/../logs/metrics.jsonl"), ["logs"])  # one file
        tables = [self.csv(name, "step,loss\n1,2\n2,1\n") for name in ("x/log.csv", "y/log.csv")]
        self.assertEqual(named(*tables), ["x", "y"])
        self.assertEqual(named(tables[0], self.csv("x/log.tsv", "step\tloss\n1\t2\n")), ["log.csv", "log.tsv"])
        self.assertEqual(named(self.run_of("runs/d", [progress(1)]), self.run_of("runs/d/d", [progress(1)])), ["d/d", "d"])

    def test_searches_folders(self):
        for name in ("adam/1", "adam/2", "sgd"):
            self.run_of(f"runs/{name}", [progress(1), progress(2)])
        self.csv("runs/keras/log.csv", "epoch,loss\n0,2\n1,1\n")
        self.csv("runs/data/train.csv", "label,pixel\n0,2\n1,1\n")  # no log
        self.csv("runs/.hidden/log.csv", "epoch,loss\n0,2\n1,1\n")
        self.run_of("runs/new", [])
        os.symlink("..", os.path.join(self.folder, "runs", "sgd", "round"))
        done = inspect(os.path.join(self.folder, "runs"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(charts(done.stdout)["loss"]), 4)
        self.assertIn("runs: 5 logs found", done.stderr)
        self.assertIn("left out: ", done.stderr)
        self.assertIn("new/metrics.jsonl: there is nothing to plot", done.stderr)
        self.assertIn("5 logs found", done.stdout)
        done = inspect(os.path.join(self.folder, "runs", "data"))
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (1, "", 1))
        self.assertIn("runs/data: there is no log in it or up to 8 folders below it", done.stderr)

    def test_searches_no_more_than_it_can_draw(self):
        deep = "deep/" + "/".join("123456789")
        self.run_of(deep, [progress(1)])
        self.assertIn("there is no log", inspect(os.path.join(self.folder, "deep")).stderr)
        self.assertEqual(inspect(os.path.join(self.folder, "deep", "1")).returncode, 0)
        for i in range(101):
            self.csv(f"many/{i}.csv", "step,loss\n1,2\n")
        done = inspect(os.path.join(self.folder, "many"))
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1))
        self.assertIn("more than 100 logs", done.stderr)

    def test_shows_where_a_training_diverges(self):
        rows = [progress(step, loss=None if 20 < step <= 30 or step > 40 else 1 / step) for step in range(1, 51)]
        page = self.page(self.run_of("bad", rows), self.run_of("good", [progress(step) for step in (1, 60)]))
        self.assertEqual([len(line) for line in charts(page)["loss"]], [20, 10, 2])  # broken, not bridged
        self.assertEqual(page.count('class="bad"'), 2)
        self.assertIn("<strong>NaN since step 41</strong><small>before it 0.025</small>", page)
        self.assertIn("× NaN or infinite", page)
        self.assertNotIn('class="bad"', self.page(os.path.join(self.folder, "good")))

    def test_shows_a_training_that_never_was_finite(self):
        page = self.page(self.run_of("bad", [progress(step, loss=None) for step in range(1, 51)]))
        self.assertEqual(page.count('class="bad"'), 1)
        self.assertIn("NaN since step 1</strong><small>never finite", page)

    def test_says_that_a_training_has_recovered(self):
        page = self.page(self.csv("log.csv", "step,loss\n1,2\n2,nan\n3,-inf\n4,1\n"))
        self.assertIn("<td>1<small>2 of 4 NaN or infinite</small></td>", page)
        self.assertRegex(page, r'data-points="1,2 2,nan 3,-Infinity 4,1"')

    def test_keeps_a_single_nan_among_many_points(self):
        rows = [progress(step, loss=None if step == 2503 else 1) for step in range(1, 5001)]
        self.assertEqual(self.page(self.run_of("long", rows)).count('class="bad"'), 1)

    def test_shows_a_training_that_nan_has_stopped(self):
        rows = [{"event": "run", "run": "a", "global_step": 0, "model": {"name": "mlp"}, "learning_rate": 1e5}, progress(1), progress(2),
                {"event": "diverged", "run": "a", "global_step": 3, "loss": None}]
        page = self.page(self.run_of("stopped", rows))
        self.assertEqual(page.count('class="bad"'), 1)
        self.assertIn("NaN since step 3</strong><small>before it 1<", page)

    def test_the_row_of_a_restart_leaves_the_step_it_starts_from(self):
        rows = [progress(step) for step in (10, 20, 30)] + [{"event": "run", "run": "b", "global_step": 20}, progress(21, run="b")]
        self.assertEqual(len(charts(self.page(self.run_of("again", rows)))["loss"][0]), 3)

    def test_null_in_the_last_row_is_nothing_measured(self):
        rows = [progress(1), progress(2), {"event": "done", "run": "a", "global_step": 2, "loss": None, "test_accuracy": None}]
        self.assertNotIn('class="bad"', self.page(self.run_of("done", rows)))

    def test_draws_huge_losses_with_few_marks(self):
        rows = "".join(f"{step},1e{step},1e{step}\n" for step in range(1, 38))
        page = self.page(self.csv("huge.csv", "step,loss,weights\n" + rows))
        for chart in re.findall(r"<figure>.*?</figure>", page, re.S):
            self.assertTrue(4 < chart.count('class="grid"') < 10, chart)
        self.assertRegex(page, r">1e\+(37|38|39|40|41|42)<")

    def test_a_diverging_loss_leaves_the_others_to_be_seen(self):
        rows = "".join(f"{step},1e{step},.{step}\n" for step in range(1, 9))
        page = self.page(self.csv("huge.csv", "step,loss,val_loss\n" + rows))
        self.assertIn("above 100k cut off", page)
        huge, small = charts(page)["loss"]
        self.assertEqual([y for x, y in huge[4:]], [18, 18, 18, 18])
        self.assertIn("8,1e+08", page)  # the pointer shows it

    def test_takes_any_csv_with_a_header(self):
        for name, text, points, unit in (
                ("a.txt", "loss,step\n2,100\n1,200\n", "100,2 200,1", "step"),
                ("b.log", "global_step;Loss;note\n5;0,5;x\n10;0,25;y\n", "5,0.5 10,0.25", "step"),
                ("c.tsv", "\ufeffEpoch\tloss\r\n1\t2\r\n2\t+1\r\n", "1,2 2,1", "epoch"),
                ("d", "loss, time\n2, 12:30\n1, 12:31\n\n", "1,2 2,1", "row"),
                ("e.dat", "epoch,step,loss\n0,10,2\n0,20,\n1,30,1\n", "10,2 30,1", "step"),
                ("f.csv", '"epoch","loss"\n0,2\n1,1\n', "1,2 2,1", "epoch"),
                ("g.csv", "step,loss\n1,2\n2,1\n3", "1,2 2,1", "step")):  # being written
            done = inspect(self.csv(name, text))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f'data-points="{points}"', done.stdout, name)
            self.assertIn(f">{unit}</text>", done.stdout, name)
            self.assertEqual("x is the row's number" in done.stderr, unit == "row", name)

    def test_says_what_is_wrong_with_a_csv(self):
        for text, said in (("1,2\n3,4\n", "its first line holds numbers"),
                           ("step,loss\nx,4\n5,6\n", 'a.csv:2: step is "x", which is no number'),
                           ("step,loss\n1,2,3\n5,6\n", "a.csv:2: 3 fields; there are 2 columns"),
                           ("step,loss\n", "there is nothing to plot")):
            done = inspect(self.csv("a.csv", text))
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (1, "", 1))
            self.assertIn(said, done.stderr)

    def test_draws_by_steps_where_all_know_them(self):
        paths = [self.csv("a.csv", "step,loss\n1,2\n2,1\n"), self.run_of("b", [progress(1), progress(2)])]
        self.assertIn('data-unit="step"', self.page(*paths))
        mixed = self.page(*paths, self.csv("c.csv", "epoch,loss\n1,2\n"))
        self.assertIn('data-unit="step or epoch"', mixed)
        self.assertEqual(re.findall(r"<small>by (\w+)</small>", mixed), ["step", "epoch", "epoch"])
        odd = inspect(self.csv("d.csv", "step,epoch,loss\n1,,2\n"), os.path.join(self.folder, "c.csv"))
        self.assertIn("by steps, as its epochs cannot be read", odd.stderr)
        self.assertEqual(re.findall(r"<small>by (\w+)</small>", odd.stdout), ["step", "epoch"])

    def test_no_two_of_24_runs_look_alike(self):
        paths = [self.csv(f"{i}.csv", "step,loss\n1,2\n2,1\n") for i in range(24)]
        page = self.page(*paths)
        keys = re.findall(r'<li>.*?stroke="(.*?)".*?<path d="M\S+ \d+\.\d(.*?)"', page)
        self.assertEqual(len(set(keys)), 24)
        light, dark = re.findall(r"(--ground: .*?)}", page, re.S)[:2]
        for theme in (light, dark):
            colors = re.findall(r"--c\d+: (#\w{6})", theme)
            self.assertEqual(len(colors), 12)
            card = re.search(r"--card: (#\w{6})", theme).group(1)
            for i, color in enumerate(colors):
                self.assertGreaterEqual(contrast(color, card), 3, color)  # WCAG 2.1, 1.4.11
                for other in colors[:i]:
                    self.assertGreater(difference(color, other), 25, (color, other))

    def watch(self, *words):
        process = subprocess.Popen([INSPECT, "plot", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        return process

    def wait_for(self, page, text):
        deadline, read = time.monotonic() + 60, ""
        while time.monotonic() < deadline:
            if os.path.exists(page):
                with open(page) as file:
                    read = file.read()
                self.assertTrue(read.endswith("</html>\n"))  # never a part of it
                if text in read:
                    return read
            time.sleep(.05)
        self.fail(f"{text!r} did not appear in {read[:4000]}")

    def test_watches_logs_that_grow(self):
        page, later = os.path.join(self.folder, "live.html"), os.path.join(self.folder, "later")
        for end in (signal.SIGTERM, signal.SIGINT):
            process = self.watch(later, "--watch", page)
            self.assertIn('http-equiv="refresh" content="5"', self.wait_for(page, "later: cannot be read"))
            self.run_of("later", [progress(1), progress(2)], '{"event": "progr')
            self.wait_for(page, 'data-points="1,2 2,1"')
            process.send_signal(end)
            out, err = process.communicate(timeout=30)
            self.assertEqual(process.returncode, 0, err)
            self.assertIn("live.html shows 0 trainings; Ctrl-C ends", out)
            self.assertEqual(err.count("later: cannot be read"), 1)
            self.assertEqual(sorted(os.listdir(self.folder)), ["later", "live.html"])
            shutil.rmtree(later), os.remove(page)

    def test_watch_says_what_is_wrong(self):
        folder = self.run_of("a", [progress(1)])
        for words, code, text in (((folder, "--watch"), 2, "--watch needs the file"),
                                  (("--watch", "x.html"), 2, "no folder given"),
                                  ((folder, "--watch", os.path.join(self.folder, "none", "x.html")), 1, "cannot write")):
            done = inspect(*words)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (code, "", 1), done.stderr)
            self.assertIn(text, done.stderr)

    def dom_after(self, page, script, *flags, size="1440,1200"):
        """The text that `script` writes into the page, run in Chromium behind the page's own script."""
        path = os.path.join(self.folder, "dom.html")
        with open(path, "w") as file:
            file.write(page + f"<pre id=found></pre><script>document.getElementById('found').textContent = (() => {{ {script} }})();</script>")
        done = subprocess.run([*self.chromium(), *flags, "--window-size=" + size, "--dump-dom", "file://" + path],
                              capture_output=True, text=True, timeout=90, check=True)
        return re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.S).group(1)

    def chromium(self):
        return [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
                "--disable-sync", "--user-data-dir=" + os.path.join(self.folder, "profile")]

    @unittest.skipUnless(CHROMIUM, "there is no Chromium to look with")
    def test_the_charts_text_is_as_large_as_the_pages_however_few_charts_there_are(self):
        measured = "const svg = document.querySelector('figure > svg'); return 12 * svg.getBoundingClientRect().width / 360;"
        for columns in ("loss", "loss,accuracy", "loss,accuracy,lr,a,b"):
            row = ",".join("1" for _ in columns.split(","))
            page = self.page(self.csv("a.csv", f"step,{columns}\n1,{row}\n2,{row}\n"))
            for size in ("1440,1200", "800,1200", "500,900"):
                self.assertTrue(11 <= float(self.dom_after(page, measured, size=size)) <= 13.3, (columns, size))

    @unittest.skipUnless(CHROMIUM, "there is no Chromium to look with")
    def test_pointer_tap_and_keys_show_all_values(self):
        page = self.page(self.csv("a.csv", "step,loss\n0,2\n50,1.5\n100,nan\n"), self.csv("<b>.csv", "step,loss\n0,3\n48,2.5\n"))
        tip = "(document.querySelector('.tip') || {innerText: 'none'}).innerText.replace(/\\s+/g, ' ')"
        at = ("const svg = document.querySelector('figure > svg'), box = svg.getBoundingClientRect(), said = [];"
              "const send = (kind, share, pointer) => { svg.dispatchEvent(new PointerEvent(kind, {bubbles: true, pointerType: pointer,"
              f"clientX: box.left + box.width * (50 + share * 290) / 360, clientY: box.top + 50}})); said.push({tip}); }};"
              f"const key = name => {{ svg.dispatchEvent(new KeyboardEvent('keydown', {{key: name}})); said.push({tip}); }};")
        said = self.dom_after(page, at + "send('pointermove', .5, 'mouse'); send('pointerleave', 1, 'mouse'); send('pointerdown', .99, 'touch');"
                              "send('pointerleave', 1, 'touch'); key('ArrowLeft'); key('Home'); key('Escape'); return said.join('|');")
        self.assertEqual(said.replace("&lt;", "<").replace("&gt;", ">").split("|"),
                         ["step 50 a 1.5 <b> 2.5 at 48", "none", "step 100 a NaN <b> 2.5 at 48", "step 100 a NaN <b> 2.5 at 48",
                          "step 50 a 1.5 <b> 2.5 at 48", "step 0 a 2 <b> 3", "none"])

    @unittest.skipUnless(CHROMIUM, "there is no Chromium to look with")
    def test_chromium_shows_the_curves_in_light_and_dark(self):
        page, shot = os.path.join(self.folder, "plot.html"), os.path.join(self.folder, "shot.png")
        paths = [self.run_of(name, [progress(step) for step in range(1, 50)]) for name in ("one", "two")]
        with open(page, "w") as file:
            file.write(self.page(*paths))
        for dark, ground, lines in (([], (0xfc, 0xfc, 0xfb), (0xd5, 0x5e, 0x00)),
                                    (["--blink-settings=preferredColorScheme=0"], (0x14, 0x17, 0x1a),
                                     (0xff, 0x9a, 0x4d))):
            subprocess.run([*self.chromium(), *dark, "--window-size=390,500", "--screenshot=" + shot, "file://" + page],
                           capture_output=True, timeout=90, check=True)
            colors = pixels(shot)
            self.assertIn(bytes(ground), colors)
            self.assertIn(bytes(lines), colors)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
