#!/usr/bin/env python3
"""Clusters of real processes: the examples under kolorun, and kolo-server by itself."""
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import unittest

from programs import BIN, ProgramTest, SLOWDOWN, environment

DEADLINE_S = 120 * SLOWDOWN


def run_cluster(jobs, program, *args):
    words = [str(BIN / "kolorun"), "-q", "--cluster", jobs, "--", str(BIN / program), *map(str, args)]
    return subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE_S, stdin=subprocess.DEVNULL, env=environment())


PORTS = itertools.count(10_000 + os.getpid() * 32 % 20_000)  # below those that the system gives to connections


def free_port():
    for port in PORTS:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port


class Examples(ProgramTest):
    def assert_trains(self, *args):
        done = run_cluster("ps=2,worker=2", "between_graph_mnist", *args, 60, "generated")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found = re.search(r"trained up to step (\d+): ([\d.]+) % of the test digits are right", done.stdout)
        self.assertIsNotNone(found, done.stdout + done.stderr)
        self.assertGreaterEqual(int(found[1]), 60)
        self.assertGreater(float(found[2]), 30, "10 % are right by chance")

    def test_workers_train_asynchronously(self):
        self.assert_trains()

    def test_workers_train_in_step(self):
        self.assert_trains("sync")

    def test_a_table_in_parts_learns(self):
        done = run_cluster("ps=2,worker=1", "sharded_embedding")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        losses = [float(loss) for loss in re.findall(r"loss ([\d.]+)", done.stdout)]
        self.assertEqual(len(losses), 5, done.stdout)
        self.assertLess(losses[-1], losses[0] / 4)

    def test_a_variable_outlives_its_sessions(self):
        done = subprocess.run([str(BIN / "remote_session")], capture_output=True, text=True, timeout=DEADLINE_S, env=environment())
        self.assertEqual([line.split(" of ")[0] for line in done.stdout.splitlines()], ["visit 1", "visit 2", "visit 3"], done.stderr)


# The worker asks the parameter server with the job's token and without, and then ends the job.
ASK_WITH_AND_WITHOUT = """
import json, os, subprocess, sys, time
server, cluster = sys.argv[1], json.loads(os.environ["KOLO_CLUSTER"])
if cluster["task"]["type"] == "ps":
    os.execv(server, [server])
check = [server, "--check", cluster["cluster"]["ps"][0]]
token = os.environ.pop("KOLO_CLUSTER_TOKEN_FILE")
known = dict(os.environ, KOLO_CLUSTER_TOKEN_FILE=token)
while subprocess.run(check, env=known, capture_output=True).returncode != 0:
    time.sleep(0.05)
print("stranger:", subprocess.run(check, capture_output=True, text=True).stderr)
print("token:", token, oct(os.stat(token).st_mode & 0o777), oct(os.stat(os.path.dirname(token)).st_mode & 0o777))
sys.exit(1)
"""


class Job(ProgramTest):
    def test_keeps_out_who_has_not_its_token(self):
        words = [str(BIN / "kolorun"), "-q", "--cluster", "ps=1,worker=1", "--", sys.executable, "-c", ASK_WITH_AND_WITHOUT,
                 str(BIN / "kolo-server")]
        done = subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE_S, stdin=subprocess.DEVNULL, env=environment())
        self.assertRegex(done.stdout, "stranger: .*refused this process: no or another token")
        token, mode, folder_mode = re.search(r"token: (\S+) (\S+) (\S+)", done.stdout).groups()
        self.assertEqual((mode, folder_mode), ("0o600", "0o700"))
        self.assertFalse(os.path.exists(os.path.dirname(token)), "it goes with the job")
        self.assertNotIn("without credentials", done.stderr)


class SkewedWorkers(ProgramTest):
    """A request to stop reaches the fast worker while it waits for a gradient of the slow one, which has stopped."""

    def stopped(self, number, sleep_ms):
        folder = self.folder / f"{number}-{sleep_ms}"
        words = [str(BIN / "kolorun"), "-q", "--cluster", "ps=1,worker=2", "--", str(BIN.parent / "tests" / "skewed_workers"),
                 str(folder), str(sleep_ms)]
        job = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
                               env=environment(), start_new_session=True)
        self.addCleanup(lambda: job.poll() is None and job.kill())
        under_way = 0
        while under_way < 2:  # workers
            under_way += "under way" in job.stdout.readline()
            self.assertIsNone(job.poll())
        job.send_signal(number)
        out, err = job.communicate(timeout=DEADLINE_S)
        self.assertEqual(job.returncode, 0, out + err)
        self.assertEqual(out.count("ended in order"), 2, out + err)
        self.assertNotIn("lost", err)
        self.assertTrue(list(folder.glob("model.ckpt-[1-9]*.index.json")), out + err)

    def test_save_and_end_with_0(self):
        for number, sleep_ms in ((signal.SIGTERM, 200), (signal.SIGINT, 200), (signal.SIGTERM, 700), (signal.SIGTERM, 4000)):
            with self.subTest(signal=number, sleep_ms=sleep_ms):
                self.stopped(number, sleep_ms)


