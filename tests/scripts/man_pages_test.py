#!/usr/bin/env python3
"""Man pages and completion hold what --help prints.

Usage: man_pages_test.py FOLDER_OF_PROGRAMS PROGRAM…
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

FOLDER, PROGRAMS = sys.argv[1], sys.argv[2:]
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "make_man_pages")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class ManPages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.out = folder.name
        subprocess.run([sys.executable, SCRIPT, FOLDER, cls.out, *PROGRAMS], check=True, timeout=120)

    def page(self, program):
        return read(os.path.join(self.out, "man1", program + ".1")).replace("\\-", "-")

    def completed(self, *words):
        script = os.path.join(self.out, "completions", words[0])
        commands = f'. "{script}"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _{words[0].replace("-", "_")}; echo "${{COMPREPLY[@]}}"'
        done = subprocess.run(["bash", "-c", commands, "bash", *words], capture_output=True, text=True, timeout=60, check=True)
        return done.stdout.split()

    def test_each_option_of_the_help_is_in_the_page_and_completed(self):
        for program in PROGRAMS:
            shown = subprocess.run([os.path.join(FOLDER, program), "--help"], capture_output=True, text=True, timeout=60,
                                   check=True).stdout
            options = re.findall(r"^  (?:-\w \[ )?(--[a-z][\w-]*)", shown, re.MULTILINE)
            self.assertTrue(options or program == "kolo-inspect", program)
            for option in options:
                with self.subTest(program=program, option=option):
                    self.assertRegex(self.page(program), rf"(?m)^\\fB.*{option}\b")
                    self.assertRegex(read(os.path.join(self.out, "completions", program)), rf'words.*{option}[ "]')

    def test_h_is_help_for_short(self):
        commands = {"kolo-inspect": ["checkpoint", "export", "flight", "gpu", "graph", "plot"], "kolo-bench": ["train", "peak"]}
        for program in [*PROGRAMS, "kolo-network-probe"]:
            for words in [[], *([command] for command in commands.get(program, []))]:
                short, full = (subprocess.run([os.path.join(FOLDER, program), *words, option], capture_output=True, text=True,
                                              timeout=60, check=False) for option in ("-h", "--help"))
                with self.subTest(program=program, words=words):
                    self.assertEqual((short.returncode, short.stderr), (0, ""))
                    self.assertNotEqual(short.stdout, "")
                    self.assertEqual(short.stdout, full.stdout)

    def test_a_page_has_the_sections_of_a_man_page(self):
        for program in PROGRAMS:
            for section in ("NAME", "SYNOPSIS", "SEE ALSO"):
                self.assertIn(f"\n.SH {section}\n", self.page(program), program)

    def test_a_word_that_the_help_breaks_is_whole_again(self):
        self.assertRegex(self.page("kolo-train"), r"resnet20\|resnet50\|vgg16")

    @unittest.skipUnless(shutil.which("mandoc") or shutil.which("groff"), "neither mandoc nor groff is here")
    def test_a_reader_of_man_pages_takes_them(self):
        for program in PROGRAMS:
            path = os.path.join(self.out, "man1", program + ".1")
            command = ["mandoc", "-T", "lint", "-W", "error"] if shutil.which("mandoc") else ["groff", "-K", "utf8", "-man", "-ww", "-z"]
            done = subprocess.run([*command, path], capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)

    def test_values_and_commands_are_completed(self):
        self.assertEqual(self.completed("kolo-train", "--model", "le"), ["lenet"])
        self.assertEqual(self.completed("kolo-train", "--checkpoint-d"), ["--checkpoint-dir"])
        self.assertEqual(self.completed("kolo-inspect", "gr"), ["graph"])
        self.assertEqual(self.completed("kolo-inspect", "graph", "--do"), ["--dot"])
        self.assertEqual(self.completed("kolo-bench", "engine", "--te"), ["--tensors"])
        self.assertEqual(self.completed("kolorun", "--bind", "c"), ["core"])
        self.assertEqual(self.completed("kolorun", "-n", "2", "--dry"), ["--dry-run"])

    def test_options_behind_the_program_are_the_programs(self):
        self.assertEqual(self.completed("kolorun", "-n", "2", "kolo-train", "--dry"), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
