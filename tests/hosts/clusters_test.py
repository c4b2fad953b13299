#!/usr/bin/env python3
"""Each fault of a cluster is told within its deadline, and as what it is; where nothing is lost, nothing is told."""
import ipaddress
import pathlib
import shutil
import tempfile
import time
import unittest

import cluster_faults
import hosts


class Faults(unittest.TestCase):
    def assert_told(self, kind, **how):
        cluster_faults.measure(kind, **how)

    def test_a_task_is_killed_during_a_step(self):
        self.assert_told("killed")

    def test_a_task_is_killed_between_steps(self):
        self.assert_told("killed between")

    def test_a_task_is_stopped(self):
        self.assert_told("stopped")

    def test_a_link_goes_down(self):
        self.assert_told("link down")

    def test_a_host_is_gone(self):
        self.assert_told("host gone")

    def test_a_link_that_is_down_for_a_second_is_survived(self):
        self.assert_told("link blinks")

    def test_a_restarted_task_is_another_one(self):
        self.assert_told("restarted")

    def test_the_step_of_a_killed_client_ends(self):
        self.assert_told("client killed")

    def test_a_failing_kernel_stops_the_others(self):
        self.assert_told("kernel")

    def test_close_ends_a_step(self):
        self.assert_told("close")

    def test_a_timeout_names_what_the_step_waited_for(self):
        self.assert_told("timeout")

    # Row 40 of CLUSTER.md's worked examples: from the last checkpoint on.
    def test_monitored_sessions_go_on_when_the_server_is_back(self):
        self.assert_told("recovers", away_s=1)

    def test_tasks_that_do_not_share_a_folder_write_no_shards_there(self):
        with cluster_faults.Cluster() as cluster:
            def save(folder):
                lines = cluster.client("sharded", f"grpc://{cluster.address(cluster_faults.WORKER)}", f"{folder}/model.ckpt")
                return cluster_faults.told(lines, 0)[1]

            self.assertEqual(save(cluster.folder), "3")
            own = "/run/own"  # each host's is another
            self.assertRegex(save(own), rf"FailedPrecondition .*checkpoint_dir {own} is not the same folder on {cluster_faults.PS_0}")
            self.assertEqual(cluster.hosts.run(["ls", own], host="node2").out.count("model.ckpt"), 0)

    # Row 46.
    def test_a_server_listens_where_it_is_told_to(self):
        with hosts.Hosts(2, slots=1) as cluster, tempfile.TemporaryFile() as log:
            def serve(*words):
                return cluster.popen([cluster_faults.SERVER, "--cluster", "ps|localhost:2222", "--job", "ps", "--task", "0", *words],
                                     host="node2", stderr=log)

            def check(host, address):
                return cluster.run([cluster_faults.SERVER, "--check", address], host=host)

            for words, reached in ((), 1), (("--bind", "0.0.0.0"), 0):
                server = serve(*words)
                end = time.monotonic() + cluster_faults.PATIENCE_S
                while check("node2", "localhost:2222").code != 0:
                    self.assertLess(time.monotonic(), end, "it does not serve its own host")
                found = check("node1", "node2:2222")
                self.assertEqual(found.code, reached, found)
                if not reached:
                    self.assertIn("/job:ps/replica:0/task:0 at", found.out)
                server.terminate()
                self.assertEqual(server.wait(cluster_faults.PATIENCE_S), 0)
            log.seek(0)
            self.assertEqual(log.read().decode().count("who reaches this port"), 1)


PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "clusters.md"
CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], 2222), timeout=2)"


class Firewall(unittest.TestCase):
    """The recipes of the page, on the host of a server: its own cluster is one of the two other hosts."""

    def assert_keeps_strangers_out(self, tool):
        if shutil.which(tool) is None:
            self.skipTest(f"there is no {tool} (scripts/install_deps.sh --dev)")
        recipe = next(block for block in PAGE.read_text().split("```") if block.strip().startswith(tool))
        self.assertIn("10.0.0.0/24", recipe)
        with hosts.Hosts(3, slots=1) as cluster:
            address = cluster.address("node2")

            def reaches(host):
                return cluster.run(["/usr/bin/python3", "-c", CONNECT, address], host=host).code == 0

            server = cluster.popen([cluster_faults.SERVER, "--cluster", f"ps|{address}:2222", "--job", "ps", "--task", "0"], host="node2")
            try:
                deadline = time.monotonic() + 10 * hosts.SLOWDOWN
                while not all(map(reaches, cluster.names)):
                    self.assertLess(time.monotonic(), deadline, "the server is not there")
                friend = ipaddress.ip_network(cluster.address("node1"))
                done = cluster.run(["sh", "-e", "-c", recipe.replace("10.0.0.0/24", str(friend))], host="node2")
                self.assertEqual(done.code, 0, done)
                self.assertEqual([host for host in cluster.names if reaches(host)], ["node1", "node2"])
            finally:
                server.terminate()
                server.wait(timeout=30)

    def test_of_nftables(self):
        self.assert_keeps_strangers_out("nft")

    def test_of_iptables(self):
        self.assert_keeps_strangers_out("iptables")


if __name__ == "__main__":
    hosts.main()
