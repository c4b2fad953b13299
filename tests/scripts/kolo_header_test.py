"""kolo.h brings every public header."""
import importlib.machinery
import importlib.util
import os
import re
import sys
import unittest

# They need mpi.h, or a compiler that is told of OpenMP; kolo.h asks for neither.
LEFT_OUT = {"collectives/job/mpi_interop.h", "core/kernels/cpu/parallel.h"}
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def load_check_layers():
    loader = importlib.machinery.SourceFileLoader("check_layers", os.path.join(ROOT, "scripts", "check_layers"))
    sys.dont_write_bytecode = True
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_layers", loader))
    loader.exec_module(module)
    return module


class KoloHeader(unittest.TestCase):
    def test_brings_every_public_header_but_two_that_need_more(self):
        layers = load_check_layers()
        public = {path for path in layers.files_below(ROOT, (".h",)) if layers.is_public_header(ROOT, path)}
        with open(os.path.join(ROOT, "kolo.h"), encoding="utf-8") as file:
            brought = set(re.findall(r"#include <kolo/([^>]+)>", file.read()))
        self.assertEqual(sorted(public - LEFT_OUT - {"kolo.h"} - brought), [])
        self.assertEqual(sorted(brought - public), [])


if __name__ == "__main__":
    unittest.main()
