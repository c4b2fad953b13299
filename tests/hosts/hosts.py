#!/usr/bin/env python3
"""Several hosts on this machine: each has a network link, a name, a /dev/shm and an sshd of its own.

  tests/hosts/hosts.py [--hosts 2] [--slots 2 | --slots 2,1,1] [--rate 1gbit] -- COMMAND …

runs COMMAND on the first host, node1, and ends with its exit code; $HOSTFILE names all hosts, as in

  tests/hosts/hosts.py --rate 1gbit -- sh -c 'mpirun --hostfile $HOSTFILE --bind-to none hostname'

A test is a program that calls main() and makes its own Hosts. Everything lives in namespaces of the kernel (processes,
network, mounts) whose first process is this one: when it ends, however that happens, processes, links and keys are gone.
Needs root, and a kernel that lets it make namespaces; where it cannot, the exit code is 77 and one line says why.
"""
import argparse
import contextlib
import ctypes
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

SKIPPED = 77
NEEDED = {"ip": "iproute2", "tc": "iproute2", "unshare": "util-linux", "nsenter": "util-linux", "ssh": "openssh-client",
          "ssh-keygen": "openssh-client", "/usr/sbin/sshd": "openssh-server", "mpirun": "openmpi-bin"}
NETWORK = "10.77.0."
SECOND_NETWORK = "10.77.1."
SHARED = pathlib.Path("/run/shared")  # a folder that all hosts see and that ends with them, as over NFS
START_S = 10
SLOWDOWN = int(os.environ.get("TEST_SLOWDOWN", 1))  # of a build with sanitizers
BUILD = pathlib.Path(__file__).resolve().parents[2] / "build" / "release"
BIN = pathlib.Path(os.environ.get("KOLO_BIN_DIR", BUILD / "bin"))
PROBE = pathlib.Path(os.environ.get("KOLO_HOSTS_PROBE", BUILD / "tests" / "hosts_probe"))

SSH_CONFIG = """
IdentityFile /etc/ssh/key
GlobalKnownHostsFile /etc/ssh/known_hosts
StrictHostKeyChecking yes
"""
# A rank that ssh starts has no environment of the test's. HOME: no ~/.bashrc of the user's, which may take a lock
# that a host takes with it when it is killed.
SANITIZERS = " ".join(f"{name}={value}" for name, value in os.environ.items() if name.endswith("SAN_OPTIONS"))
SSHD_CONFIG = f"""
HostKey /etc/ssh/key
AuthorizedKeysFile /etc/ssh/key.pub
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
PidFile none
UseDNS no
MaxStartups 100
SetEnv HOME=/run/own TMPDIR=/run/own KOLO_FLIGHT_DIR=/run/own {SANITIZERS}
"""
# What only this host has: its name, and the folders where programs of one host meet. It then waits for its link.
HOST_SCRIPT = """
hostname "$0" && mount -t tmpfs tmpfs /dev/shm && mount -t tmpfs tmpfs /run/own && mount -t sysfs sysfs /sys || exit 1
echo ready; read go; exec /usr/sbin/sshd -D
"""


def sh(*words, check=True):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=START_S)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.stderr.strip() or f'exit code {done.returncode}'}")
    return done.stdout


def algorithms():
    return subprocess.run([PROBE, "algorithms"], capture_output=True, text=True, check=True).stdout.split()


