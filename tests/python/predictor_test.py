"""kolo.load_predictor on folders of kolo-train, next to PyTorch with the same weights."""
import os
import subprocess
import threading

import numpy as np
import pytest
import torch
from torch import nn

import kolo

LAYERS = {"0": "conv1", "3": "conv2", "7": "fc1", "9": "fc2"}  # PyTorch's name for each of lenet's


def train(folder, *options):
    program = os.path.join(os.environ["KOLO_BIN_DIR"], "kolo-train")
    if not os.path.exists(program):
        pytest.skip(f"{program} is not built")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OMPI_", "PMIX_"))}
    done = subprocess.run([program, "--checkpoint-dir", folder, "--threads", "1", *map(str, options)], capture_output=True, text=True, env=kept)
    assert done.returncode == 0, done.stderr


def lenet(weights):
    net = nn.Sequential(nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(),
                        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3136, 1024), nn.ReLU(), nn.Linear(1024, 10))
    state = {}
    for theirs, ours in LAYERS.items():
        w = torch.from_numpy(np.array(weights[f"{ours}/w"]))
        state[f"{theirs}.weight"] = w.T if w.dim() == 2 else w
        state[f"{theirs}.bias"] = torch.from_numpy(np.array(weights[f"{ours}/b"]))
    net.load_state_dict(state)
    return net


