#!/usr/bin/env python3
"""kolorun as the launcher of an MPI operator's job: workers from the MPI's own variable, no rank on its own host."""
import json
import os
import pathlib
import re
import signal
import subprocess

import hosts

FOLDER = pathlib.Path(__file__).parent
PAGE = (FOLDER.parents[1] / "docs" / "batch_systems.md").read_text()
KOLORUN = hosts.BIN / "kolorun"
SLEEPY = hosts.PROBE.parent / "sleepy"


class Launcher(hosts.FolderTest):
    @classmethod
    def setUpClass(cls):
        cls.cluster = hosts.Hosts(3)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)

    def setUp(self):
        super().setUp()
        self.hostfile = self.folder / "hostfile"
        self.hostfile.write_text("node2 slots=2\nnode3 slots=1\n")

    def start(self, *command, **env):
        return self.cluster.popen([KOLORUN, "--prefix", "never", *command], env={"OMPI_MCA_orte_default_hostfile": str(self.hostfile), **env},
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def test_ranks_are_on_the_workers_alone(self):
        result = hosts.finish(self.start(hosts.PROBE, "topology"))
        self.assertEqual(result.code, 0, result)
        ranks = [json.loads(line) for line in result.out.splitlines() if line.startswith("{")]
        self.assertEqual(sorted((r["rank"], r["hostname"]) for r in ranks), [(0, "node2"), (1, "node2"), (2, "node3")])

    def test_a_folder_of_the_ranks_is_named_after_the_operators_job(self):
        result = hosts.finish(self.start(hosts.BIN / "kolo-train", "--model", "mlp", "--data", "generated", "--threads", 1, "--steps", 2,
                                         "--checkpoint-dir", f"{self.folder}/ck-{{job}}", HOSTNAME="digits-launcher-x7k2p"))
        self.assertEqual(result.code, 0, result)
        self.assertTrue((self.folder / "ck-digits" / "model.ckpt-2.safetensors").exists())

    def stopped(self, **env):
        job = self.start(SLEEPY, self.folder / "ck", 400, 500, **env)
        self.read_until(job, "starts at step 0")
        job.send_signal(signal.SIGTERM)
        result = hosts.finish(job)
        saved = [path.name for path in (self.folder / "ck").glob("model.ckpt-[1-9]*.index.json")]
        self.assertEqual(len(saved), 1, result)
        self.assertIn(f"ends at step {saved[0].split('-')[1].split('.')[0]}", result.out)
        self.assertNotIn("unable to start daemons", result.err)
        self.assertNotIn(" is gone", result.err)
        return result

    def test_a_request_to_stop_reaches_the_ranks_which_save(self):
        result = self.stopped()
        self.assertEqual(result.code, 0, result)

    def test_the_code_of_a_stopped_training_is_handed_on(self):
        result = self.stopped(KOLO_STOPPED_EXIT_CODE="75")
        self.assertEqual(result.code, 75, result)
        for words in ("Primary job", "MPI_ABORT"):
            self.assertNotIn(words, result.err)


    def kill_worker(self, name):
        self.cluster.kill_host(name)
        self.addCleanup(lambda: name in self.cluster.alive() or self.cluster.start_again(name))

    def line_of(self, job, start):
        return self.read_until(job, start, job.stderr)

    def read_until(self, job, start, stream=None):
        for line in stream or job.stdout:
            if line.startswith(start):
                return line
        self.fail(f"no line {start}")

    def hosts_of(self, result):
        self.assertEqual(result.code, 0, result)
        return [r["hostname"] for r in map(json.loads, result.out.splitlines())]

    def test_a_worker_that_comes_late_is_waited_for_at_each_start(self):
        self.kill_worker("node3")
        job = self.start("--restarts", 1, SLEEPY, self.folder / "ck", 40, 100, 5)
        self.assertRegex(self.line_of(job, "kolorun: waiting for node3"), r"^kolorun: waiting for node3 \(.+\)(, \d+ s)?$")
        self.cluster.start_again("node3")
        self.read_until(job, "starts at step 0")
        self.cluster.link("node3", "down")
        self.kill_worker("node3")
        self.line_of(job, "kolorun: waiting for node3")
        self.cluster.start_again("node3")
        result = hosts.finish(job)
        self.assertEqual(result.code, 0, result)
        self.assertIn("ends at step 40\n", result.out)

    def test_one_line_says_which_worker_has_not_come(self):
        self.kill_worker("node3")
        result = hosts.finish(self.start("--start-timeout", 2, hosts.PROBE, "topology"))
        self.assertEqual(result.code, 1, result)
        self.assertRegex(result.err.splitlines()[-1], r"^kolorun: node3 \(.*\) does not answer; gave up after 2 s \(--start-timeout\)$")

    def test_the_waiting_ends_by_a_signal(self):
        self.kill_worker("node3")
        job = self.start(hosts.PROBE, "topology")
        self.line_of(job, "kolorun: waiting for node3")
        job.send_signal(signal.SIGTERM)
        result = hosts.finish(job)
        self.assertEqual((result.code, result.err), (143, "kolorun: SIGTERM has ended the waiting for hosts\n"), result)

    def test_an_agent_without_the_environment_starts_the_ranks(self):
        """As kubexec.sh, which the operator's first version has in place of ssh."""
        agent = self.folder / "kubexec.sh"
        agent.write_text('#!/bin/sh\nhost=$1\nshift\nexec env -i /usr/bin/ssh "$host" env -i PATH=/usr/bin:/bin TMPDIR=/run/own /bin/sh -c "\'$*\'"\n')
        agent.chmod(0o755)
        job = self.start(hosts.PROBE, "topology", OMPI_MCA_plm_rsh_agent=str(agent))
        self.assertEqual(sorted(self.hosts_of(hosts.finish(job))), ["node2", "node2", "node3"])

    def test_a_worker_that_is_deleted_costs_no_step(self):
        """Its preStop hook has the ranks save; the launcher's pod, started again, waits for the new worker."""
        command = [SLEEPY, self.folder / "ck", 60, 100]
        job = self.start(*command, KOLO_STOPPED_EXIT_CODE="75")
        self.read_until(job, "starts at step 0")
        self.cluster.run([KOLORUN, "--stop-here"], host="node3")
        self.kill_worker("node3")
        result = hosts.finish(job)
        self.assertEqual(result.code, 75, result)
        self.assertNotIn("ended with exit code", result.err)
        stopped = re.search(r"^ends at step (\d+)$", result.out, re.MULTILINE)[1]
        job = self.start(*command)
        self.line_of(job, "kolorun: waiting for node3")
        self.cluster.start_again("node3")
        result = hosts.finish(job)
        self.assertEqual(result.code, 0, result)
        self.assertIn(f"starts at step {stopped}\n", result.out)
        self.assertIn("ends at step 60\n", result.out)

    def test_an_elastic_job_asks_the_operators_script(self):
        script = self.folder / "discover_hosts.sh"
        script.write_text("#!/bin/sh\necho node2\n")
        script.chmod(0o755)
        # Where it lies in a pod: in an /etc of this host's own.
        there = "cp -a /etc /run/own/etc && mkdir -p /run/own/etc/mpi && ln -s $0 /run/own/etc/mpi/discover_hosts.sh && mount --bind /run/own/etc /etc"
        self.assertEqual(self.cluster.run(["sh", "-c", there, script]).code, 0)
        self.addCleanup(self.cluster.run, ["umount", "/etc"])
        job = self.start("--elastic", "--discover-every", 1, "--grow-after", 1, SLEEPY, self.folder / "ck", 10**6, 50)
        self.read_until(job, "starts at step 0")
        script.write_text("#!/bin/sh\necho node2\necho node3\n")
        self.assertRegex(self.line_of(job, "kolorun: node3"), r"^kolorun: node3 is there; 2 → 3 ranks after step \d+$")
        self.read_until(job, "starts at step ")
        job.send_signal(signal.SIGTERM)
        self.assertEqual(hosts.finish(job).code, 0)


class ManyWorkers(hosts.FolderTest):
    def test_more_workers_than_a_command_line_names_have_their_ranks(self):
        with hosts.Hosts(34, slots=1) as cluster:
            hostfile = self.folder / "hostfile"
            hostfile.write_text("".join(f"{name} slots=1\n" for name in cluster.names[1:]))
            result = cluster.run([KOLORUN, "--prefix", "never", "--bind", "none", "hostname"], env={"OMPI_MCA_orte_default_hostfile": str(hostfile)})
            self.assertEqual(sorted(result.out.split()), sorted(cluster.names[1:]), result)


class BatchSystems(hosts.FolderTest):
    """With the variables that PBS and LSF set, as their manuals have them: the batch systems themselves are not here."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = hosts.Hosts(3)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)

    def hosts_of_ranks(self, *options, **env):
        result = self.cluster.run([KOLORUN, "--prefix", "never", *options, hosts.PROBE, "topology"], env=env)
        self.assertEqual(result.code, 0, result)
        ranks = sorted((r["rank"], r["hostname"]) for r in map(json.loads, result.out.splitlines()))
        return [host for _, host in ranks]

    def test_ranks_are_on_all_hosts_of_a_job_of_pbs(self):
        nodes = self.folder / "nodes"
        nodes.write_text("node1\nnode1\nnode2\nnode2\n")
        self.assertEqual(self.hosts_of_ranks(PBS_NODEFILE=str(nodes), PBS_JOBID="77.server", NCPUS="2"), ["node1"] * 2 + ["node2"] * 2)

    def test_ranks_are_on_all_hosts_of_a_job_of_lsf_but_for_one_that_only_launches(self):
        lsf = {"LSB_MCPU_HOSTS": "node1 1 node2 2 node3 2", "LSB_JOBID": "6"}
        self.assertEqual(self.hosts_of_ranks(**lsf), ["node1"] + ["node2"] * 2 + ["node3"] * 2)
        self.assertEqual(self.hosts_of_ranks("--host", "node2:2,node3:2", **lsf), ["node2"] * 2 + ["node3"] * 2)

    def run_as_on_the_page(self, file, command, **env):
        """The command, in a folder that all hosts see, with what the page's file says; returns how it ended."""
        self.assertIn((FOLDER / file).read_text(), PAGE)
        path = f"{hosts.BIN}:{os.environ['PATH']}"
        folder = hosts.SHARED / file
        folder.mkdir()
        return folder, self.cluster.run(["env", "-C", folder, *command], env={"PATH": path, "OMP_NUM_THREADS": "", **env})

    def trained_on_both_hosts(self, file, command, **env):
        folder, result = self.run_as_on_the_page(file, command, **env)
        self.assertEqual(result.code, 0, result)
        self.assertIn("done: step 100", result.out)
        self.assertTrue((folder / "ck" / "model.ckpt-100.safetensors").exists())
        started = json.loads((folder / "ck" / "config.json").read_text())
        self.assertEqual(started["global_batch"], 32, "two ranks of 16")

    def test_the_pages_script_for_pbs_trains(self):
        nodes = self.folder / "nodes"
        nodes.write_text("node1\nnode2\n")
        self.trained_on_both_hosts("train.pbs", ["bash", FOLDER / "train.pbs"], PBS_NODEFILE=str(nodes), PBS_JOBID="77.server",
                                   PBS_O_WORKDIR=str(hosts.SHARED / "train.pbs"), NCPUS="2")

    def test_the_pages_script_for_lsf_trains(self):
        self.trained_on_both_hosts("train.lsf", ["bash", FOLDER / "train.lsf"], LSB_MCPU_HOSTS="node1 2 node2 2", LSB_JOBID="6",
                                   LSB_DJOB_NUMPROC="2", LSB_DJOB_HOSTFILE=str(self.one_slot_each()))

    def one_slot_each(self):
        path = self.folder / "hosts"
        path.write_text("node1\nnode2\n")
        return path

    def test_the_pages_job_of_the_mpi_operator_trains(self):
        commands = [json.loads(" ".join(words.split())) for words in re.findall(r"command: (\[.*?\])", (FOLDER / "mpi_job.yaml").read_text(), re.DOTALL)]
        launcher, _, pre_stop = commands
        hostfile = self.folder / "hostfile"
        hostfile.write_text("node2 slots=1\nnode3 slots=1\n")
        self.trained_on_both_hosts("mpi_job.yaml", launcher, OMPI_MCA_orte_default_hostfile=str(hostfile))
        result = self.cluster.run(pre_stop, host="node2", env={"PATH": f"{hosts.BIN}:{os.environ['PATH']}"})
        self.assertEqual(result.code, 0, "no rank is left there, so nothing holds the pod")


if __name__ == "__main__":
    hosts.main(parts=2)