class Hosts:
    """node1, node2, … on one switch. slots: a number, or one for each host. rate: of each host's link, in both
    directions, as tc writes it; None: as fast as it goes."""

    def __init__(self, count=2, slots=2, rate=None):
        self.names = [f"node{i + 1}" for i in range(count)]
        self.slots = [slots] * count if isinstance(slots, int) else list(slots)
        self.rate = rate
        self._first = {}  # the process that keeps a host's namespaces alive
        self._bridges = []
        self.hostfile = SHARED / "hostfile"
        self.hostfile.write_text("".join(f"{n} slots={s}\n" for n, s in zip(self.names, self.slots)))

    def __enter__(self):
        try:
            for name in self.names:
                self._start(name)
            for name in self.names:
                self._wait_for_sshd(name)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for name in list(self._first):
            self.kill_host(name)
        for bridge in self._bridges:
            sh("ip", "link", "delete", bridge, check=False)

    def alive(self):
        return list(self._first)

    def address(self, name):
        return f"{NETWORK}{self.names.index(name) + 1}"

    def start_again(self, name):
        """A host that kill_host has ended, as a pod that is made again."""
        self._start(name)
        self._wait_for_sshd(name)

    def _start(self, name):
        host = subprocess.Popen(["unshare", "--net", "--uts", "--mount", "--ipc", "sh", "-c", HOST_SCRIPT, name],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self._first[name] = host
        if host.stdout.readline() != "ready\n":
            raise RuntimeError(f"{name}: {host.stderr.read().strip()}")
        hardware = f"02:00:00:00:00:{self.names.index(name) + 1:02x}"  # a host that comes again has the address that others know
        sh("ip", "link", "add", f"to-{name}", "type", "veth", "peer", "name", "eth0", "address", hardware, "netns", host.pid)
        sh("ip", "link", "set", f"to-{name}", "master", "switch", "up")
        inside = ["nsenter", "--target", str(host.pid), "--net"]
        sh(*inside, "ip", "link", "set", "lo", "up")
        sh(*inside, "ip", "address", "add", f"{self.address(name)}/24", "dev", "eth0")
        sh(*inside, "ip", "link", "set", "eth0", "up")
        if self.rate:
            shape = ["root", "tbf", "rate", self.rate, "burst", "128kb", "latency", "50ms"]
            sh(*inside, "tc", "qdisc", "add", "dev", "eth0", *shape)
            sh("tc", "qdisc", "add", "dev", f"to-{name}", *shape)
        host.stdin.write("go\n")
        host.stdin.close()

    def _wait_for_sshd(self, name):
        deadline = time.monotonic() + START_S
        while True:
            with contextlib.suppress(OSError), socket.create_connection((self.address(name), 22), timeout=1):
                return
            if self._first[name].poll() is not None or time.monotonic() > deadline:
                self._first[name].kill()
                raise RuntimeError(f"{name}: no sshd: {self._first[name].stderr.read().strip()}")
            time.sleep(0.01)

    def popen(self, command, host="node1", env=None, **options):
        """Starts a command on a host: the process that is returned is the command itself."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("KOLO_", "OMPI_", "PMIX_"))}
        mpi = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        environment = {**kept, **mpi, "TMPDIR": "/run/own", "KOLO_FLIGHT_DIR": "/run/own", "HOSTFILE": str(self.hostfile), "OMP_NUM_THREADS": "1", **(env or {})}
        enter = ["nsenter", "--target", str(self._first[host].pid), "--net", "--uts", "--mount", "--ipc", f"--wd={os.getcwd()}"]
        return subprocess.Popen([*enter, *map(str, command)], env=environment, **{"stdin": subprocess.DEVNULL, **options})

    def run(self, command, host="node1", env=None, deadline=60, state=str):
        """Runs it to its end: exit code, stdout and stderr. state: as of finish()."""
        return finish(self.popen(command, host, env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True), deadline, state)

    def link(self, host, state):
        """state: "down" or "up", as if a cable were pulled; neither side is told that connections are gone."""
        sh("ip", "link", "set", f"to-{host}", state)

    def add_link(self, interface, mbit_per_s):
        """A second network between all hosts, which says that it is so fast (a link of this kind says 10 Gbit/s)."""
        self._bridges.append(f"net-{interface}")
        sh("ip", "link", "add", f"net-{interface}", "type", "bridge")
        sh("ip", "link", "set", f"net-{interface}", "up")
        says = SHARED / f"{interface}-speed"
        says.write_text(f"{mbit_per_s}\n")
        for number, name in enumerate(self.names, start=1):
            first = self._first[name].pid
            sh("ip", "link", "add", f"{interface}-{name}", "type", "veth", "peer", "name", interface, "netns", first)
            sh("ip", "link", "set", f"{interface}-{name}", "master", f"net-{interface}", "up")
            inside = ["nsenter", "--target", first, "--net", "--mount"]
            sh(*inside, "ip", "address", "add", f"{SECOND_NETWORK}{number}/24", "dev", interface)
            sh(*inside, "ip", "link", "set", interface, "up")
            sh(*inside, "mount", "--bind", says, f"/sys/class/net/{interface}/speed")

    def pids(self, host):
        space = os.readlink(f"/proc/{self._first[host].pid}/ns/net")
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and os.readlink(entry / "ns" / "net") == space:
                    found.append(int(entry.name))
        return found

    def rank_pids(self, program):
        """The processes of this program that are ranks, on all hosts: {rank: pid}."""
        found = {}
        for pid in (pid for host in self._first for pid in self.pids(host)):
            with contextlib.suppress(OSError):
                variables = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                rank = [v for v in variables if v.startswith((b"OMPI_COMM_WORLD_RANK=", b"PMIX_RANK="))]
                if rank and os.path.basename(os.readlink(f"/proc/{pid}/exe")) == pathlib.Path(program).name:
                    found[int(rank[0].split(b"=")[1])] = pid
        return found

    def kill_host(self, host):
        """Ends all that runs there, and the host with it. After link(host, "down") nobody hears of it, as when the power fails."""
        first = self._first[host]
        while alive := [pid for pid in self.pids(host) if pid != first.pid]:
            for pid in alive:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.005)
        first.kill()
        first.wait()
        for stream in (first.stdout, first.stderr):
            stream.close()
        del self._first[host]
        sh("ip", "link", "delete", f"to-{host}", check=False)


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __repr__(self):
        return f"exit code {self.code}\nstdout: {self.out[-4000:]}\nstderr: {self.err[-4000:]}"


def finish(process, deadline=60, state=str):
    """state: where the deadline passes, what it returns stands in the error; it is called while the process still runs."""
    try:
        out, err = process.communicate(timeout=deadline * SLOWDOWN)
    except subprocess.TimeoutExpired as late:
        then = state()
        process.kill()  # what it has started goes with its host
        said = [(text or b"").decode(errors="replace") for text in (late.stdout, late.stderr)]
        raise AssertionError(f"not over within {deadline * SLOWDOWN} s\n{Result(None, *said)}\n{then}") from None
    return Result(process.returncode, out, err)


class FolderTest(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)


def cannot():
    """Why no hosts can be made here, in one line; "" if they can."""
    missing = sorted({package for tool, package in NEEDED.items() if not shutil.which(tool)})
    if missing:
        return f"packages are missing: {' '.join(missing)} (scripts/install_deps.sh --dev)"
    if os.geteuid() != 0:
        return "making network namespaces needs root"
    probe = subprocess.run(["unshare", "--net", "--mount", "--pid", "--uts", "--fork", "--mount-proc", "sh", "-c",
                            "mount -t tmpfs tmpfs /run && ip link add switch type bridge && ip link add to-host type veth peer name eth0"],
                           capture_output=True, text=True, timeout=START_S)
    return f"namespaces cannot be made: {(probe.stderr.strip() or 'no reason given').splitlines()[-1]}" if probe.returncode else ""


def enter(parts=1):
    """Runs this program again inside of namespaces of its own and ends with it; there, it returns. parts: as of main()."""
    inside = os.environ.pop("INSIDE_TEST_HOSTS", None)
    if inside is None:
        reason = cannot()
        if reason:
            print(f"skipped: {reason}")
            sys.exit(SKIPPED)
        sys.exit(run_inside(parts if len(sys.argv) == 1 else 1))
    global PART
    PART = tuple(map(int, inside.split("/")))
    # Mounts that only this program and its hosts see.
    for folder in ("/run", "/etc/ssh"):
        sh("mount", "-t", "tmpfs", "tmpfs", folder)
    for folder in ("/run/sshd", "/run/own", SHARED):
        os.mkdir(folder)
    tempfile.tempdir = str(SHARED)
    ssh = pathlib.Path("/etc/ssh")
    (ssh / "ssh_config").write_text(SSH_CONFIG)
    (ssh / "sshd_config").write_text(SSHD_CONFIG)
    sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", ssh / "key")
    (ssh / "known_hosts").write_text("* " + (ssh / "key.pub").read_text())
    names = "127.0.0.1 localhost\n" + "".join(f"{NETWORK}{i} node{i}\n" for i in range(1, 100))
    pathlib.Path("/run/hosts").write_text(names)
    sh("mount", "--bind", "/run/hosts", "/etc/hosts")
    sh("ip", "link", "set", "lo", "up")
    sh("ip", "link", "add", "switch", "type", "bridge")
    sh("ip", "address", "add", f"{NETWORK}254/24", "dev", "switch")
    sh("ip", "link", "set", "switch", "up")


def run_inside(parts):
    # The shell is the first process there: its end is everybody's. It takes in processes whose parents have ended.
    first = ["sh", "-c", '"$@"; exit $?', "sh", sys.executable, *sys.argv]
    spaces = ["unshare", "--net", "--mount", "--pid", "--uts", "--fork", "--kill-child", "--mount-proc"]
    end_with_parent = lambda: ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "errors": "replace"} if parts > 1 else {}
    children = [subprocess.Popen([*spaces, *first], env={**os.environ, "INSIDE_TEST_HOSTS": f"{number}/{parts}"}, preexec_fn=end_with_parent, **output)
                for number in range(parts)]
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda number, _: ([child.kill() for child in children], sys.exit(128 + number)))

    def hand_on(child, number):
        for line in child.stdout:
            sys.stdout.write(f"part {number + 1}: {line}")
            sys.stdout.flush()

    readers = [threading.Thread(target=hand_on, args=(child, number)) for number, child in enumerate(children)] if parts > 1 else []
    for reader in readers:
        reader.start()
    codes = [child.wait() for child in children]
    for reader in readers:
        reader.join()
    code = max(codes, key=lambda code: (code not in (0, SKIPPED), abs(code)))
    return code if code >= 0 else 128 - code


class Part(unittest.TestLoader):
    """Every parts-th test of a file."""

    def __init__(self, number, parts):
        super().__init__()
        self.number, self.parts, self.found = number, parts, 0

    def getTestCaseNames(self, testCaseClass):
        names = super().getTestCaseNames(testCaseClass)
        first, self.found = self.found, self.found + len(names)
        return [name for place, name in enumerate(names, first) if place % self.parts == self.number]


def main(parts=1):
    """For a file of tests. parts: so many of them run at the same time, each in hosts of its own: for those that wait more than they compute."""
    enter(parts)
    run_tests()


def run_tests():
    unittest.main(testLoader=Part(*PART), verbosity=2)  # a line for each test: where one hangs, CI's text names those before it


def command_line():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--slots", default="2")
    parser.add_argument("--rate", help="of each link, as tc writes it: 1gbit, 200mbit")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    slots = [int(s) for s in options.slots.split(",")]
    enter()
    with Hosts(options.hosts, slots[0] if len(slots) == 1 else slots, options.rate) as hosts:
        sys.exit(hosts.popen(options.command, stdin=None).wait())


if __name__ == "__main__":
    command_line()
