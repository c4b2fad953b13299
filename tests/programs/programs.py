"""What the tests of the programs share: running them, alone or under mpirun, always with a deadline."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ["KOLO_BIN_DIR"])
DEADLINE_S = 120
SLOWDOWN = int(os.environ["TEST_SLOWDOWN"])  # of a build with sanitizers, else 1


def environment(**changes):
    """The caller's, without options that would change what a test sees."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("KOLO_", "OMPI_", "PMIX_"))}
    return {**kept, "OMP_NUM_THREADS": "1", **{k: str(v) for k, v in changes.items()}}


def mpirun(ranks):
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    quiet = ["--mca", "plm", "isolated", "--mca", "btl", "self,vader", "--mca", "btl_base_warn_component_unused", "0"]
    return ["mpirun", *root, "--oversubscribe", "--bind-to", "none", *quiet, "-n", str(ranks)]


def command(program, *args, ranks=1, launcher=None):
    """launcher: None for mpirun where there are several ranks, or the front of a command line."""
    start = launcher if launcher is not None else mpirun(ranks) if ranks > 1 else []
    return [*start, str(BIN / program), *map(str, args)]


def kolorun(ranks, *options):
    return [str(BIN / "kolorun"), "-n", str(ranks), *options, "--"]


class Result:
    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    @property
    def events(self):
        """The JSON objects of stdout; every line must be one."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def done(self):
        return self.events[-1]


def run(program, *args, ranks=1, deadline=DEADLINE_S, cwd=None, **env):
    done = subprocess.run(command(program, *args, ranks=ranks), capture_output=True, encoding="utf-8", errors="surrogateescape",
                          timeout=deadline * SLOWDOWN, stdin=subprocess.DEVNULL, env=environment(**env), cwd=cwd)
    return Result(done)


def start(program, *args, ranks=1, launcher=None, **env):
    """In a process group of its own, so that a test can end all of it."""
    return subprocess.Popen(command(program, *args, ranks=ranks, launcher=launcher), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            stdin=subprocess.DEVNULL, env=environment(**env), start_new_session=True)


def finish(process, deadline=DEADLINE_S):
    try:
        out, err = process.communicate(timeout=deadline * SLOWDOWN)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    return Result(subprocess.CompletedProcess(process.args, process.returncode, out, err))


def rank_processes(launcher):
    """Process ids of the launcher's descendants that are a kolo program, by rank."""
    ranks = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if os.getsid(int(entry.name)) != os.getsid(launcher.pid) and not _descends(int(entry.name), launcher.pid):
                continue
            variables = (entry / "environ").read_bytes().split(b"\0")
        except (OSError, ProcessLookupError):
            continue
        rank = [v for v in variables if v.startswith(b"OMPI_COMM_WORLD_RANK=")]
        if rank and _descends(int(entry.name), launcher.pid):
            ranks[int(rank[0].split(b"=")[1])] = int(entry.name)
    return ranks


def _descends(pid, ancestor):
    while pid > 1:
        if pid == ancestor:
            return True
        try:
            pid = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            return False
    return False


def mnist():
    """The folder with genuine digits, or None."""
    root = pathlib.Path(os.environ.get("KOLO_DATA_DIR", SOURCE.parent / "shared" / "data"))
    return root / "mnist" if (root / "mnist" / "train-images-idx3-ubyte.gz").exists() else None


class ProgramTest(unittest.TestCase):
    """A test with a folder of its own that goes away with it."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kolo-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def assert_ok(self, result):
        self.assertEqual(result.code, 0, f"\nstdout: {result.out[-3000:]}\nstderr: {result.err[-3000:]}")
        return result

    def assert_one_line(self, result, code, *words):
        """The program refuses: with this exit code and one line of its own that holds these words."""
        own = [line for line in result.err.splitlines() if line.startswith(("kolo-train:", "kolo-inspect:", "kolo-bench:"))]
        self.assertEqual(result.code, code, result.err)
        self.assertEqual(len(own), 1, result.err)
        self.assertNotIn("terminate called", result.err)
        for word in words:
            self.assertIn(word, own[0])


class TrainedTest(ProgramTest):
    """The folder of each test is a copy of one that was trained once."""

    @classmethod
    def train_once(cls, folder):
        """Fills the folder; the result of the last program."""
        raise NotImplementedError

    @classmethod
    def setUpClass(cls):
        cls.trained = pathlib.Path(tempfile.mkdtemp(prefix="kolo-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.trained, ignore_errors=True)
        cls.assert_ok(cls(), cls.train_once(cls.trained))

    def setUp(self):
        super().setUp()
        shutil.copytree(self.trained, self.folder, dirs_exist_ok=True)
