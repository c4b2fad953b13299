#!/usr/bin/env python3
"""Slurm on the hosts of hosts.py: a controller on node1, a daemon on every host, one partition of all.

  tests/hosts/slurm.py [--hosts 2] -- COMMAND …

runs COMMAND on node1 and ends with its exit code, as in

  tests/hosts/slurm.py --hosts 3 -- srun -N3 hostname

Each host offers `cpus` cores, which are the machine's first ones: hosts share them. The daemons, their keys and their
files end with the namespaces; nothing of a Slurm of this machine is read or touched.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import hosts

PROGRAMS = ("/usr/sbin/slurmctld", "/usr/sbin/slurmd", "/usr/sbin/munged", "srun", "sbatch", "scontrol")
PACKAGES = "slurm-wlm munge"
UP_S = 30
STATE_S = 10  # of a command that asks for the state
CLEAR_S = 60  # beyond KillWait

CONF = {
    "ClusterName": "lab", "SlurmctldHost": "node1", "SlurmUser": "root", "AuthType": "auth/munge",
    "ProctrackType": "proctrack/linuxproc", "TaskPlugin": "task/affinity", "SelectType": "select/cons_tres",
    "SelectTypeParameters": "CR_CPU", "SlurmdParameters": "config_overrides", "ReturnToService": 2, "MailProg": "/bin/true",
    "StateSaveLocation": "/run/slurm/state", "SlurmctldPidFile": "/run/slurm/slurmctld.pid", "SlurmctldLogFile": "/run/slurm/slurmctld.log",
    "SlurmdSpoolDir": "/run/own/slurmd", "SlurmdPidFile": "/run/own/slurmd.pid", "SlurmdLogFile": "/run/slurm/%n.log",
    # Seconds that a real site has longer.
    "KillWait": 5, "SlurmdTimeout": 15, "SchedulerType": "sched/backfill", "SchedulerParameters": "batch_sched_delay=1,bf_interval=1,sched_min_interval=100000"}


def enter(parts=1):
    """As hosts.enter(); also skips where Slurm is missing."""
    if not all(map(shutil.which, PROGRAMS)):
        print(f"skipped: packages are missing: {PACKAGES} (scripts/install_deps.sh --dev)")
        sys.exit(hosts.SKIPPED)
    hosts.enter(parts)


def main(parts=1):
    """As hosts.main()."""
    enter(parts)
    hosts.run_tests()


class LabFault(Exception):
    """The lab itself does not work: no fault of kolo."""


class Slurm:
    """With Slurm(hosts.Hosts(2)) as slurm: …  conf: further lines of slurm.conf, partitions: the words behind PartitionName."""

    def __init__(self, cluster, cpus=2, partitions=("main Default=YES",), **conf):
        self.cluster, self._daemons, self._broken = cluster, [], None
        names = cluster.names
        lines = [f"{key}={value}" for key, value in {**CONF, **conf}.items()]
        lines += [f"NodeName={name} CPUs={cpus} Boards=1 SocketsPerBoard=1 CoresPerSocket={cpus} ThreadsPerCore=1 State=UNKNOWN" for name in names]
        lines += [f"PartitionName={words} Nodes=ALL MaxTime=INFINITE State=UP" for words in partitions]
        self._conf = "\n".join(lines) + "\n"

    def __enter__(self):
        hosts.sh("mkdir", "-p", "/run/slurm/state", "/run/munge", "/etc/slurm")
        # Before the hosts are made: they see it, too.
        hosts.sh("mount", "-t", "tmpfs", "tmpfs", "/etc/slurm")
        pathlib.Path("/etc/slurm/slurm.conf").write_text(self._conf)
        pathlib.Path("/etc/slurm/cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        pathlib.Path("/etc/slurm/mpi.conf").write_text("PMIxCliTmpDirBase=/run/own\n")
        key = pathlib.Path("/run/munge/key")
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        self._start(subprocess.Popen, ["/usr/sbin/munged", "--foreground", "--force", f"--key-file={key}", "--num-threads=2",
                                       "--socket=/run/munge/munge.socket.2", "--pid-file=/run/munge/pid", "--seed-file=/run/munge/seed",
                                       "--log-file=/run/munge/log"])
        self.cluster.__enter__()
        try:
            self._start(self.cluster.popen, ["/usr/sbin/slurmctld", "-D", "-c"])
            for name in self.cluster.names:
                self._start(self.cluster.popen, ["/usr/sbin/slurmd", "-D", "-N", name], host=name)
            self._wait_until_idle()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for daemon in reversed(self._daemons):
            daemon.kill()
            daemon.wait()
        self.cluster.close()
        hosts.sh("umount", "-l", "/etc/slurm")

    def _start(self, how, command, **options):
        self._daemons.append(how(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options))

    def _wait_until_idle(self, seconds=UP_S):
        deadline = time.monotonic() + seconds * hosts.SLOWDOWN
        while True:
            said = self.cluster.run(["sinfo", "-h", "-o", "%D %T"])
            if said.out.split("\n")[0] == f"{len(self.cluster.names)} idle":
                break
            if time.monotonic() > deadline:
                raise LabFault(f"Slurm's hosts are not idle: {said}\n{self.state()}")
            time.sleep(0.1)

    def run(self, command, host="node1", env=None, deadline=60):
        """As Hosts.run. Where the deadline passes, the error has the lab's state, and the lab is cleared for the next command."""
        if self._broken:
            raise LabFault(f"an earlier test has left the lab unusable: {self._broken}")
        try:
            return self.cluster.run(command, host, env, deadline, self.state)
        except AssertionError:
            self.clear()
            raise

    def state(self):
        """For the text of a failure: the queue, the ends of the daemons' logs, and all processes on the hosts."""
        def told(*command):
            try:
                return self.cluster.run(command, deadline=STATE_S).out
            except AssertionError as late:
                return f"{' '.join(command)}: {late}"

        logs = sorted(pathlib.Path("/run/slurm").glob("*.log"), key=lambda log: log.name != "slurmctld.log")
        ends = ["\n".join([f"-- the end of {log.name}", *log.read_text(errors="replace").splitlines()[-(40 if number == 0 else 12):]])
                for number, log in enumerate(logs)]
        tree = [line[:240] for line in told("ps", "-e", "--forest", "-o", "pid,stat,wchan:20,etimes,args").splitlines()]
        return "\n".join(["-- squeue", told("squeue", "--all", "--long"), told("sinfo", "--Node", "--long"), *ends, "-- processes", *tree])

    def clear(self):
        """Cancels what is left in the queue. A command that is killed leaves its job there, and the next one would wait for its hosts."""
        try:
            self.cluster.run(["scancel", "--user=root"], deadline=STATE_S)
            self._wait_until_idle(CLEAR_S)
        except (AssertionError, LabFault) as fault:
            self._broken = str(fault)

    def popen(self, command, **options):
        return self.cluster.popen(command, **options)

    def submit(self, script, *options, env=None):
        """Hands a batch script to Slurm; its number. What it writes is in output(number)."""
        path = hosts.SHARED / "job.sh"
        path.write_text(script if script.startswith("#!") else f"#!/bin/sh\n{script}")
        result = self.run(["sbatch", "--parsable", f"--output={hosts.SHARED}/%j.out", "--open-mode=append", *options, path], env=env)
        if result.code != 0:
            raise LabFault(f"sbatch: {result}")
        return int(result.out)

    def output(self, job):
        path = hosts.SHARED / f"{job}.out"
        return path.read_text() if path.exists() else ""

    def show(self, job):
        """What `scontrol show job` says: {"JobState": …}."""
        return dict(re.findall(r"(\S+?)=(\S*)", self.run(["scontrol", "show", "job", job]).out))

    def wait_for(self, what, seconds=60):
        """Until what() is true; its value."""
        deadline = time.monotonic() + seconds * hosts.SLOWDOWN
        while not (value := what()):
            if time.monotonic() > deadline:
                raise AssertionError(f"not so within {seconds * hosts.SLOWDOWN} s")
            time.sleep(0.05)
        return value

    def wait_until_over(self, job, seconds=60):
        """The job's last state, as show() has it."""
        over = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "PREEMPTED", "NODE_FAIL")
        try:
            self.wait_for(lambda: self.show(job)["JobState"] in over, seconds)
        except AssertionError as late:
            raise AssertionError(f"{late}: job {job} is not over: {self.show(job)}\n{self.output(job)}") from None
        return self.show(job)


