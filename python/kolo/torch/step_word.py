"""What the ranks tell each other with every step: numbers 0 and 1, which are summed or averaged beside the gradients."""

from typing import List

import torch

_PRESENT, _LATER, _FIRST_GRADIENT = range(3)


class StepWord:
    """Of so many gradients. In `memory`, which is reduced: this rank's word before, the word of all ranks after."""

    def __init__(self, gradients: int, dtype: torch.dtype, of_all_ranks: float):
        """of_all_ranks: what a number becomes that is 1 on all ranks."""
        self._gradients = gradients
        self._plain = torch.ones(self.elements(gradients), dtype=dtype)
        self._plain[_LATER] = 0
        self._of_all_ranks = of_all_ranks
        self.memory = self._plain.clone()

    @staticmethod
    def elements(gradients: int) -> int:
        return _FIRST_GRADIENT + gradients

    def write(self, is_complete: bool, absent: List[int]) -> None:
        """is_complete: nothing trains on this rank but these gradients. absent: those that it does not have."""
        self.memory.copy_(self._plain)
        if not is_complete:
            self.memory[_LATER] = 1
        for gradient in absent:
            self.memory[_FIRST_GRADIENT + gradient] = 0

    def all_take_part(self) -> bool:
        """No rank has joined."""
        return abs(self.memory[_PRESENT].item() - self._of_all_ranks) <= 1e-3

    def is_complete(self) -> bool:
        """On all ranks."""
        return self.memory[_LATER].item() == 0

    def absent_everywhere(self) -> List[int]:
        """The gradients that no rank has."""
        of_gradients = self.memory[_FIRST_GRADIENT:]
        return [] if of_gradients.all() else (of_gradients == 0).nonzero().flatten().tolist()
