"""Einsums as torch-mlir reads them: all letters written out, and a result that has dimensions.

It reads no equation without an arrow, no `...` beside other operands, and no empty result, of which
it takes the process down with it: such ones have another dimension here, of size 1. It sums
products only: what one operand alone is summed over, is summed before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from string import ascii_letters
from typing import Any

import torch

aten = torch.ops.aten


def einsum_decompositions() -> dict[Any, Callable[..., Any]]:
    return {aten.einsum.default: _einsum}


def _einsum(equation: str, tensors: Sequence[torch.Tensor], path: Sequence[int] | None = None):
    operands, output = spell_out(equation, [tensor.ndim for tensor in tensors])
    longer = {
        letter
        for operand, tensor in zip(operands, tensors, strict=True)
        for letter, size in zip(operand, tensor.shape, strict=True)
        if not _is_one(size)
    }
    pairs = [_drop_ones(*pair, longer) for pair in zip(operands, tensors, strict=True)]
    shared = Counter(letter for letters, _ in pairs for letter in set(letters))
    pairs = [_sum_own(*pair, {*output, *(c for c in shared if shared[c] > 1)}) for pair in pairs]
    operands, values = [letters for letters, _ in pairs], [value for _, value in pairs]
    if output and all(operands):
        plain = f"{','.join(operands)}->{output}"
        is_same = plain == equation and all(a is b for a, b in zip(values, tensors, strict=True))
        return NotImplemented if is_same else aten.einsum.default(plain, values)
    unit = next(letter for letter in ascii_letters if letter not in "".join((output, *operands)))
    plain = f"{','.join(unit + operand for operand in operands)}->{unit}{output}"
    return aten.einsum.default(plain, [value.unsqueeze(0) for value in values]).squeeze(0)


def spell_out(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """Return the letters of operands and of the result, with some for `...`, and those left out."""
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    operands = inputs.split(",")
    free = [letter for letter in ascii_letters if letter not in inputs]
    hidden = [
        rank - len(operand.replace("...", "")) if "..." in operand else 0
        for operand, rank in zip(operands, ranks, strict=True)
    ]
    most = max(hidden)
    letters = "".join(free[:most])
    operands = [
        operand.replace("...", letters[most - count :])
        for operand, count in zip(operands, hidden, strict=True)
    ]
    if not arrow:
        named = inputs.replace(",", "").replace("...", "")
        output = "..." + "".join(sorted(c for c in set(named) if named.count(c) == 1))
    return operands, output.replace("...", letters)


def _drop_ones(letters: str, tensor: torch.Tensor, longer: set[str]) -> tuple[str, torch.Tensor]:
    """Drop the dimensions of size 1 that stand for longer ones of the same letter."""
    ones = [
        d
        for d, (letter, size) in enumerate(zip(letters, tensor.shape, strict=True))
        if letter in longer and _is_one(size)
    ]
    kept = "".join(letter for d, letter in enumerate(letters) if d not in ones)
    return kept, tensor.squeeze(ones) if ones else tensor


def _sum_own(letters: str, x: torch.Tensor, others: set[str]) -> tuple[str, torch.Tensor]:
    """Sum over what neither the result nor another operand has; of repeated letters, diagonals."""
    own = set(letters) - others
    for letter in own:
        while letters.count(letter) > 1:
            first = letters.index(letter)
            second = letters.index(letter, first + 1)
            x = x.diagonal(0, first, second)
            letters = letters[:first] + letters[first + 1 : second] + letters[second + 1 :] + letter
    summed = [d for d, letter in enumerate(letters) if letter in own]
    kept = "".join(letter for letter in letters if letter not in own)
    return kept, x.sum(summed) if summed else x


def _is_one(size: Any) -> bool:
    return isinstance(size, int) and size == 1
