"""Runs a program whose rank 1 is killed once, behind the first checkpoint: killed_once.py FOLDER PROGRAM [ARGUMENTS …]"""
import os
import pathlib
import runpy
import signal
import sys
import threading
import time

folder = pathlib.Path(sys.argv[1])
killed = folder / "killed"


def kill_behind_the_first_checkpoint():
    while not (folder / "model.ckpt-1.index.json").exists():
        time.sleep(0.05)
    killed.touch()
    os.kill(os.getpid(), signal.SIGKILL)


if os.environ.get("OMPI_COMM_WORLD_RANK") == "1" and not killed.exists():
    threading.Thread(target=kill_behind_the_first_checkpoint, daemon=True).start()
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
