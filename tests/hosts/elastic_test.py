#!/usr/bin/env python3
"""Hosts of an elastic job are lost and come back: it goes on with the others, from its last checkpoint, and grows again."""
import os
import signal
import time

import elastic_jobs
import hosts
from elastic_jobs import SLEEPY, Job


class Elastic(elastic_jobs.ElasticTest):
    def test_goes_on_with_the_others_when_a_host_is_lost_and_grows_when_it_is_back(self):
        job = self.train("-H", self.names(1, 2, 3), "--min-ranks", 2, "--grow-after", 3, "--cooldown", "2:300")
        self.wait_until_saved(20)
        cut, saved = time.monotonic(), self.saved()
        self.cluster.link("node3", "down")
        _, told = job.wait_for(r"^kolorun: node3 is gone; going on with 4 ranks on node1, node2 \(restart 1, \d+\.\d s\)$")
        start, at = job.wait_for(r"^starts at step (\d+)$", times=2)
        self.assertLess(at - cut, 12 * hosts.SLOWDOWN, job.text())
        self.assertGreaterEqual(int(start[1]), saved)
        job.wait_for(r"^restart 1 after 6 ranks, lost: node3$")
        self.wait_until_saved(int(start[1]) + 10)
        time.sleep(max(0, told + 2 - time.monotonic(), at + 3 - time.monotonic()))  # it cools no more, and --grow-after is over
        self.cluster.link("node3", "up")
        back = time.monotonic()
        grown, seen = job.wait_for(r"^kolorun: node3 is there; 4 → 6 ranks after step (\d+)$")
        start, at = job.wait_for(r"^starts at step (\d+)$", times=3)
        print(f"6 ranks again {at - back:.1f} s after the link's return, {seen - back:.1f} s of them until they were asked to stop and had", flush=True)
        self.assertLess(at - back, 20 * hosts.SLOWDOWN, job.text())
        self.assertEqual(start[1], grown[1])  # no step is lost
        job.wait_for(r"^restart 2 after 4 ranks, lost:$")
        self.wait_until_saved(int(start[1]) + 10)
        self.assertEqual(len(self.cluster.rank_pids(SLEEPY)), 6)
        self.stop(job)

    def test_waits_for_the_least_ranks(self):
        job = self.train("-H", self.names(1, 2, 3), "--min-ranks", 6, "--cooldown", "2:300", "--discover-every", 1)
        self.wait_until_saved(20)
        self.cluster.link("node3", "down")
        job.wait_for(r"^kolorun: node3 is gone; waiting for 2 more ranks: node3 cools for \d s$")
        time.sleep(3)
        self.cluster.link("node3", "up")
        job.wait_for(r"^kolorun: going on with 6 ranks on node1, node2, node3 \(restart 1, \d+\.\d s\)$")
        self.wait_until_saved(self.saved() + 10)
        self.stop(job)

    def test_gives_up_when_the_least_ranks_do_not_come(self):
        job = self.train("-H", self.names(1, 2, 3), "--min-ranks", 6, "--wait-for-hosts", 3, "--discover-every", 1)
        self.wait_until_saved(20)
        self.cluster.link("node3", "down")
        text = job.over(code=1)
        self.assertIn("kolorun: 4 ranks are there, --min-ranks is 6; gave up after 3 s", text)

    def test_a_signal_ends_the_waiting(self):
        self.cluster.link("node3", "down")
        job = self.train("-H", self.names(1, 2, 3), "--min-ranks", 6)
        job.wait_for(r"^kolorun: waiting for 2 more ranks: node3 does not answer$")
        job.process.send_signal(signal.SIGTERM)
        self.assertIn("kolorun: SIGTERM has ended the waiting for hosts", job.over(code=128 + signal.SIGTERM))

    def test_starts_without_a_host_that_does_not_answer(self):
        self.cluster.link("node3", "down")
        job = self.train("-H", self.names(1, 2, 3), steps=10)
        self.assertIn("kolorun: node3 does not answer; starting with 4 ranks on node1, node2", job.over())

    def test_a_spare_replaces_a_lost_host(self):
        job = self.train("-H", self.names(1, 2, 3), "--spares", 1)
        self.replaces_by_spare(job, 4, "node1, node3")
        self.stop(job)

    def test_a_host_that_loses_its_power_is_lost(self):
        job = self.train("-H", self.names(1, 2, 3))
        self.wait_until_saved(20)
        self.cluster.link("node3", "down")
        self.cluster.kill_host("node3")
        job.wait_for(r"^kolorun: node3 is gone; going on with 4 ranks on node1, node2 ")
        self.wait_until_saved(self.saved() + 10)
        self.stop(job)

    def test_a_host_that_loses_ranks_twice_cools(self):
        job = self.train("-H", self.names(1, 2), "--grow-after", 5, "--discover-every", 1)
        self.loses_seconds_by_a_killed_rank(job, 3, "node2")
        self.assertNotIn("exit code 75", job.text())
        self.wait_until_saved(self.saved() + 10)
        self.kill_rank(2, signal.SIGBUS)  # as broken memory does
        job.wait_for(r"^kolorun: node2 has lost ranks twice in 10 minutes and is not used for 10 s; going on with 2 ranks on node1 \(restart 2, ")
        job.wait_for(r"^kolorun: node2 is there; 2 → 4 ranks after step \d+$")
        self.wait_until_saved(self.saved() + 10)
        self.kill_rank(2)
        job.wait_for(r"^kolorun: node2 has lost ranks twice in 10 minutes and is not used for 20 s; going on with 2 ranks on node1 \(restart ")
        self.wait_until_saved(self.saved() + 10)
        self.stop(job)

    def test_rank_0s_host_is_lost_and_the_lock_of_its_folder_with_it(self):
        job = self.train("-H", self.names(2, 3))
        self.wait_until_saved(20)
        rank_0 = self.cluster.rank_pids(SLEEPY)[0]
        os.kill(rank_0, signal.SIGSTOP)  # so it holds the lock, as an NFS server does for it
        saved = self.saved()
        self.cluster.link("node2", "down")
        job.wait_for(r"^kolorun: node2 is gone; going on with 2 ranks on node3 ")
        start, _ = job.wait_for(r"^starts at step (\d+)$", times=2)
        self.assertIn("has from an earlier start of this job; it is taken away", job.text())
        self.assertGreaterEqual(int(start[1]), saved)
        self.cluster.link("node2", "up")
        os.kill(rank_0, signal.SIGCONT)
        self.wait_until_saved(int(start[1]) + 10)
        self.stop(job)

    def test_all_hosts_are_lost_and_come_back(self):
        job = self.train("-H", self.names(2, 3), "--cooldown", "2:300", "--discover-every", 1)
        self.wait_until_saved(20)
        for host in ("node2", "node3"):
            self.cluster.link(host, "down")
        job.wait_for(r"^kolorun: node2, node3 are gone; waiting for 1 more rank: ")
        saved = self.saved()
        time.sleep(3)
        for host in ("node2", "node3"):
            self.cluster.link(host, "up")
        start, _ = job.wait_for(r"^starts at step (\d+)$", times=2)
        self.assertEqual(int(start[1]), saved)
        self.wait_until_saved(saved + 10)
        self.stop(job)

    def test_discovery_says_which_hosts_there_are(self):
        hosts_now = self.folder / "hosts"
        hosts_now.write_text("node1:2\nnode2 slots=2\n")
        command = f"test -e {hosts_now} && cat {hosts_now}"
        job = self.train("--discover", command, "--discover-every", 1, "--slots-per-host", 1, "--grow-after", 2)
        self.wait_until_saved(20)
        hosts_now.rename(self.folder / "away")
        job.wait_for(r"^kolorun: --discover .*: it failed; the hosts stay as they were$")
        time.sleep(2.5)
        self.assertEqual(job.text().count("stay as they were"), 1)
        hosts_now.write_text("node1:2\nnode2 slots=2\nnode3\n")
        job.wait_for(r"^kolorun: node3 is there; 4 → 5 ranks after step \d+$")
        self.wait_until_saved(self.saved() + 10)
        self.assertEqual(len(self.cluster.rank_pids(SLEEPY)), 5)
        self.stop(job)

    def test_a_new_host_that_cannot_run_ranks_is_left_out_again(self):
        hosts_now = self.folder / "hosts"
        hosts_now.write_text("node1:2\n")
        program = self.folder / "train"  # on node3 it ends at once
        program.write_text(f"#!/bin/sh\n[ $(hostname) != node3 ] || exit 4\nexec {SLEEPY} {self.checkpoints} 1000000 50 5\n")
        program.chmod(0o755)
        job = Job(self, "--discover", f"cat {hosts_now}", "--discover-every", 1, "--grow-after", 1, program)
        self.wait_until_saved(20)
        hosts_now.write_text("node1:2\nnode3:2\n")
        job.wait_for(r"^kolorun: node3 is there; 2 → 4 ranks after step \d+$")
        job.wait_for(r"^kolorun: node3 has completed no step; going on with 2 ranks on node1 \(restart 2, ")
        self.wait_until_saved(self.saved() + 10)
        self.stop(job)

    def test_a_program_is_not_asked_to_grow_before_it_takes_requests(self):
        hosts_now = self.folder / "hosts"
        hosts_now.write_text("node1:1\n")
        slow = self.folder / "train"  # as one that reads its data first
        slow.write_text(f"#!/bin/sh\necho reads\nsleep 4\nexec {SLEEPY} {self.checkpoints} 1000000 50 5\n")
        slow.chmod(0o755)
        job = Job(self, "--discover", f"cat {hosts_now}", "--discover-every", 1, "--grow-after", 1, slow)
        job.wait_for("reads$")
        hosts_now.write_text("node1:1\nnode2:1\n")
        job.wait_for(r"^kolorun: node2 is there; 1 → 2 ranks after step \d+$")
        self.assertNotIn("exit code", job.text())
        self.wait_until_saved(self.saved() + 10)
        self.stop(job)

    def test_a_request_to_stop_behind_a_loss_ends_the_job(self):
        job = self.train("-H", self.names(1, 2, slots=1))
        self.wait_until_saved(10)
        self.cluster.link("node2", "down")
        time.sleep(0.5)
        asked = time.monotonic()
        job.process.send_signal(signal.SIGTERM)
        text = job.over(code=128 + signal.SIGKILL)
        self.assertLess(time.monotonic() - asked, 15 * hosts.SLOWDOWN)  # not --stop-grace
        self.assertIn("rank 1 on node2 is gone", text)
        self.assertNotIn("Signal: Segmentation fault", text)

    def test_does_not_grow_to_more_ranks_than_the_program_takes(self):
        hosts_now = self.folder / "hosts"
        hosts_now.write_text("node1:2\n")
        train = hosts.BIN / "kolo-train"
        job = Job(self, "--discover", f"cat {hosts_now}", "--discover-every", 1, "--grow-after", 1, train, "--model", "mlp", "--data", "generated",
                  "--global-batch", 3, "--steps", 10**7, "--threads", 1, "--save-steps", 50, "--checkpoint-dir", self.checkpoints)
        self.wait_until_saved(50)
        hosts_now.write_text("node1:2\nnode3:2\n")
        job.wait_for(r"^kolorun: node3 is there; 2 → 4 ranks after step \d+$")
        job.wait_for(r"--global-batch 3 is less than 4 ranks")
        job.wait_for(r"^kolorun: the program does not start with 4 ranks; going on with 2 ranks on node1 \(restart 2, ")
        self.wait_until_saved(self.saved() + 100)
        time.sleep(3)
        self.assertEqual(job.text().count("node3 is there"), 1)
        self.stop(job)

    def goes_on_without_node2(self, job, give_notice):
        self.wait_until_saved(20)
        give_notice()
        job.wait_for(r"^kolorun: node2 is about to go; going on with 4 ranks on node1, node3 \(restart 1, ")
        stopped = self.saved()
        start, _ = job.wait_for(r"^starts at step (\d+)$", times=2)
        self.assertEqual(int(start[1]), stopped)  # no step is lost
        self.wait_until_saved(stopped + 10)
        time.sleep(2)
        self.assertNotIn("node2 is there", job.text())
        self.stop(job)

    def test_leaves_a_host_on_which_the_stop_file_appears(self):
        job = self.train("-H", self.names(1, 2, 3), "--stop-file", "/run/own/leave", "--grow-after", 1, "--discover-every", 1)
        self.goes_on_without_node2(job, lambda: self.cluster.run(["touch", "/run/own/leave"], host="node2"))

    def test_leaves_a_host_on_which_the_command_ends_with_0(self):
        job = self.train("-H", self.names(1, 2, 3), "--stop-when", "test -e /run/own/leave", "--grow-after", 1, "--discover-every", 1)
        self.goes_on_without_node2(job, lambda: self.cluster.run(["touch", "/run/own/leave"], host="node2"))

    def test_ranks_that_do_not_stop_in_time_are_counted(self):
        job = self.train("-H", self.names(1, 2), ms=4000)
        job.wait_for(r"^starts at step 0$")
        late = self.cluster.run([elastic_jobs.KOLORUN, "--stop-here", "--wait", 0.2], host="node2")
        self.assertEqual((late.code, late.out, late.err), (1, "", "kolorun: 2 of 2 ranks here did not stop within 0.2 s\n"))
        job.wait_for(r"^kolorun: node2 is about to go; going on with 2 ranks on node1 ")  # they have heard it, though
        job.wait_for(r"^starts at step 1$")
        self.stop(job)

    def test_leaves_a_host_whose_ranks_are_asked_to_stop_there(self):
        job = self.train("-H", self.names(1, 2, 3), "--grow-after", 1, "--discover-every", 1)
        def stop_here():
            result = self.cluster.run([elastic_jobs.KOLORUN, "--stop-here"], host="node2")
            self.assertEqual(result.code, 0, result)
            self.assertRegex(result.out, r"^kolorun: 2 ranks here stopped within \d+\.\d s$")
        self.goes_on_without_node2(job, stop_here)
        nothing = self.cluster.run([elastic_jobs.KOLORUN, "--stop-here"], host="node2")
        self.assertEqual((nothing.code, nothing.out), (0, "kolorun: no rank of yours runs here\n"))

    def test_ranks_that_take_no_requests_yet_are_asked_when_they_do(self):
        job = Job(self, "-H", self.names(1, 2), SLEEPY, self.checkpoints, 10**6, 50, 5, 4000)
        deadline = time.monotonic() + elastic_jobs.PATIENCE_S * hosts.SLOWDOWN
        while len(self.cluster.rank_pids(SLEEPY)) < 4:
            self.assertLess(time.monotonic(), deadline, job.text())
            time.sleep(0.02)
        early = self.cluster.run([elastic_jobs.KOLORUN, "--stop-here", "--wait", 0.5], host="node2")
        self.assertEqual((early.code, early.err), (1, "kolorun: 2 of 2 ranks here did not stop within 0.5 s; 2 did not come to where they take requests\n"))
        result = self.cluster.run([elastic_jobs.KOLORUN, "--stop-here"], host="node2")
        self.assertEqual(result.code, 0, result)
        self.assertRegex(result.out, r"^kolorun: 2 ranks here stopped within \d+\.\d s$")
        job.wait_for(r"^kolorun: node2 is about to go; going on with 2 ranks on node1 \(restart 1, ")
        job.wait_for(r"^starts at step \d+$", times=2)
        self.assertNotIn("exit code", job.text())
        self.stop(job)

    def test_ends_where_kolorun_s_own_host_is_about_to_go(self):
        job = self.train("-H", self.names(1, 2), "--stop-when", "test $(hostname) = node1 -a -e /run/own/leave")
        self.wait_until_saved(20)
        self.cluster.run(["touch", "/run/own/leave"])
        text = job.over()
        self.assertIn("kolorun: this host is about to go; the job stops", text)
        self.assertIn("ends at step", text)

    def test_failures_of_the_program_use_up_the_restarts(self):
        job = Job(self, "-H", self.names(1, 2), "sh", "-c", "[ $OMPI_COMM_WORLD_RANK != 1 ] || exit 3; sleep 60")
        text = job.over(code=3)
        for restart in (1, 2, 3):
            self.assertIn(f"kolorun: the job ended with exit code 3; restart {restart} of 3", text)

    def test_a_disagreement_is_not_started_again(self):
        probe = hosts.PROBE.parent / "fault_probe"
        text = Job(self, "-H", self.names(1, 2), probe, "shape").over(code=1)
        self.assertIn("Ranks disagree on the training step", text)
        self.assertNotIn("restart", text)

    def test_ends_with_0_when_it_is_asked_to_stop_and_with_the_code_that_was_asked_for(self):
        for options, code in (((), 0), (("--stopped-exit-code", 33), 33)):
            job = self.train("-H", self.names(1, 2), *options)
            self.wait_until_saved(self.saved() + 5)
            job.process.send_signal(signal.SIGTERM)
            job.over(code=code)


if __name__ == "__main__":
    hosts.main(parts=2)
