"""Contractions with a constant are layers that compute the same, whatever their loops are."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewbit.dialects.mico import BitLinearOp
from fewbit.ir.layers import layers
from fewbit.ir.verify import verify
from fewbit.pipeline.compilation import run_passes
from fewbit.program.program import Program
from tests.passes.lowering import hexadecimal

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Einsum:
    """Subscripts of an input, a weight and a result, and the size of each letter."""

    input: str
    weight: str
    result: str
    sizes: dict[str, int]
    dynamic: str = ""
    """Letters whose sizes are not in the types."""
    swapped: bool = False
    """Whether the weight stands first."""

    def shape(self, letters: str) -> tuple[int, ...]:
        return tuple(self.sizes[letter] for letter in letters)

    def type(self, letters: str) -> str:
        sizes = ["?" if d in self.dynamic else str(self.sizes[d]) for d in letters]
        return f"tensor<{'x'.join([*sizes, 'f32'])}>"

    def program(self, weight: Array) -> Program:
        loops = sorted(self.sizes)
        operands = [("%x", self.input), ("%w", self.weight)]
        operands = operands[::-1] if self.swapped else operands
        maps = ", ".join(
            f"affine_map<({', '.join(loops)}) -> ({', '.join(letters)})>"
            for letters in (*(letters for _, letters in operands), self.result)
        )
        kinds = ", ".join('"parallel"' if d in self.result else '"reduction"' for d in loops)
        out = self.type(self.result)
        dims = [d for d in self.result if d in self.dynamic]
        lines = [
            f"%c{d} = arith.constant {self.input.index(d)} : index\n"
            f"%n{d} = tensor.dim %x, %c{d} : {self.type(self.input)}"
            for d in dims
        ]
        names, types = zip(*((name, self.type(letters)) for name, letters in operands), strict=True)
        return Program.parse(
            f"mico.constant @w : {self.type(self.weight)} = {hexadecimal(weight)}\n"
            f"func.func @main(%x: {self.type(self.input)}) -> {out} {{\n"
            f"%w = mico.get_constant @w : {self.type(self.weight)}\n"
            + "\n".join(lines)
            + f"""
            %zero = arith.constant 0.0 : f32
            %e = tensor.empty({", ".join(f"%n{d}" for d in dims)}) : {out}
            %f = linalg.fill ins(%zero : f32) outs(%e : {out}) -> {out}
            %y = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
                ins({", ".join(names)} : {", ".join(types)}) outs(%f : {out}) {{
            ^bb0(%a: f32, %b: f32, %c: f32):
              %p = arith.mulf %a, %b : f32
              %s = arith.addf %c, %p : f32
              linalg.yield %s : f32
            }} -> {out}
            func.return %y : {out}
            }}"""
        )


@st.composite
def einsums(draw: st.DrawFn) -> Einsum:
    """Rows m and n, columns c and d, sums k and l, and batches b; one of each at least, or none."""

    def some(letters: str, least: int) -> str:
        return letters[: draw(st.integers(least, len(letters)))]

    batch, rows, columns, sums = some("b", 0), some("mn", 0), some("cd", 1), some("kl", 1)
    sizes = {d: draw(st.integers(1, 4)) for d in batch + rows + columns + sums}

    def shuffled(letters: str) -> str:
        return "".join(draw(st.permutations(letters)))

    return Einsum(
        shuffled(batch + rows + sums),
        shuffled(batch + columns + sums),
        shuffled(batch + rows + columns),
        sizes,
        "".join(d for d in rows if draw(st.booleans())),
        draw(st.booleans()),
    )


def whole_numbers(shape: tuple[int, ...], seed: int) -> Array:
    """Floats whose sums are exact in any order."""
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(np.float32)


def recognized(einsum: Einsum) -> Program:
    """Recognize and fold; check that the results are the same."""
    before = einsum.program(whole_numbers(einsum.shape(einsum.weight), 0))
    after = run_passes(before, "recognize-layers,fold-layer-weights")
    verify(after.module)
    x = whole_numbers(einsum.shape(einsum.input), 1)
    np.testing.assert_array_equal(after.run(x)[0], before.run(x)[0])
    return after


@settings(max_examples=60)
@given(einsum=einsums())
def test_any_contraction_with_a_constant(einsum: Einsum) -> None:
    after = recognized(einsum)
    batches = einsum.sizes.get("b", 1)
    outputs = prod(einsum.sizes[d] for d in "cd" if d in einsum.sizes)
    terms = prod(einsum.sizes[d] for d in "kl" if d in einsum.sizes)
    expected = 0 if terms == 1 or (batches > 1 and outputs == 1) else batches
    results = [op for op in after.module.walk() if isinstance(op, BitLinearOp)]
    assert len(results) == expected
    # Matrices of few numbers may be equal, and are one layer then.
    assert len(layers(after.module)) <= expected


@pytest.mark.parametrize(
    ("input", "weight", "result"),
    [
        ("mk", "kj", "m"),  # A sum over the weight alone.
        ("mkj", "kc", "mc"),  # A sum over the input alone.
        ("m", "c", "mc"),  # No sum.
    ],
)
def test_what_is_no_layer_stays(input: str, weight: str, result: str) -> None:
    sizes = dict.fromkeys(input + weight, 3)
    after = recognized(Einsum(input, weight, result, sizes))
    assert layers(after.module) == {}


def test_matrices_of_a_stack_are_layers_by_number() -> None:
    einsum = Einsum("bmk", "bkc", "bmc", {"b": 3, "m": 2, "k": 4, "c": 5})
    assert list(layers(recognized(einsum).module)) == ["w.0", "w.1", "w.2"]


def test_a_stack_of_very_many_matrices_stays() -> None:
    einsum = Einsum("bmk", "bkc", "bmc", {"b": 257, "m": 1, "k": 2, "c": 2})
    assert layers(recognized(einsum).module) == {}


def test_the_program_that_is_given_is_not_changed() -> None:
    einsum = Einsum("mk", "kc", "mc", {"m": 2, "k": 3, "c": 4}, dynamic="m")
    program = einsum.program(whole_numbers((3, 4), 0))
    text = program.text()
    run_passes(program, "recognize-layers,fold-layer-weights")
    assert program.text() == text
