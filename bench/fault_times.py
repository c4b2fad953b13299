#!/usr/bin/env python3
"""How long it takes from a fault to the line that names its rank and tensor or step: two hosts with two ranks each.

  bench/fault_times.py [--kinds shape,killed,…] [--rounds N] [--json]

Starts build/release/tests/fault_probe under kolorun on hosts made of network namespaces (tests/hosts/hosts.py; needs root), once for
each kind of fault and round; the last rank, 3 on node2, commits it. Prints a Markdown table, or with --json an object for each kind.
"""
import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import threading
import time

SOURCE = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(SOURCE / "tests" / "hosts"))
import hosts  # noqa: E402

LIMIT_S = 10
START_S = 90  # of a job by ssh, beside other work
DISAGREE = r"Ranks disagree on the training step: .*rank 3"
GONE = r"rank 3 on node2 is gone \(last step \d+\)"
# Kind of fault: what it is, and the line that tells it.
KINDS = {
    "shape": ("a gradient of another shape", DISAGREE),
    "dtype": ("a gradient of another type", DISAGREE),
    "op": ("another reduction", DISAGREE),
    "name": ("a gradient of another name", DISAGREE),
    "absent": ("one gradient less", DISAGREE),
    "missing": ("a rank does not enter its step; KOLO_STALL_WARNING_S=1", r"stalled: .*fc1.*missing on \[3\]"),
    "missing, abort": ("the same; KOLO_STALL_ABORT_S=3", r"fc1.*missing on \[3\]; the limit KOLO_STALL_ABORT_S"),
    "eager shape": ("eager call: another shape", r"Mismatched shapes for fc1/w: .*rank 3"),
    "eager dtype": ("eager call: another type", r"Mismatched data types for fc1/w: .*rank 3"),
    "eager operation": ("eager call: another operation", r"Mismatched operations for fc1/w: .*rank 3"),
    "eager reduction": ("eager call: another reduction", r"Mismatched reduction for fc1/w: .*rank 3"),
    "eager root": ("eager call: another root", r"Mismatched root ranks for fc1/w: .*rank 3"),
    "eager set": ("another list of ranks for a process set", r"Mismatched process sets for .*rank 3"),
    "eager missing": ("a rank does not make its eager call; KOLO_STALL_WARNING_S=1", r"fc1/w.*missing on \[3\]"),
    "exited": ("a rank ends with exit code 0", r"rank 3 on node2 is gone \(exited\)"),
    "exit code 3": ("a rank ends with exit code 3", r"rank 3\b"),
    "exception": ("an exception leaves main on a rank", r"rank 3 on node2: no more disk"),
    "killed": ("kill -9 of a rank", GONE),
    "link": ("the link of a host goes down", GONE),
    "host": ("a host loses its power", GONE),
}


class Lines:
    """The lines of a stream, each with the time at which it came."""

    def __init__(self, stream):
        self.lines = []
        self._thread = threading.Thread(target=lambda: [self.lines.append((time.monotonic(), line)) for line in stream], daemon=True)
        self._thread.start()

    def when(self, pattern, deadline):
        """Time and match of the first line with it; None when the deadline passes first."""
        while True:
            over = not self._thread.is_alive() or time.monotonic() > deadline
            for at, line in list(self.lines):
                if match := re.search(pattern, line):
                    return at, match
            if over:
                return None
            time.sleep(0.002)

    def text(self):
        return "".join(line for _, line in self.lines)


def measure(kind):
    """Seconds to the line and to the end of the job, and that line. Throws AssertionError if it does not come within the limit."""
    pattern = KINDS[kind][1]
    external = kind in ("link", "host")
    with hosts.Hosts(2, slots=2) as cluster:
        job = cluster.popen([hosts.BIN / "kolorun", "--hostfile", cluster.hostfile, "--", hosts.PROBE.parent / "fault_probe", kind.split(",")[0]],
                            env={"KOLO_STALL_WARNING_S": "1", "KOLO_STALL_ABORT_S": "3"} if "missing" in kind else None,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        out, err = Lines(job.stdout), Lines(job.stderr)
        if external:
            assert out.when("stepping", time.monotonic() + START_S), f"{kind}: did not start\n{err.text()}"
            fault = time.monotonic()
            cluster.link("node2", "down")
            if kind == "host":
                cluster.kill_host("node2")
        told = err.when(pattern, time.monotonic() + START_S)
        assert told, f"{kind}: no line like {pattern}\n{out.text()}{err.text()}"
        if not external:
            # Its line comes another way than the one on stderr, and may come later.
            assert out.when(" fault ", time.monotonic() + 10), f"{kind}: no rank says when\n{out.text()}{err.text()}"
            fault = max(float(line.split()[-1]) for _, line in out.lines if " fault " in line)
        try:
            job.wait(timeout=30)
        except subprocess.TimeoutExpired:
            job.kill()
            raise AssertionError(f"{kind}: the job goes on\n{err.text()}") from None
        end = time.monotonic()
        assert job.returncode != 0, f"{kind}: exit code 0"
        assert told[0] - fault <= LIMIT_S and end - fault <= LIMIT_S, f"{kind}: told after {told[0] - fault:.1f} s, over after {end - fault:.1f} s"
        return told[0] - fault, end - fault, told[1].string.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", default=";".join(KINDS), help="separated by semicolons")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    hosts.enter()
    if not options.json:
        print("| fault | told after | job over after | line |\n|---|---|---|---|")
    for kind in options.kinds.split(";"):
        found = [measure(kind) for _ in range(options.rounds)]
        told, over = (statistics.median(column) for column in list(zip(*found))[:2])
        line = re.sub(r"^(kolorun: |\[\d+\] |\[[^]]*\] [A-Z] \S+ )*", "", found[0][2])
        if options.json:
            print(json.dumps({"kind": kind, "fault": KINDS[kind][0], "told_s": round(told, 3), "over_s": round(over, 3), "line": line}), flush=True)
        else:
            print(f"| {KINDS[kind][0]} | {told:.2f} s | {over:.2f} s | `{line}` |", flush=True)


if __name__ == "__main__":
    main()
