"""Each block of Python on the pages stands in a file that tests run, or runs here, on one rank."""
import glob
import os
import re

import numpy as np
import pytest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


FILES = [read(path) for path in glob.glob(os.path.join(ROOT, "python", "examples", "*.py"))]
BLOCKS = [(os.path.basename(page), block) for page in sorted(glob.glob(os.path.join(ROOT, "docs", "*.md")))
          for block in re.findall(r"^```python\n(.*?)^```$", read(page), re.MULTILINE | re.DOTALL)
          if not any(block.strip() in text for text in FILES)]


def table(name):
    """A folder with a table of two classes by name."""
    os.mkdir(name)
    with open(os.path.join(name, "train.csv"), "w", encoding="utf-8") as file:
        file.write("x,y,label\n" + "".join(f"{i % 7},{i % 5},{'left' if i % 7 < 3 else 'right'}\n" for i in range(80)))
    return name


def names_for(block):
    """What a page has before the block, in this folder."""
    if "load_predictor" in block:
        pytest.importorskip("torch")
        from predictor_test import train  # pylint: disable=import-outside-toplevel

        train("ck", "--model", "mlp", "--data", table("points"), "--steps", 2, "--batch-size", 8)
        return {"pixels": np.zeros((3, 2), np.float32)}
    if "torch" not in block:
        return {"gradient": np.ones(3, np.float32)}
    torch = pytest.importorskip("torch")
    if "safetensors" in block:
        pytest.skip("it needs a training's files; programs.pytorch moves weights in both directions")
    return {"torch": torch, "model": torch.nn.Linear(2, 2)}


@pytest.mark.parametrize("page, block", BLOCKS, ids=[f"{page}:{block.splitlines()[0]}" for page, block in BLOCKS])
def test_a_block_runs(page, block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(block, page, "exec"), names_for(block))  # pylint: disable=exec-used


def test_there_are_blocks():
    assert {"python.md"} <= {page for page, _ in BLOCKS}