@pytest.mark.parametrize("loss", ["mse", "bce"])
def test_several_outputs_are_those_of_pytorch_with_the_same_weights(loss, tmp_path):
    numbers = np.random.default_rng(3)
    x, y = numbers.normal(size=(64, 5)).astype(np.float32), numbers.integers(0, 2, (64, 3))
    np.save(tmp_path / "x_train.npy", x)
    np.save(tmp_path / "y_train.npy", y)
    train(tmp_path / "ck", "--model", "mlp", "--data", tmp_path, "--steps", 6, "--batch-size", 16, "--loss", loss)
    weights, h = kolo.load_checkpoint(tmp_path / "ck"), torch.from_numpy(x)
    for layer in ("fc1", "fc2", "fc3"):
        h = (torch.relu(h) if layer != "fc1" else h) @ torch.from_numpy(np.array(weights[f"{layer}/w"])) + torch.from_numpy(np.array(weights[f"{layer}/b"]))
    predictor = kolo.load_predictor(tmp_path / "ck")
    found = predictor(x)
    assert found.shape == (64, 3)
    np.testing.assert_allclose(found, (torch.sigmoid(h) if loss == "bce" else h).numpy(), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(predictor.logits(x), h.numpy(), rtol=1e-4, atol=1e-4)


def test_numbers_that_are_none_are_refused_with_the_first_place(tmp_path):
    x = np.random.default_rng(3).normal(size=(64, 5)).astype(np.float32)
    np.save(tmp_path / "x_train.npy", x)
    np.save(tmp_path / "y_train.npy", np.arange(64) % 2)
    train(tmp_path / "ck", "--model", "mlp", "--data", tmp_path, "--steps", 2, "--batch-size", 16)
    predictor = kolo.load_predictor(tmp_path / "ck")
    for number, text in ((np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf")):
        x = np.zeros((64, 5), np.float32)
        x[7, 3] = x[9, 0] = number
        for call in (predictor, predictor.logits):
            with pytest.raises(kolo.errors.InvalidArgumentError, match=rf"Predictor: 2 of 320 numbers are NaN or infinite as f32, the first one x\[7,3\], {text}; all must be finite"):
                call(x)
    with pytest.raises(ValueError, match=r"1 of 5 numbers .* the first one x\[0,4\], 1e\+300"):
        predictor(np.array([[0, 0, 0, 0, 1e300]]))
    assert predictor(np.zeros((2, 5))).shape == (2, 2)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder whose weights are averages and whose pixels are normalised."""
    folder = tmp_path_factory.mktemp("trained") / "ck"
    train(folder, "--model", "lenet", "--data", "generated", "--steps", 4, "--batch-size", 16, "--normalize", "--average-decay", 0.5)
    return folder


def test_pixels_of_another_scale_are_told_once(trained, capfd):
    predictor = kolo.load_predictor(trained)
    pixels = np.random.default_rng(2).integers(0, 256, (5, 1, 28, 28), np.uint8)
    predictor(pixels)
    predictor(pixels.astype(np.float32) / 255)
    assert "numbers are up to" not in capfd.readouterr().err
    for _ in range(2):
        predictor(pixels.astype(np.float32))
    assert capfd.readouterr().err.count("the model was trained on numbers up to 1; pixels must be divided by 255") == 1


def test_shares_are_those_of_pytorch_with_the_same_weights(trained):
    pixels = np.random.default_rng(1).integers(0, 256, (5, 1, 28, 28), np.uint8)
    saved = kolo.load_checkpoint(trained)
    averages = {name.removesuffix("/ExponentialMovingAverage"): value for name, value in saved.items()
                if name.endswith("/ExponentialMovingAverage")}
    assert len(averages) == 8
    normalized = (pixels.astype(np.float32) / 255 - saved["input/mean"]) / saved["input/deviation"]
    with torch.no_grad():
        logits = lenet(averages)(torch.from_numpy(normalized))
    predictor = kolo.load_predictor(trained)
    # Rounding of sums of up to 3136 products.
    np.testing.assert_allclose(predictor.logits(pixels), logits.numpy(), rtol=1e-4, atol=1e-4)
    shares = predictor(pixels)
    np.testing.assert_allclose(shares, torch.softmax(logits, 1).numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(shares.sum(1), 1, rtol=1e-5)


def test_pixels_may_be_of_either_type(trained):
    predictor = kolo.load_predictor(str(trained))
    pixels = np.random.default_rng(2).integers(0, 256, (3, 1, 28, 28), np.uint8)
    expected = predictor(pixels)
    np.testing.assert_array_equal(predictor(pixels.astype(np.float32) / 255), expected)
    np.testing.assert_allclose(predictor((pixels / 255)), expected, rtol=1e-5)
    np.testing.assert_array_equal(predictor(np.asfortranarray(pixels)), expected)
    assert predictor(pixels[:0]).shape == (0, 10)


def test_numbers_of_other_types_and_orders_are_taken(trained):
    predictor, samples = kolo.load_predictor(trained), np.random.default_rng(4).integers(0, 2, (3, 1, 28, 28))
    expected = predictor(samples.astype(np.float32))
    for given in (samples.astype(">f4"), samples.astype(np.float16), samples.astype(bool), samples.astype(np.float32)[:, 0],
                  np.asfortranarray(samples.astype(np.float32))):
        np.testing.assert_array_equal(predictor(given), expected)
    for given, said in ((np.full((3, 1, 28, 28), "7"), "samples of <U1; numbers are asked for"), (samples.astype(complex), "complex128")):
        with pytest.raises(TypeError, match=said):
            predictor(given)


def test_it_says_what_it_takes(trained):
    predictor = kolo.load_predictor(trained)
    assert predictor.sample_shape == (1, 28, 28)
    assert predictor.class_names == [str(digit) for digit in range(10)]
    assert predictor.global_step == 4


def test_threads_predict_at_the_same_time(trained):
    predictor = kolo.load_predictor(trained)
    inputs = [np.full((2, 1, 28, 28), i / 4, np.float32) for i in range(4)]
    expected = [predictor(samples) for samples in inputs]
    found = [None] * 4

    def predict(i):
        for _ in range(10):
            found[i] = predictor(inputs[i])

    threads = [threading.Thread(target=predict, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_wrong_samples_and_folders_are_named(trained, tmp_path):
    predictor = kolo.load_predictor(trained)
    with pytest.raises(kolo.errors.InvalidArgumentError, match=r"\[2,3,28,28\].*\[N,1,28,28\]"):
        predictor(np.zeros((2, 3, 28, 28), np.float32))
    with pytest.raises(kolo.errors.InvalidArgumentError, match="i64"):
        predictor(np.zeros((2, 1, 28, 28), np.int64))
    with pytest.raises(kolo.errors.NotFoundError, match="inference.pb"):
        kolo.load_predictor(tmp_path)
