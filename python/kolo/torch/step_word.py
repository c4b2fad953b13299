"""What the ranks tell each other with every step: numbers 0 and 1, which are summed or averaged beside the gradients."""

from typing import List, Optional

import torch

_SUM_BITS = 16  # of the number that all ranks should give alike; two places for each: it is 0, it is 1
_PRESENT, _LATER, _FIRST_OF_SUM = range(3)
_FIRST_GRADIENT = _FIRST_OF_SUM + 2 * _SUM_BITS


class StepWord:
    """Of so many gradients. In `memory`, which is reduced: this rank's word before, the word of all ranks after."""

    def __init__(self, gradients: int, dtype: torch.dtype, of_all_ranks: float):
        """of_all_ranks: what a number becomes that is 1 on all ranks."""
        self._gradients = gradients
        self._plain = torch.ones(self.elements(gradients), dtype=dtype, device="cpu")
        self._plain[_LATER:_FIRST_GRADIENT] = 0
        self._of_all_ranks = of_all_ranks
        self.memory = self._plain.clone()

    @staticmethod
    def elements(gradients: int) -> int:
        return _FIRST_GRADIENT + gradients

    def write(self, is_complete: bool, absent: List[int], number: Optional[int] = None) -> None:
        """is_complete: nothing trains on this rank but these gradients. absent: those that it does not have. number: of 16
        bits, of which numbers_differ() tells afterwards."""
        self.memory.copy_(self._plain)
        if not is_complete:
            self.memory[_LATER] = 1
        for gradient in absent:
            self.memory[_FIRST_GRADIENT + gradient] = 0

        for bit in range(_SUM_BITS if number is not None else 0):
            self.memory[_FIRST_OF_SUM + 2 * bit + (number >> bit & 1)] = 1

    def numbers_differ(self) -> bool:
        """Of the ranks that gave one."""
        pairs = self.memory[_FIRST_OF_SUM:_FIRST_GRADIENT].view(_SUM_BITS, 2)
        return bool((pairs != 0).all(1).any())

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