class LabTest(hosts.FolderTest):
    """Tests that share a lab. One that fails tells the lab's state, and leaves nothing in its queue to those behind it."""

    @classmethod
    def make_lab(cls):
        raise NotImplementedError

    @classmethod
    def setUpClass(cls):
        cls.lab = cls.make_lab()
        cls.lab.__enter__()
        cls.addClassCleanup(cls.lab.__exit__)

    def run(self, result=None):
        faults = lambda: len(result.failures) + len(result.errors)
        before = faults()
        super().run(result)
        if faults() > before and hasattr(self, "lab"):
            print(f"the lab after {self.id()}:\n{self.lab.state()}", flush=True)
            self.lab.clear()


class StoppedJobs(LabTest):
    """Tests of jobs that Slurm stops, on two hosts: one of the partition `urgent` has its jobs preempt those of `main`."""

    @classmethod
    def make_lab(cls):
        return Slurm(hosts.Hosts(2), partitions=("main Default=YES PriorityTier=1 GraceTime=20 PreemptMode=REQUEUE", "urgent PriorityTier=2 PreemptMode=OFF"),
                     PreemptType="preempt/partition_prio", PreemptMode="REQUEUE")

    def submit_command(self, *command, options=(), env=None):
        return self.lab.submit(f"exec {' '.join(map(str, command))}\n", "-N2", "-n2", *options, env=env)

    def wait_for_line(self, job, words, times=1):
        try:
            self.lab.wait_for(lambda: self.lab.output(job).count(words) >= times)
        except AssertionError as late:
            raise AssertionError(f"{late}: {words} in {self.lab.output(job)}, {self.lab.show(job)}") from None

    def over(self, job, state, code):
        shown = self.lab.wait_until_over(job)
        self.assertEqual((shown["JobState"], shown["ExitCode"]), (state, f"{code}:0"), self.lab.output(job))
        return self.lab.output(job)

    def preempt(self, job, words):
        """Returns when `words` tell of the stop and the job that preempts this one is over."""
        urgent = self.lab.submit("sleep 1\n", "-N2", "-n2", "-c2", "-p", "urgent")
        self.wait_for_line(job, words)
        self.lab.wait_until_over(urgent)

    def start_again(self, job):
        """Slurm holds a job that was queued again for two minutes."""
        self.lab.wait_for(lambda: self.lab.show(job)["JobState"] == "PENDING")
        time.sleep(1.1)  # slurmd refuses a start within the second in which it has ended the last one
        self.lab.run(["scontrol", "update", f"JobId={job}", "StartTime=now"])


class StoppedTrainings(StoppedJobs):
    """The jobs are trainings with sleepy, two ranks on two hosts."""

    def submit(self, *kolorun, steps, ms, options=(), name="ck", env=None):
        return self.submit_command(hosts.BIN / "kolorun", *kolorun, hosts.PROBE.parent / "sleepy", self.folder / name, steps, ms, options=options, env=env)

    def saved(self, name="ck"):
        """The newest saved step, and the bytes of its weights and slots."""
        steps = [int(re.search(r"ckpt-(\d+)\.", path.name).group(1)) for path in (self.folder / name).glob("*.index.json")]
        newest = max(steps, default=-1)
        return newest, (self.folder / name / f"model.ckpt-{newest}.safetensors").read_bytes() if newest >= 0 else b""


def command_line():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    enter()
    with Slurm(hosts.Hosts(options.hosts)) as slurm:
        sys.exit(slurm.popen(options.command, stdin=None).wait())


if __name__ == "__main__":
    command_line()
