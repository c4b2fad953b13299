"""What the pages show is true: code is cut from files that are built, options exist, links lead somewhere.

Usage: docs_test.py FOLDER_OF_PROGRAMS
"""
import glob
import os
import re
import subprocess
import sys
import unittest
import xml.etree.ElementTree

PROGRAMS = sys.argv[1]
ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
NAMES = ["kolo-train", "kolo-bench", "kolo-inspect", "kolorun"]


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def pages():
    return sorted(glob.glob(os.path.join(ROOT, "*.md")) + glob.glob(os.path.join(ROOT, "docs", "*.md")))


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", read(page), re.MULTILINE | re.DOTALL)


def unindented(text):
    return "\n".join(line.strip() for line in text.splitlines())


def files_below(*folders, ending):
    return [path for folder in folders for path in glob.glob(os.path.join(ROOT, folder, "**", ending), recursive=True)]


class Pages(unittest.TestCase):
    def assert_cut_from(self, language, sources):
        texts = ["\n" + unindented(read(path)) + "\n" for path in sources]
        found = 0
        for page in pages():
            for block in blocks(page, language):
                found += 1
                with self.subTest(page=os.path.relpath(page, ROOT), block=block.splitlines()[0]):
                    wanted = "\n" + unindented(block) + "\n"
                    self.assertTrue(any(wanted in text for text in texts), "no file that is built holds:\n" + block)
        self.assertGreater(found, 0)

    # check_layers sees to it that every source is built.
    def test_code_is_cut_from_sources(self):
        self.assert_cut_from("cpp", files_below("core", "collectives", "optimizer", "models", "tests", ending="*.cc"))

    def test_cmake_code_is_cut_from_the_outside_project(self):
        self.assert_cut_from("cmake", files_below("tests/package", ending="CMakeLists.txt"))

    def test_the_example_of_the_readme_is_the_whole_program(self):
        program = read(os.path.join(ROOT, "models", "examples", "train_mnist.cc"))
        main_block = max(blocks(os.path.join(ROOT, "README.md"), "cpp"), key=len)
        self.assertTrue(program.endswith("\n" + main_block))

    def test_commands_use_options_that_the_programs_have(self):
        helps = {}
        for name in NAMES:
            shown = subprocess.run(
                [os.path.join(PROGRAMS, name), "--help"], capture_output=True, text=True, timeout=60, check=True
            )
            helps[name] = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", shown.stdout))
        checked = 0
        for page in pages():
            for block in blocks(page, "(?:sh)?"):
                for line in block.splitlines():
                    command = line.split("#")[0]
                    # The options behind a program's name, up to the next program's.
                    for name, words in re.findall(rf"({'|'.join(NAMES)})\b((?:(?!{'|'.join(NAMES)}).)*)", command):
                        for option in re.findall(r"(?<=\s)--?[a-z][\w-]*", words.split(" -- ")[0]):
                            checked += 1
                            self.assertIn(option, helps[name], f"{os.path.relpath(page, ROOT)}: {line}")
        self.assertGreater(checked, 10)

    def test_samples_train_on_what_their_command_names(self):
        found = 0
        for page in pages():
            for block in blocks(page, ""):
                if "(generated digits)" in block:
                    found += 1
                    self.assertIn("--data generated", block, os.path.relpath(page, ROOT))
        self.assertGreater(found, 0)

    def test_drawings_are_readable_in_the_dark_and_stand_in_a_page(self):
        texts = "".join(read(page) for page in pages())
        for path in files_below("docs", ending="*.svg"):
            with self.subTest(drawing=os.path.basename(path)):
                drawing = read(path)
                xml.etree.ElementTree.fromstring(drawing)
                self.assertIn("prefers-color-scheme: dark", drawing)
                self.assertIn("<title>", drawing)
                self.assertIn(os.path.basename(path) + ")", texts)

    def test_every_mutable_global_is_on_the_page(self):
        in_function = re.compile(r"^\s+(alignas\(\d+\) )?static (?!const |constexpr|assert)[\w:<>,\* ]+?(<[\w: ]+\(\)>> |[ \*&])\w+(\[\w+\])?( =|\{|;)")
        of_thread = re.compile(r"^\s+(static )?thread_local (?!const )")
        of_namespace = re.compile(r"^(static |inline )?(std::atomic(<[^;]*>|_flag)|Mutex|thread_local [\w:<>\* ]+) ?\w+( = .*| ?\{.*|;)")
        holders = set()
        for path in files_below("core", "collectives", "optimizer", "models", "launcher", "python", ending="*.[ch]*"):
            for line in read(path).splitlines():
                is_local = in_function.match(line) and ("* const" not in line or "static auto* const" in line)
                if is_local or of_thread.match(line) or of_namespace.match(line):
                    holders.add(os.path.relpath(path, ROOT))
        section = read(os.path.join(ROOT, "docs", "architecture.md")).partition("## What a process has once")[2]
        listed = set(re.findall(r"\]\(\.\./([\w/.]+)\)", section))
        self.assertEqual(holders - listed, set(), "mutable globals that the page does not name")
        self.assertEqual(listed - holders, set(), "files of the page without a mutable global")

    def test_each_registered_name_is_on_its_page(self):
        optimizer, allreduce = r'const RegisterOptimizer \w+\("(\w+)"', r'const RegisterAllreduce \w+\("(\w+)"'
        model = r'const RegisterModel \w+\(\s*\{\.name = "(\w+)"'
        layers, activations = r"const RegisterLayer \w+\[\] = \{(.*?)\};\n\n", r"known_activations\(\) \{(.*?)\n\}"
        for page, sources, registration, name, examples in (
                ("optimizers.md", "optimizer/*.cc", optimizer, None, {"adamw", "nesterov"}),
                ("layers.md", "models/*.cc", model, None, {"mlp", "vgg16"}),
                ("collectives.md", "collectives/algorithms/*.cc", allreduce, None, {"ring", "halving_doubling"}),
                ("keras.md", "models/keras/*_layers.cc", layers, r'\{"([A-Z]\w+)",', {"Dense", "ReLU", "Add", "BatchNormalization"}),
                ("keras.md", "models/keras/activations.cc", activations, r'\{"([a-z]\w+)",', {"linear", "softmax"})):
            shown = read(os.path.join(ROOT, "docs", page))
            found = set()
            for path in glob.glob(os.path.join(ROOT, sources)):
                text = read(path)
                matches = re.findall(registration, text, re.DOTALL)
                declared = re.findall(r"const Register(?:Optimizer|Model|Allreduce|Layer) ", text)
                self.assertEqual(len(matches), len(declared) or len(matches), f"{path} registers in another form")
                found.update(matches if name is None else (each for match in matches for each in re.findall(name, match)))
            self.assertLessEqual(examples, found)
            missing = {each for each in found if f"`{each}`" not in shown}
            self.assertEqual(missing, set(), f"registered by {sources}, but not on docs/{page}")

    def test_links_lead_to_files(self):
        checked = 0
        for page in pages():
            prose = re.sub(r"^```.*?^```$", "", read(page), flags=re.MULTILINE | re.DOTALL)
            for target in re.findall(r"\]\(([^)#\s]+)", prose):
                if "://" in target:
                    continue
                checked += 1
                self.assertTrue(
                    os.path.exists(os.path.join(os.path.dirname(page), target)),
                    f"{os.path.relpath(page, ROOT)} links to {target}, which is not there",
                )
        self.assertGreater(checked, 5)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
