"""Checkpoints of the other face of kolo, and of files that are no checkpoints."""
import json
import os
import struct
import subprocess

import numpy as np
import pytest

import kolo

ARRAYS = {"w": np.arange(6, dtype=np.float32).reshape(2, 3), "step": np.array(7, np.int64), "mask": np.array([True, False])}


def test_arrays_come_back_as_they_were_saved(tmp_path):
    kolo.save_checkpoint(tmp_path / "model.ckpt-7", ARRAYS, global_step=7)
    for path in [tmp_path, tmp_path / "model.ckpt-7", tmp_path / "model.ckpt-7.safetensors"]:
        loaded = kolo.load_checkpoint(path)
        assert sorted(loaded) == sorted(ARRAYS)
        for name, array in ARRAYS.items():
            assert loaded[name].dtype == array.dtype
            np.testing.assert_array_equal(loaded[name], array)


def test_kolo_inspect_reads_what_python_saved(tmp_path):
    program = os.path.join(os.environ["KOLO_BIN_DIR"], "kolo-inspect")
    if not os.path.exists(program):
        pytest.skip(f"{program} is not built")
    kolo.save_checkpoint(tmp_path / "model.ckpt-7", ARRAYS, global_step=7)
    text = subprocess.run([program, "checkpoint", tmp_path, "--json"], capture_output=True, text=True, check=True).stdout
    summary = json.loads(text)
    assert summary["global_step"] == 7
    assert summary["tensors"]["w"]["shape"] == [2, 3]


def test_safetensors_of_others_are_read(tmp_path):
    header = json.dumps({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    path = tmp_path / "other.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + struct.pack("<2f", 1.5, -2))
    assert kolo.load_checkpoint(path)["a"].tolist() == [1.5, -2]


def test_damage_is_found(tmp_path):
    kolo.save_checkpoint(tmp_path / "model.ckpt-7", ARRAYS)
    path = tmp_path / "model.ckpt-7.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(kolo.errors.DataLossError, match="model.ckpt-7.safetensors"):
        kolo.load_checkpoint(tmp_path / "model.ckpt-7")


def test_an_empty_folder_has_no_checkpoint(tmp_path):
    with pytest.raises(kolo.errors.NotFoundError, match="there is no checkpoint in"):
        kolo.load_checkpoint(tmp_path)
