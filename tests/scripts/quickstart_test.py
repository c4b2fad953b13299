"""scripts/quickstart.sh in a made-up checkout whose cmake, download and kolorun only tell that they were called."""
import os
import shutil
import subprocess
import tempfile
import unittest

SCRIPTS = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", "scripts"))
FILES = [f"{part}-{kind}-ubyte.gz" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")]


class Quickstart(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        self.write_program("scripts/install_deps.sh", "echo packages installed")
        self.write_program("scripts/download_mnist.sh", "echo download failed; exit 1")
        self.write_program("tools/cmake", 'echo "cmake $*"')
        self.write_program("build/release/bin/kolorun", 'echo "kolorun $*"; echo "a warning" >&2')
        shutil.copy(os.path.join(SCRIPTS, "quickstart.sh"), os.path.join(self.root, "scripts"))

    def write_program(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + text + "\n")
        os.chmod(path, 0o755)

    def quickstart(self, *arguments, data_dir=None):
        environment = {k: v for k, v in os.environ.items() if k != "KOLO_DATA_DIR"}
        environment["PATH"] = os.path.join(self.root, "tools") + ":" + environment["PATH"]
        if data_dir is not None:
            environment["KOLO_DATA_DIR"] = data_dir
        # Another working folder: the script finds its checkout by itself.
        return subprocess.run([os.path.join(self.root, "scripts", "quickstart.sh"), *arguments], cwd="/",
                              env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)

    def expect_trained_on(self, data, done):
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(f"kolorun -n 2 -- kolo-train --model lenet --data {data} --checkpoint-dir", done.stdout)

    def test_builds_the_programs_alone_in_few_compilations(self):
        built = [line for line in self.quickstart().stdout.splitlines() if line.startswith("cmake ")]
        self.assertEqual(built[0], "cmake --preset unity")
        self.assertRegex(built[1], r"^cmake --build --preset release -j \d+ --target kolo-train kolorun kolo-inspect$")

    def test_takes_the_data_folder_of_the_environment_first(self):
        os.makedirs(os.path.join(self.root, "elsewhere", "mnist"))
        self.write_program("scripts/download_mnist.sh", "echo must not download; exit 0")
        data_dir = os.path.join(self.root, "elsewhere")
        self.expect_trained_on(data_dir + "/mnist", self.quickstart(data_dir=data_dir))

    def test_refuses_a_data_folder_that_is_missing_before_it_builds(self):
        done = self.quickstart(data_dir="/nowhere")
        self.assertEqual(done.returncode, 1)
        self.assertIn('KOLO_DATA_DIR is "/nowhere"', done.stderr)
        self.assertNotIn("cmake", done.stdout)

    def test_takes_the_files_of_the_checkout_without_a_download(self):
        os.makedirs(os.path.join(self.root, "data", "mnist"))
        for name in FILES:
            open(os.path.join(self.root, "data", "mnist", name), "w").close()
        self.expect_trained_on("data/mnist", self.quickstart())

    def test_downloads_when_a_file_is_missing(self):
        self.write_program("scripts/download_mnist.sh", "mkdir -p data/mnist")
        self.expect_trained_on("data/mnist", self.quickstart())

    def test_trains_on_generated_digits_and_says_so_without_network(self):
        done = self.quickstart()
        self.expect_trained_on("generated", done)
        self.assertIn("training on generated digits", done.stdout)
        self.assertIn("train_logs/quickstart-generated/checkpoints", done.stdout)

    def test_hands_its_options_to_the_training_and_keeps_the_log(self):
        done = self.quickstart("--steps", "20")
        self.assertIn("checkpoints --steps 20", done.stdout)
        with open(os.path.join(self.root, "train_logs/quickstart-generated/train.log"), encoding="utf-8") as log:
            text = log.read()
        self.assertIn("--steps 20", text)
        self.assertIn("a warning", text)

    def test_fails_when_the_training_fails(self):
        self.write_program("build/release/bin/kolorun", "exit 7")
        self.assertEqual(self.quickstart().returncode, 7)


if __name__ == "__main__":
    unittest.main()