class DeadPeer(ProgramTest):
    """Tasks started by hand, of which one is dead: the first signal ends a worker that waits for it."""

    def start(self, job, index):
        return subprocess.Popen([str(BIN.parent / "tests" / "skewed_workers"), str(self.folder / "ck"), "10"], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=environment(
                                    KOLO_CLUSTER=json.dumps({"cluster": self.cluster, "task": {"type": job, "index": index}})))

    def ended(self, dead):
        """Exit code and outputs of worker 0, which is asked to stop behind the death."""
        ports = [f"127.0.0.1:{free_port()}" for _ in range(3)]
        self.cluster = {"ps": ports[:1], "worker": ports[1:]}
        tasks = {place: self.start(*place) for place in (("ps", 0), ("worker", 0), ("worker", 1))}
        for task in tasks.values():
            self.addCleanup(task.communicate)
            self.addCleanup(task.kill)
        for place in (("worker", 0), ("worker", 1)):
            self.assertIn("under way", tasks[place].stdout.readline())
        tasks[dead].kill()
        tasks[dead].wait()
        worker = tasks["worker", 0]
        worker.send_signal(signal.SIGTERM)
        out, err = worker.communicate(timeout=12 * SLOWDOWN)
        return worker.returncode, out, err

    def test_another_worker(self):
        code, out, err = self.ended(("worker", 1))
        self.assertEqual(code, 0, out + err)
        self.assertIn("ended in order", out)
        self.assertTrue(list((self.folder / "ck").glob("model.ckpt-[1-9]*.index.json")), out + err)

    def test_the_parameter_server(self):
        code, out, err = self.ended(("ps", 0))
        self.assertNotEqual(code, 0, "nothing can be saved")
        self.assertIn("asked to stop", err)


class KoloServer(ProgramTest):
    def check(self, address):
        return subprocess.run([str(BIN / "kolo-server"), "--check", address], capture_output=True, text=True, timeout=DEADLINE_S,
                              env=environment())

    def test_serves_until_it_is_told_to_stop(self):
        address = f"localhost:{free_port()}"
        server = subprocess.Popen([str(BIN / "kolo-server"), "--cluster", f"ps|{address}", "--job", "ps", "--task", "0"],
                                  stderr=subprocess.DEVNULL, env=environment())
        self.addCleanup(lambda: server.poll() is None and server.kill())
        end = time.monotonic() + DEADLINE_S
        while (checked := self.check(address)).returncode != 0 and time.monotonic() < end:
            self.assertIsNone(server.poll(), "it has ended")
        self.assertTrue(checked.stdout.startswith("/job:ps/replica:0/task:0 at localhost:"), checked.stdout + checked.stderr)
        self.assertIn("/device:CPU:0 (incarnation ", checked.stdout)
        for visits in (["visit 1", "visit 2", "visit 3"], ["visit 4", "visit 5", "visit 6"]):
            done = subprocess.run([str(BIN / "remote_session"), f"grpc://{address}"], capture_output=True, text=True,
                                  timeout=DEADLINE_S, env=environment())
            self.assertEqual([line.split(" of ")[0] for line in done.stdout.splitlines()], visits, done.stderr)
        self.assertIn("4 bytes of variables", self.check(address).stdout)
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(DEADLINE_S), 0)

    def test_waits_for_no_pipe_that_is_named_as_the_cluster(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        for words in (["kolo-server", "--cluster", str(pipe), "--job", "ps", "--task", "0"], ["kolo-inspect", "plot", str(pipe)]):
            done = subprocess.run([str(BIN / words[0]), *words[1:]], capture_output=True, text=True, timeout=DEADLINE_S, env=environment())
            self.assertGreater(done.returncode, 0)
            self.assertIn(str(pipe), done.stderr)

    def test_check_names_who_does_not_answer(self):
        address = f"localhost:{free_port()}"
        done = self.check(address)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(address, done.stderr)

    def test_refuses_what_it_does_not_understand(self):
        for words, text in (([], "the cluster is missing"), (["--clustre", "x"], "did you mean"),
                            (["--cluster", "ps|h:1", "--task", "x"], "--task"), (["--cluster", "nowhere.json"], "nowhere.json")):
            done = subprocess.run([str(BIN / "kolo-server"), *words], capture_output=True, text=True, timeout=DEADLINE_S, env=environment())
            self.assertEqual(done.returncode, 2, words)
            self.assertIn(text, done.stderr)


if __name__ == "__main__":
    unittest.main()
