#!/usr/bin/env python3
"""scripts/check_api on made-up headers."""
import importlib.machinery
import importlib.util
import os
import sys
import tempfile
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.dont_write_bytecode = True
LOADER = importlib.machinery.SourceFileLoader("check_api", os.path.join(ROOT, "scripts", "check_api"))
check_api = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_api", LOADER))
LOADER.exec_module(check_api)


class CheckApi(unittest.TestCase):
    def findings(self, declarations, head="// A unit.\n"):
        with tempfile.NamedTemporaryFile("w", suffix=".h") as file:
            file.write(f"{head}#pragma once\nnamespace kolo {{\n{declarations}\n}}\n")
            file.flush()
            return [line.split(": ", 1)[1] for line in check_api.findings(file.name)]

    def test_what_has_no_comment_is_listed(self):
        self.assertEqual(["function add has no comment"], self.findings("int add(int a,\n        int b);"))
        self.assertEqual(["struct Sum has no comment"], self.findings("template <typename T>\nstruct Sum {\n  T a;\n};"))
        self.assertEqual([], self.findings("/// Adds.\nint add(int a);\nint sub(int a);"))
        self.assertEqual([], self.findings("class Forward;\nusing A = int (*)(int);\nnamespace detail {\nint add(int a);\n}"))

    def test_a_class_says_which_threads_call_it(self):
        queue = "class Queue {\n public:\n  void push(int a);\n  int size() const;\n\n private:\n  int b_;\n};"
        self.assertEqual(["class Queue does not say which threads call it"], self.findings("/// Holds.\n" + queue))
        self.assertEqual([], self.findings("/// Holds. Any thread.\n" + queue))
        self.assertEqual([], self.findings("/// Holds.\n" + queue, head="// Queues, for one thread at a time.\n"))
        self.assertEqual([], self.findings("/// A value: a name.\nclass Name {\n public:\n  int size() const;\n};"))
        self.assertEqual(["class Name does not say which threads call it"], self.findings("/// A name.\nclass Name {\n public:\n  int size() const;\n};"))

    def test_a_class_is_called_by_the_threads_of_its_base(self):
        hook = "/// Called on the thread that runs.\nclass Hook {\n public:\n  virtual void begin();\n};\n"
        own = "/// Stops.\nclass StopHook final : public Hook {\n public:\n  void begin() override;\n};\n"
        self.assertEqual([], self.findings(hook + own))
        self.assertEqual([], self.findings(hook + own + "/// Later.\nclass LateHook : public StopHook {\n  int a_;\n};"))
        self.assertEqual(["class StopHook does not say which threads call it"], self.findings(own))


if __name__ == "__main__":
    unittest.main()
