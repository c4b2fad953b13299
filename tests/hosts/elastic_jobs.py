"""Elastic jobs on the hosts of hosts.py, watched line by line: for elastic_test.py, elastic_slurm_test.py and bench/elastic_times.py."""
import os
import pathlib
import re
import signal
import subprocess
import threading
import time

import hosts

KOLORUN = hosts.BIN / "kolorun"
SLEEPY = hosts.PROBE.parent / "sleepy"
PATIENCE_S = 40


class Job:
    """kolorun --elastic, with each line that it writes and when that was. around: a command that starts it, as salloc."""

    def __init__(self, test, *command, host="node1", env=None, around=()):
        self.test, self.around = test, around
        self.process = test.cluster.popen([*around, KOLORUN, "--elastic", "-q", "--prefix", "never", *command], host=host, env=env,
                                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        test.addCleanup(self.end)
        self.lines = []
        self.news = threading.Condition()
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            with self.news:
                self.lines.append((time.monotonic(), line.rstrip("\n")))
                self.news.notify_all()
        with self.news:
            self.lines.append((time.monotonic(), None))
            self.news.notify_all()

    def ask_to_stop(self):
        pid = self.process.pid
        if self.around:
            pid = int(pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
        os.kill(pid, signal.SIGTERM)

    def text(self):
        return "\n".join(line for _, line in self.lines if line is not None)

    def wait_for(self, pattern, times=1, seconds=PATIENCE_S, after=0):
        """The match of the line that is the times-th one since `after`, and when it came."""
        deadline = time.monotonic() + seconds * hosts.SLOWDOWN
        with self.news:
            while True:
                found = [(re.search(pattern, line), at) for at, line in self.lines if line and at >= after and re.search(pattern, line)]
                if len(found) >= times:
                    return found[times - 1]
                over = bool(self.lines) and self.lines[-1][1] is None
                left = deadline - time.monotonic()
                if over or left <= 0:
                    raise AssertionError(f"no line {pattern!r}:\n{self.text()}")
                self.news.wait(left)

    def over(self, code=0, seconds=PATIENCE_S):
        try:
            ended = self.process.wait(timeout=seconds * hosts.SLOWDOWN)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"not over within {seconds} s:\n{self.text()}") from None
        self.reader.join()
        self.test.assertEqual(ended, code, self.text())
        return self.text()

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()


class ElasticTest(hosts.FolderTest):
    """Three hosts of two slots, which train with sleepy and save every five steps."""
    hosts_count = 3
    save_steps = 5

    def setUp(self):
        super().setUp()
        self.cluster = self.make_hosts()
        self.checkpoints = self.folder / "ck"

    def make_hosts(self):
        cluster = hosts.Hosts(self.hosts_count)
        cluster.__enter__()
        self.addCleanup(cluster.close)
        return cluster

    def names(self, *numbers, slots=2):
        return ",".join(f"node{n}:{slots}" for n in numbers)

    def train(self, *options, steps=10**6, ms=50, **how):
        return Job(self, *options, SLEEPY, self.checkpoints, steps, ms, self.save_steps, **how)

    def saved(self):
        found = [int(re.search(r"ckpt-(\d+)\.", path.name)[1]) for path in self.checkpoints.glob("model.ckpt-*.index.json")]
        return max(found, default=0)

    def wait_until_saved(self, step):
        deadline = time.monotonic() + PATIENCE_S * hosts.SLOWDOWN
        while self.saved() < step:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    def stop(self, job):
        job.ask_to_stop()
        return job.over()

    def replaces_by_spare(self, job, ranks, rest):
        """node2 is lost; the spare makes up for it."""
        self.wait_until_saved(20)
        self.assertEqual(len(self.cluster.rank_pids(SLEEPY)), ranks)
        self.cluster.link("node2", "down")
        job.wait_for(rf"^kolorun: node2 is gone; going on with {ranks} ranks on {rest} \(restart 1, ")
        self.wait_until_saved(self.saved() + 10)

    def loses_seconds_by_a_killed_rank(self, job, rank, host):
        self.wait_until_saved(20)
        killed = time.monotonic()
        self.kill_rank(rank)
        job.wait_for(rf"^rank {rank} on {host} is gone \(last step \d+\)$")
        job.wait_for(r"^kolorun: the job ended with exit code 137; restart 1 of 3$")
        _, at = job.wait_for(r"^starts at step \d+$", times=2)
        self.assertLess(at - killed, 8 * hosts.SLOWDOWN, job.text())

    def kill_rank(self, rank, number=signal.SIGKILL):
        os.kill(self.cluster.rank_pids(SLEEPY)[rank], number)
