"""Runs the tests of one file; exits with 77, which ctest takes for skipped, where what they need is missing.

Usage: run_pytest.py FILE [MODULE …]
"""
import importlib.util
import sys

for module in ["pytest", *sys.argv[2:]]:
    if importlib.util.find_spec(module) is None:
        option = "--docs" if module in ("nbclient", "ipykernel") else "--python"
        print(f"skipped: {sys.executable} has no {module}; scripts/install_deps.sh {option} installs it")
        sys.exit(77)

import pytest  # noqa: E402

sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "--tb=short", sys.argv[1]]))
