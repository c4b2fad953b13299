#!/usr/bin/env python3
"""The hosts that tests run on: they are apart, and nothing of them is left."""
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

import hosts

HOSTS = str(pathlib.Path(hosts.__file__).resolve())


def processes_with(word):
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and word.encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            pass
    return found


class Leftovers(unittest.TestCase):
    """Seen from outside: these tests are not in the hosts' namespaces."""

    def outside(self):
        return (sorted(os.listdir("/sys/class/net")), sorted(os.listdir("/etc/ssh")), pathlib.Path("/etc/hosts").read_text(),
                sorted(n for n in os.listdir("/run")), sorted(n for n in os.listdir("/tmp") if n.startswith(("ompi.node", "kolo-hosts"))))  # others run mpirun on this machine

    def end_by(self, number):
        before, mark = self.outside(), f"86{os.getpid()}.{number}"  # no other sleep has this length
        command = subprocess.Popen([sys.executable, HOSTS, "--", "sh", "-c",
                                    f"mpirun --hostfile $HOSTFILE --bind-to none sleep {mark}"], stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 30
        while len(processes_with(mark)) < 5 and time.monotonic() < deadline:  # four ranks and mpirun
            time.sleep(0.05)
        self.assertGreaterEqual(len(processes_with(mark)), 5)
        command.send_signal(number)
        command.wait(timeout=10)
        deadline = time.monotonic() + 10
        while processes_with(mark) and time.monotonic() < deadline:
            time.sleep(0.02)
        self.assertEqual(processes_with(mark), [])
        self.assertEqual(self.outside(), before)

    def test_nothing_is_left_when_it_is_terminated(self):
        self.end_by(signal.SIGTERM)

    def test_nothing_is_left_when_it_is_interrupted(self):
        self.end_by(signal.SIGINT)

    def test_nothing_is_left_when_it_is_killed(self):
        self.end_by(signal.SIGKILL)

    def test_the_exit_code_is_the_commands(self):
        before = self.outside()
        self.assertEqual(subprocess.run([sys.executable, HOSTS, "--", "sh", "-c", "exit 7"]).returncode, 7)
        self.assertEqual(self.outside(), before)

    def test_traffic_has_no_way_out(self):
        routes = subprocess.run([sys.executable, HOSTS, "--", "ip", "route"], capture_output=True, text=True).stdout
        self.assertEqual(len(routes.splitlines()), 1, routes)
        self.assertTrue(routes.startswith(hosts.NETWORK), routes)


if __name__ == "__main__":
    if reason := hosts.cannot():
        print(f"skipped: {reason}")
        sys.exit(hosts.SKIPPED)
    unittest.main()
