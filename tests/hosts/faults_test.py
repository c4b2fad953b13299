#!/usr/bin/env python3
"""A rank or a host is lost in the middle of a training: the job is over within 10 s, says who is gone, and its checkpoint serves."""
import contextlib
import os
import re
import signal
import subprocess
import time

import hosts

TRAIN = [hosts.BIN / "kolo-train", "--model", "mlp", "--data", "generated", "--batch-size", 16, "--threads", 1, "--json", "--log-steps", 1]
LIMIT_S = 10


class Faults(hosts.FolderTest):
    def setUp(self):
        super().setUp()
        self.cluster = hosts.Hosts(2, slots=2).__enter__()
        self.addCleanup(self.cluster.close)

    def saved_steps(self):
        return sorted(int(re.search(r"ckpt-(\d+)\.", p.name).group(1)) for p in self.folder.glob("model.ckpt-*.index.json"))

    def start(self, *launcher):
        """A training on both hosts, some steps old."""
        process = self.cluster.popen([*launcher, *TRAIN, "--steps", 10**7, "--save-steps", 5, "--checkpoint-dir", self.folder],
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 60
        while len(self.saved_steps()) < 2:
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                self.fail(f"the training did not start: {hosts.Result(process.returncode, *process.communicate())}")
            time.sleep(0.05)
        return process

    def end(self, process):
        begin = time.monotonic()
        result = hosts.finish(process, deadline=3 * LIMIT_S)
        self.assertLess(time.monotonic() - begin, LIMIT_S, result)
        self.assertNotEqual(result.code, 0, result)
        return result

    def assert_gone(self, result, ranks):
        """A line for each rank, with the last step, and nothing of another rank."""
        gone = re.findall(r"rank (\d+) on node2 is gone \(last step (\d+)\)", result.err)
        self.assertEqual({int(rank) for rank, _ in gone}, set(ranks), result)
        self.assertTrue(all(int(step) >= 5 for _, step in gone), result)

    def assert_training_goes_on(self):
        saved = self.saved_steps()[-1]
        result = self.cluster.run(["mpirun", "--host", "node1:4", "--bind-to", "none", "-n", 4, *TRAIN,
                                   "--steps", saved + 5, "--checkpoint-dir", self.folder])
        self.assertEqual(result.code, 0, result)
        self.assertIn(f'"global_step":{saved + 5}', result.out.splitlines()[-1])
        self.assertIn(f'"global_step":{saved + 1},', result.out)

    def kolorun(self):
        return self.start(hosts.BIN / "kolorun", "-q", "--hostfile", self.cluster.hostfile, "--")

    def mpirun(self, *options):
        return self.start("mpirun", "--hostfile", self.cluster.hostfile, "--bind-to", "none", *options)

    def kill_rank(self, rank):
        os.kill(self.cluster.rank_pids(TRAIN[0])[rank], signal.SIGKILL)

    def test_a_rank_on_the_other_host_is_killed(self):
        process = self.kolorun()
        self.kill_rank(3)
        self.assert_gone(self.end(process), [3])
        self.assert_training_goes_on()

    def test_a_rank_on_the_other_host_is_killed_under_plain_mpirun(self):
        process = self.mpirun()
        self.kill_rank(3)
        self.assertRegex(self.end(process).err, r"rank 3\b.*node2")
        self.assert_training_goes_on()

    def test_the_survivors_of_a_lost_host_say_so_under_plain_mpirun(self):
        process = self.mpirun()
        begin = time.monotonic()
        self.cluster.link("node2", "down")
        # Each survivor watches one rank of the lost host; the first to know ends the job, and speaks for the whole host.
        os.set_blocking(process.stderr.fileno(), False)
        said, gone = "", set()
        while gone != {"2", "3"}:
            self.assertLess(time.monotonic() - begin, LIMIT_S, said)
            with contextlib.suppress(BlockingIOError):
                said += os.read(process.stderr.fileno(), 1 << 16).decode()
            gone = set(re.findall(r"rank (\d+) on node2 is gone \(last step \d+\)", said))
            time.sleep(0.05)
        while self.cluster.rank_pids(TRAIN[0]).keys() & {0, 1}:
            self.assertLess(time.monotonic() - begin, LIMIT_S)
            time.sleep(0.05)
        process.kill()  # it waits for the daemon of node2
        process.wait()
        process.stdout.close()
        process.stderr.close()

    def test_the_link_of_a_host_goes_down(self):
        process = self.kolorun()
        self.cluster.link("node2", "down")
        self.assert_gone(self.end(process), [2, 3])
        self.assert_training_goes_on()

    def test_a_host_loses_power(self):
        process = self.kolorun()
        self.cluster.link("node2", "down")
        self.cluster.kill_host("node2")
        self.assert_gone(self.end(process), [2, 3])

    def test_all_processes_of_a_host_are_ended(self):
        process = self.kolorun()
        self.cluster.kill_host("node2")
        self.assert_gone(self.end(process), [2, 3])

    def test_a_link_that_is_down_for_a_second_is_survived(self):
        process = self.kolorun()
        self.cluster.link("node2", "down")
        time.sleep(1)
        self.cluster.link("node2", "up")
        step = self.saved_steps()[-1]
        deadline = time.monotonic() + 30
        while process.poll() is None and self.saved_steps()[-1] <= step + 10 and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertGreater(self.saved_steps()[-1], step + 10)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(hosts.finish(process).code, 0)


if __name__ == "__main__":
    hosts.main()
