"""Loops over neighbouring elements become one; others stay as they are."""

from __future__ import annotations

import re

import pytest

from fewbit.ir.bindings import parse_mlir
from fewbit.passes.loops.collapse_loops import collapse_loops


def collapse(
    maps: str, kinds: str, types: tuple[str, str], body: str = "%z = arith.addf %a, %b : f32"
) -> str:
    module = parse_mlir(f"""
      func.func @main(%x: {types[0]}, %y: {types[1]}) {{
        linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
          ins(%x : {types[0]}) outs(%y : {types[1]}) {{
          ^bb0(%a: f32, %b: f32):
            {body}
            linalg.yield %z : f32
        }}
        return
      }}""")
    collapse_loops(module, "main")
    assert module.operation.verify()
    return str(module)


ALL = "affine_map<(i, j, k) -> (i, j, k)>"
PARALLEL = '"parallel", "parallel", "parallel"'


def kinds_of(text: str) -> list[str]:
    (kinds,) = re.findall(r"iterator_types = \[(.*?)\]", text)
    return re.findall(r'"(\w+)"', kinds)


def test_elementwise_is_one_loop() -> None:
    text = collapse(f"{ALL}, {ALL}", PARALLEL, ("memref<2x3x4xf32>", "memref<2x3x4xf32>"))
    assert kinds_of(text) == ["parallel"]
    assert "memref<24xf32>" in text


def test_a_sum_over_two_dimensions_is_one_sum() -> None:
    kinds = '"parallel", "reduction", "reduction"'
    maps = f"{ALL}, affine_map<(i, j, k) -> (i)>"
    text = collapse(maps, kinds, ("memref<2x3x4xf32>", "memref<2xf32>"))
    assert kinds_of(text) == ["parallel", "reduction"]


def test_dynamic_sizes() -> None:
    text = collapse(f"{ALL}, {ALL}", PARALLEL, ("memref<?x3x?xf32>", "memref<?x3x?xf32>"))
    assert kinds_of(text) == ["parallel"]


@pytest.mark.parametrize(
    ("maps", "types"),
    [
        ("affine_map<(i, j, k) -> (k, j, i)>, " + ALL, ("memref<4x3x2xf32>", "memref<2x3x4xf32>")),
        (
            "affine_map<(i, j, k) -> (j)>, " + ALL,
            ("memref<3xf32>", "memref<2x3x4xf32>"),
        ),
        (
            f"{ALL}, {ALL}",
            ("memref<2x3x4xf32, strided<[30, 5, 1]>>", "memref<2x3x4xf32>"),
        ),
    ],
)
def test_others_stay(maps: str, types: tuple[str, str]) -> None:
    assert kinds_of(collapse(maps, PARALLEL, types)) == ["parallel"] * 3


def test_a_loop_whose_number_is_used_stays() -> None:
    body = """%n = linalg.index 1 : index
            %m = arith.index_cast %n : index to i32
            %f = arith.sitofp %m : i32 to f32
            %z = arith.addf %a, %f : f32"""
    text = collapse(f"{ALL}, {ALL}", PARALLEL, ("memref<2x3x4xf32>", "memref<2x3x4xf32>"), body)
    assert kinds_of(text) == ["parallel"] * 3
