"""A trained network as a function of NumPy arrays."""

import os
from typing import List, Tuple, Union

import numpy as np

from kolo import _kolo
from kolo.arrays import memory_of


# What kolo has no samples of, and what becomes of it: as with .npy files.
TAKEN_AS = {"float16": np.float32, "bool": np.float32, "int8": np.int32, "int16": np.int32, "uint16": np.int32, "uint32": np.int64}


class Predictor:
    """The network of a checkpoint folder, in its inference form; load_predictor makes one.

    Any number of threads predict at the same time, and other Python threads run meanwhile.
    """

    def __init__(self, native: _kolo.Predictor) -> None:
        self._native = native

    def __call__(self, samples: np.ndarray) -> np.ndarray:
        """Shares, float32 [N, classes], whose rows add up to 1; of a text model [N·T, classes]; of a model that finds
        numbers these, [N, outputs]; of one of several labels the probability of each, [N, labels].

        samples: [N, *sample_shape]. float32 or float64 as in training, where pixels are in 0 … 1; uint8 pixels are divided
        by 255; int32 or int64 tokens for a text model. Numbers of other types are taken as a .npy file's are, and images
        of one channel may come as [N,H,W]. --normalize's mean and deviation are part of the network. Raises TypeError for
        what is no number, InvalidArgumentError for another shape.
        """
        return self._run(samples, False)

    def logits(self, samples: np.ndarray) -> np.ndarray:
        """The same before the softmax, or before the sigmoid of several labels."""
        return self._run(samples, True)

    def _run(self, samples: np.ndarray, logits: bool) -> np.ndarray:
        array = np.asarray(samples)
        if array.dtype.kind not in "fiub":
            raise TypeError(f"samples of {array.dtype}; numbers are asked for")
        array = np.ascontiguousarray(array, TAKEN_AS.get(array.dtype.name, array.dtype.newbyteorder("=")))
        shape = self.sample_shape
        if len(shape) == 3 and shape[0] == 1 and array.shape[1:] == shape[1:]:
            array = array.reshape(-1, *shape)
        return np.asarray(self._native.predict(memory_of(array), logits))

    @property
    def sample_shape(self) -> Tuple[int, ...]:
        """Of one sample: (C, H, W) for an image, (T,) for a text."""
        return tuple(self._native.sample_shape)

    @property
    def class_names(self) -> List[str]:
        """By class, number or label; "0", "1", … where the folder does not name them."""
        return list(self._native.class_names)

    @property
    def global_step(self) -> int:
        """Of the checkpoint."""
        return self._native.global_step


def load_predictor(folder: Union[str, "os.PathLike[str]"]) -> Predictor:
    """The network of kolo-train's checkpoint folder, with the newest intact checkpoint; needs no kolo.init().

    The weights are the moving averages where the checkpoint has them. Raises NotFoundError for a folder without a network
    or without a checkpoint, DataLossError for a damaged file.
    """
    return Predictor(_kolo.Predictor(os.fspath(folder)))
