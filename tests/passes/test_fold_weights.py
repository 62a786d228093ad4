"""What depends on weights alone is computed once, and kept as a weight."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fewbit.dialects import mico
from fewbit.ir.verify import verify
from fewbit.numerics import quantize_weight
from fewbit.passes.graph.fold_weights import GROWTH, SMALL
from fewbit.pipeline.compilation import run_passes
from fewbit.program.program import Program
from tests.passes.lowering import constants, hexadecimal

W, T, X = "tensor<6x4xf32>", "tensor<4x6xf32>", "tensor<?x6xf32>"
READ = f"%w = mico.get_constant @fc.weight : {W}\n"
TRANSPOSED = f"%t = mico.transpose(%w) {{permutation = [1, 0]}} : ({W}) -> {T}\n"
WEIGHT = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)


def program(body: str, result: str = "tensor<?x4xf32>", more: str = "") -> Program:
    text = f"mico.constant @fc.weight : {W} = {hexadecimal(WEIGHT)}\n{more}"
    text += f"func.func @main(%x: {X}) -> {result} {{\n{body}func.return %y : {result}\n}}"
    return Program.parse(text)


def folded(before: Program) -> Program:
    """Fold a program, and check its text, store and results."""
    text = str(before.module)
    after = run_passes(before, "fold-weights")
    verify(after.module)
    assert str(before.module) == text
    x = np.random.default_rng(1).normal(size=(3, 6)).astype(np.float32)
    np.testing.assert_array_equal(results(after, x), results(before, x))
    return after


def results(program: Program, x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    (y,) = program.run(x)
    return y


def names(program: Program) -> set[str]:
    """Return the names of the constants that are left."""
    ops = program.module.body.block.ops
    return {op.sym_name.data for op in ops if isinstance(op, mico.ConstantOp)}


def ops_in(program: Program) -> list[str]:
    return [op.name for op in program.module.walk()]


def matmul(weight: str, name: str = "%y") -> str:
    return f"{name} = kernel.matmul(%x, {weight}) : ({X}, {T}) -> tensor<?x4xf32>\n"


def test_a_transposed_weight_is_a_weight() -> None:
    after = folded(program(READ + TRANSPOSED + matmul("%t")))
    assert names(after) == {"fc.weight.folded"}
    assert "mico.transpose" not in ops_in(after)
    np.testing.assert_array_equal(after.store["fc.weight.folded"], WEIGHT.T)


def test_only_the_last_of_a_chain_is_kept() -> None:
    body = READ + TRANSPOSED + f"%r = mico.relu(%t) : ({T}) -> {T}\n" + matmul("%r")
    after = folded(program(body))
    assert names(after) == {"fc.weight.folded"}
    assert list(after.store) == ["fc.weight.folded"]
    assert {"mico.transpose", "mico.relu"}.isdisjoint(ops_in(after))


def test_an_outcome_may_be_folded_further() -> None:
    body = (
        READ
        + TRANSPOSED
        + "".join(f"%{name} = mico.{name}(%t) : ({T}) -> {T}\n" for name in ("relu", "gelu"))
    )
    body += matmul("%t", "%a") + matmul("%relu", "%b") + matmul("%gelu", "%c")
    add = "(tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>\n"
    body += f"%d = mico.add(%a, %b) : {add}%y = mico.add(%c, %d) : {add}"
    after = folded(program(body))
    assert len(names(after)) == 3
    assert {"mico.transpose", "mico.relu", "mico.gelu"}.isdisjoint(ops_in(after))


def test_a_weight_that_is_read_as_it_is_stays() -> None:
    body = READ + TRANSPOSED + matmul("%t", "%a")
    body += "%b = mico.get_constant @fc.weight : " + W + "\n"
    body += f"%y = mico.bitlinear(%a, %b) : (tensor<?x4xf32>, {W}) -> {X}\n"
    after = folded(program(body, X))
    assert names(after) == {"fc.weight", "fc.weight.folded"}


def test_names_that_are_taken_are_not_used() -> None:
    taken = f"mico.constant @fc.weight.folded : tensor<6xf32> = {hexadecimal(WEIGHT[:, 0])}\n"
    body = READ + TRANSPOSED + matmul("%t", "%a")
    body += "%b = mico.get_constant @fc.weight.folded : tensor<6xf32>\n"
    body += f"%c = mico.add(%x, %b) : ({X}, tensor<6xf32>) -> {X}\n"
    body += matmul("%t", "%d").replace("%x", "%c")
    add = "(tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>\n"
    after = folded(program(body + f"%y = mico.add(%a, %d) : {add}", more=taken))
    assert names(after) == {"fc.weight.folded", "fc.weight.folded.1"}


@pytest.mark.parametrize(("size", "stays"), [(8, False), (256, True)])
def test_what_grows_too_much_is_left_to_be_computed(size: int, stays: bool) -> None:
    row, column, square = f"1x{size}xf32", f"{size}x1xf32", f"{size}x{size}xf32"
    assert (4 * size * size > max(SMALL, GROWTH * 8 * size)) is stays
    ones = f"mico.constant @row : tensor<{row}> = dense<1.0>\n"
    ones += f"mico.constant @column : tensor<{column}> = dense<2.0>\n"
    body = f"""%r = mico.get_constant @row : tensor<{row}>
%c = mico.get_constant @column : tensor<{column}>
%y = mico.add(%r, %c) : (tensor<{row}>, tensor<{column}>) -> tensor<{square}>
"""
    after = folded(program(body, f"tensor<{square}>", more=ones))
    assert ("mico.add" in ops_in(after)) is stays


FEW, SCALE = "tensor<4x6x!mico.int<3>>", "tensor<4xf32>"
READ_FEW = f"%w = mico.get_constant @few : {FEW}\n"
READ_SCALE = f"%s = mico.get_constant @few.scale : {SCALE}\n"
FLOATS = f"%f = mico.dequantize(%w, %s) : ({FEW}, {SCALE}) -> {T}\n"


def few_bits(body: str) -> Program:
    more = f"mico.constant @other : {SCALE} = dense<2.0>\n"
    return program(body, more=more + constants("few", quantize_weight(WEIGHT.T, 3)))


def test_a_scale_goes_with_its_integers() -> None:
    after = folded(few_bits(READ_FEW + READ_SCALE + FLOATS + matmul("%f")))
    assert {"few", "few.scale"}.isdisjoint(names(after))
    assert "few.folded" in names(after)


def test_a_scale_that_nothing_reads_goes_with_its_integers() -> None:
    other = READ_SCALE.replace("few.scale", "other")
    after = folded(few_bits(READ_FEW + other + FLOATS + matmul("%f")))
    assert {"few", "few.scale", "other"}.isdisjoint(names(after))


def test_a_scale_stays_with_its_integers() -> None:
    body = READ_FEW + READ_SCALE + f"%r = mico.relu(%s) : ({SCALE}) -> {SCALE}\n"
    body += f"%y = mico.bitlinear(%x, %w) weight_scale(%r) : ({X}, {FEW}, {SCALE})"
    after = folded(few_bits(body + " -> tensor<?x4xf32>\n"))
    assert {"few", "few.scale", "few.scale.folded"} <= names(after)
