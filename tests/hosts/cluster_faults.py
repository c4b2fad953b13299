"""The faults of a cluster of two hosts, and how long it takes until a client is told: for clusters_test.py and
bench/cluster_fault_times.py. The worker and its client are on node1, the parameter servers on node2."""
import contextlib
import pathlib
import re
import select
import signal
import subprocess
import tempfile
import time

import hosts

PROBE = hosts.PROBE.parent / "cluster_probe"
SERVER = hosts.BIN / "kolo-server"
WORKER = "worker 0"
PATIENCE_S = 30 * hosts.SLOWDOWN
TASKS = {"ps 0": ("node2", 2222), "ps 1": ("node2", 2223), WORKER: ("node1", 2222)}
SPEC = "ps|node2:2222;node2:2223,worker|node1:2222"
PS_0 = "/job:ps/replica:0/task:0"


class Lines:
    """What a process says, line by line."""

    def __init__(self, process):
        self.process, self._rest, self.said = process, "", []

    def next(self, pattern, deadline=PATIENCE_S):
        """The next line with it: its match."""
        end = time.monotonic() + deadline
        while True:
            while "\n" in self._rest:
                line, self._rest = self._rest.split("\n", 1)
                self.said.append(line)
                if match := re.search(pattern, line):
                    return match
            assert time.monotonic() < end, f"no line like {pattern}: {self.said[-5:]}"
            if select.select([self.process.stdout], [], [], 0.05)[0]:
                text = self.process.stdout.read1().decode()
                assert text, f"ended with {self.process.wait()} before a line like {pattern}: {self.said[-5:]}"
                self._rest += text

    def to_the_end(self):
        """All that it says, and has said, until it ends."""
        rest, _ = self.process.communicate(timeout=PATIENCE_S)
        return "\n".join([*self.said, self._rest + rest.decode()])


