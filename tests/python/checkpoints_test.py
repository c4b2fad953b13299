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
            assert (loaded[name].dtype, loaded[name].shape) == (array.dtype, array.shape)
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


def test_names_and_transposes_go_both_ways(tmp_path):
    others = {"fc.weight": np.arange(6, dtype=np.float32).reshape(2, 3), "fc.bias": np.ones(2, np.float32),
              "steps": np.array(3, np.int64)}
    names = {"fc/w": "fc.weight.T", "fc/b": "fc.bias"}
    kolo.save_checkpoint(tmp_path / "model.ckpt-1", others, names=names)
    own = kolo.load_checkpoint(tmp_path)
    assert sorted(own) == ["fc/b", "fc/w", "steps"]
    np.testing.assert_array_equal(own["fc/w"], others["fc.weight"].T)
    back = kolo.load_checkpoint(tmp_path, names)
    assert {name: array.tobytes() for name, array in back.items()} == {name: a.tobytes() for name, a in others.items()}
    assert sorted(kolo.load_checkpoint(tmp_path, {**names, "steps": ""})) == ["fc.bias", "fc.weight"]


def test_strings_come_back_as_bytes(tmp_path):
    words = np.array([["", "grün"], ["a", "x" * 70000]])
    letters = np.array([b"a\0b", b""], dtype=object)
    kolo.save_checkpoint(tmp_path / "m", {"words": words, "letters": letters, "one": np.array("alone"), "n": np.zeros(2)})
    loaded = kolo.load_checkpoint(tmp_path / "m")
    assert [[word.decode() for word in row] for row in loaded["words"]] == words.tolist()
    assert loaded["letters"].tolist() == letters.tolist()
    assert loaded["one"].shape == () and loaded["one"].item() == b"alone"
    assert loaded["n"].tolist() == [0, 0]


def test_names_that_do_not_fit_are_told(tmp_path):
    arrays = {"a": np.zeros((2, 2, 2), np.float32), "b": np.zeros(2, np.float32)}
    for names, error, text in [({"v": "c"}, kolo.errors.NotFoundError, 'no tensor "c", which the variable "v"'),
                               ({"v": "a.T"}, kolo.errors.InvalidArgumentError, 'the transpose of "a"'),
                               ({"b": "a"}, kolo.errors.InvalidArgumentError, 'two tensors, one of them "b"')]:
        with pytest.raises(error, match=text):
            kolo.save_checkpoint(tmp_path / "m", arrays, names=names)
    assert not list(tmp_path.iterdir())
    kolo.save_checkpoint(tmp_path / "m", arrays)
    with pytest.raises(kolo.errors.InvalidArgumentError, match='two variables, one of them "b"'):
        kolo.load_checkpoint(tmp_path / "m", {"a": "x", "b": "x"})


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
