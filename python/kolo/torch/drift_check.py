"""Whether the ranks of an optimizer still hold the same weights."""

from typing import Dict, List, Optional, Tuple

import torch

from kolo import _kolo
from kolo.errors import FailedPreconditionError
from kolo.torch.gradient_buckets import Usage
from kolo.torch.process_sets import ProcessSet, native_of
from kolo.torch.step_word import StepWord


class DriftCheck:
    """Every KOLO_CHECK_DRIFT steps (100; 0: never) each rank puts one number of the bits of what it trains into the
    step's word. Where the numbers differ the ranks exchange one for each parameter. Steps count from the last join(),
    from which on all ranks have taken equally many."""

    def __init__(self, process_set: ProcessSet):
        self._process_set = process_set
        self._every = _kolo.check_drift_steps()
        self._joins = Usage.joins
        self._done = 0
        self._compared = 0
        self._sums: List[Tuple[str, int]] = []

    def number(self, names: Dict[torch.nn.Parameter, str]) -> Optional[int]:
        """Of a step that is about to be combined: what all ranks should give alike; None where they compare nothing."""
        if self._joins != Usage.joins:
            self._joins, self._done, self._compared = Usage.joins, 0, 0
        if self._every == 0 or self._done == 0 or self._done % self._every:
            return None
        kept = [(name, parameter.detach().cpu().contiguous()) for parameter, name in names.items()
                if (parameter.device.type == "cpu" or parameter.is_cuda) and not parameter.is_sparse]
        weights = sorted((name, value.data_ptr(), value.numel() * value.element_size()) for name, value in kept)
        self._sums = _kolo.weight_sums(weights, self._done)
        return _kolo.combined_sum(self._sums)

    def end_step(self, number: Optional[int], word: StepWord) -> None:
        """number: of this rank; word: of all. Collective where numbers differ: raises FailedPreconditionError, on every
        rank, that names parameter and rank."""
        done, self._done = self._done, self._done + 1
        if number is None or not word.all_take_part():
            return
        if word.numbers_differ():
            texts = _kolo.allgather_object(_kolo.text_of_sums(self._sums), "kolo.torch: weights",
                                           native_of(self._process_set)).wait()
            text = _kolo.weights_that_differ([text.decode() for text in texts], self._process_set.ranks,
                                             self._compared + 1, done)
            if text is not None:
                raise FailedPreconditionError(text)
        self._compared = done
