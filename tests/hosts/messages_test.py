#!/usr/bin/env python3
"""Each kind of fault is told within 10 s, by a line that names the rank and its tensor or step: some of bench/fault_times.py's."""
import sys
import unittest

import hosts

sys.path.insert(0, str(hosts.BUILD.parents[1] / "bench"))
import fault_times  # noqa: E402


class Messages(unittest.TestCase):
    def told(self, kind):
        fault_times.measure(kind)  # fails unless the line comes, and the job ends, within the limit

    def test_of_a_training_step_that_differs(self):
        self.told("shape")

    def test_of_an_eager_call_that_differs(self):
        self.told("eager root")

    def test_of_a_rank_that_is_missing(self):
        self.told("missing")

    def test_of_a_rank_that_has_exited(self):
        self.told("exited")

    def test_of_an_exception(self):
        self.told("exception")


if __name__ == "__main__":
    hosts.main()