class Cluster(contextlib.ExitStack):
    """Servers on both hosts; all ends with it."""

    def __enter__(self):
        super().__enter__()
        self.hosts = self.enter_context(hosts.Hosts(2, slots=1))
        self.folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
        self.servers = {}
        for task in TASKS:
            self.start(task)
        for task in TASKS:
            self.wait_for(task)
        return self

    def start(self, task):
        job, index = task.split()
        with open(self.folder / f"{job}{index}.log", "ab") as log:
            self.servers[task] = self.hosts.popen([SERVER, "--cluster", SPEC, "--job", job, "--task", index],
                                                  host=TASKS[task][0], stderr=log)

    def log(self, task):
        return (self.folder / f"{task.replace(' ', '')}.log").read_text()

    def address(self, task):
        return "{}:{}".format(*TASKS[task])

    def check(self, task):
        return self.hosts.run([SERVER, "--check", self.address(task)], host=TASKS[task][0])

    def until(self, what, condition, deadline=PATIENCE_S):
        end = time.monotonic() + deadline
        while not condition():
            assert time.monotonic() < end, f"not within {deadline} s: {what}"

    def wait_for(self, task):
        self.until(f"{task} answers", lambda: self.check(task).code == 0)

    def waits(self, task):
        return re.search(r"^  step \d+ .*\btake\b", self.check(task).out, re.MULTILINE) is not None

    def signal(self, task, number):
        self.servers[task].send_signal(number)
        if number == signal.SIGKILL:
            self.servers[task].wait()

    def client(self, *words, **where):
        process = self.hosts.popen([PROBE, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, **where)
        self.callback(self._end, process)
        return Lines(process)

    @staticmethod
    def _end(process):
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()

    def run(self, kind):
        """A client that is ready, and in the step where the kind has one."""
        lines = self.client(kind, f"grpc://{self.address(WORKER)}")
        lines.next("^ready")
        if kind not in ("between", "timeout", "count"):
            self.until("the step waits", lambda: self.waits("ps 0"))
        return lines


def go(lines):
    lines.process.stdin.write(b"\n")
    lines.process.stdin.flush()


def told(lines, since, deadline=PATIENCE_S):
    """Seconds until the client was told, and what."""
    match = lines.next(r"^(?:told|value) ([\d.]+) (.*)", deadline)
    return float(match[1]) - since, match[2]


def killed_during(cluster):
    lines = cluster.run("during")
    fault = time.monotonic()
    cluster.signal("ps 0", signal.SIGKILL)
    return told(lines, fault)


def killed_between(cluster):
    lines = cluster.run("between")
    cluster.signal("ps 0", signal.SIGKILL)
    fault = time.monotonic()
    go(lines)
    return told(lines, fault)


def stopped(cluster):
    lines = cluster.run("during")
    fault = time.monotonic()
    cluster.signal("ps 0", signal.SIGSTOP)
    return told(lines, fault)


def link_down(cluster):
    lines = cluster.run("during")
    fault = time.monotonic()
    cluster.hosts.link("node2", "down")
    return told(lines, fault)


def host_gone(cluster):
    lines = cluster.run("during")
    fault = time.monotonic()
    cluster.hosts.link("node2", "down")
    cluster.hosts.kill_host("node2")
    return told(lines, fault)


def link_blinks(cluster):
    """Tells how long steps took longer than they were to run, and how often they did."""
    lines = cluster.run("count")
    begin = time.monotonic()
    time.sleep(1)
    cluster.hosts.link("node2", "down")
    time.sleep(1)
    cluster.hosts.link("node2", "up")
    after, text = told(lines, begin)
    return after - 3, text


def restarted(cluster):
    lines = cluster.run("between")
    cluster.signal("ps 0", signal.SIGKILL)
    cluster.start("ps 0")
    cluster.wait_for("ps 0")
    fault = time.monotonic()
    go(lines)
    return told(lines, fault)


def client_killed(cluster):
    lines = cluster.run("during")
    fault = time.monotonic()
    lines.process.kill()
    for task in ("ps 0", WORKER):
        cluster.until(f"{task} ends the step", lambda: " step " not in cluster.check(task).out)
    after = time.monotonic() - fault
    return after, "no step left" if "is gone; its runs are cancelled" in cluster.log(WORKER) else "nothing in the log"


def by_client(kind):
    def measure(cluster):
        lines = cluster.run(kind)
        if kind != "timeout":
            go(lines)
        fault = float(lines.next(r"^fault ([\d.]+)")[1])
        return told(lines, fault)
    return measure


def recovers(cluster, away_s=5, last_step=200):
    """Seconds from the server's being back until all clients step again, from the checkpoint, and how they ended."""
    target = f"grpc://{cluster.address(WORKER)}"
    clients, logs = [], [cluster.folder / f"{who}.log" for who in ("chief", "worker")]
    for log in logs:
        with open(log, "wb") as stderr:
            clients.append(cluster.client("train", target, log.stem, cluster.folder / "saved", last_step, stderr=stderr))
    for lines in clients:
        while int(lines.next(r"^step [\d.]+ (\d+)")[1]) < 57:
            pass
    cluster.signal("ps 0", signal.SIGKILL)
    time.sleep(away_s)
    cluster.start("ps 0")
    cluster.wait_for("ps 0")
    back, again = time.monotonic(), []
    for lines in clients:
        while True:
            match = lines.next(r"^step ([\d.]+) (\d+)")
            if float(match[1]) >= back:
                break
        again.append(float(match[1]) - back)
        assert int(match[2]) > 40, f"step {match[2]}: the checkpoint of step 40 was not restored"
    ends, last = [], 0
    for lines in clients:
        last = max(last, *map(int, re.findall(r"^step [\d.]+ (\d+)$", lines.to_the_end(), re.MULTILINE)))
        ends.append(lines.process.returncode)
    # One of them may be within a step while the other one takes the last.
    asked = "the step asked for" if last_step <= last <= last_step + 1 else f"step {last}"
    told_of = sum("An error was raised. This may be due to a preemption" in log.read_text() for log in logs)
    return max(again), f"exit codes {ends} at {asked}, {told_of} logs tell of it"


UNAVAILABLE = rf"Unavailable .*From {PS_0}:"
# Kind: what it is, what measures it, within how many seconds, and the text that tells it.
KINDS = {
    "killed": ("task killed (-9) during a step", killed_during, 1, UNAVAILABLE),
    "killed between": ("task killed between steps, from the next run on", killed_between, 1, UNAVAILABLE),
    "stopped": ("task stopped (SIGSTOP)", stopped, 6, UNAVAILABLE + ".*no answer for 4 s"),
    "link down": ("link down", link_down, 6, UNAVAILABLE + ".*no answer for 4 s"),
    "host gone": ("host gone", host_gone, 6, UNAVAILABLE + ".*no answer for 4 s"),
    "link blinks": ("link down for 1 s, steps beside it go on", link_blinks, 3, r"^\d+$"),
    "restarted": ("task restarted between runs", restarted, 1, r"Aborted.*(different device incarnation|is not found)"),
    "client killed": ("client killed during a run, until no task has its step", client_killed, 2, "no step left"),
    "kernel": ("a kernel fails on another task, until all are stopped", by_client("kernel"), 0.2,
               r"InvalidArgument .*From /job:ps/replica:0/task:1:.*bad"),
    "close": ("close() from another thread", by_client("close"), 0.5, r"Cancelled.*Session::close"),
    "timeout": ("timeout of a run, beyond it", by_client("timeout"), 0.5, r"DeadlineExceeded.*waiting for .*take"),
    "recovers": ("task killed, back after 5 s; monitored sessions step again after", recovers, 10,
                 r"exit codes \[0, 0\] at the step asked for, 2 logs tell of it"),
}


def measure(kind, **how):
    """Seconds, and the text. Throws AssertionError for another text or where it takes too long."""
    _, function, limit, pattern = KINDS[kind]
    with Cluster() as cluster:
        after, text = function(cluster, **how)
        logs = {task: cluster.log(task)[-600:] for task in TASKS}
    assert re.search(pattern, text), f"{kind}: {text}\n{logs}"
    assert after <= limit * hosts.SLOWDOWN, f"{kind}: told after {after:.2f} s: {text}\n{logs}"
    return after, text
