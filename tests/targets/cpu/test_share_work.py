"""Loops shared by threads, in the code that comes out."""

from __future__ import annotations

import re

import numpy as np
import pytest

import fewbit
from fewbit.program.program import Program
from fewbit.targets.cpu.target import begin_cpu
from fewbit.toolchain.isa import Isa


def add(size: int) -> Program:
    tensor = f"tensor<{size}xf32>"
    return Program.parse(f"""
func.func @main(%x: {tensor}) -> {tensor} {{
  %e = tensor.empty() : {tensor}
  %r = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}} ins(%x : {tensor}) outs(%e : {tensor}) {{
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  }} -> {tensor}
  func.return %r : {tensor}
}}""")


def loops(program: Program) -> str:
    return begin_cpu(program, "net", Isa.of("x86-64-v3")).run("loops").text


def test_long_loop_is_split_between_threads() -> None:
    text = loops(add(100_000))
    assert "arith.divui" in text
    assert len(re.findall(r"call @threads\.barrier", text)) == 1


def test_short_loop_is_done_by_the_first_thread() -> None:
    text = loops(add(10))
    assert "arith.divui" not in text
    assert re.search(r"arith\.cmpi eq, .*\n\s*scf\.if", text)
    assert "call @threads.barrier" in text


@pytest.mark.parametrize("size", [1, 7, 2048, 2049, 5003])
def test_every_element_is_done_once(size: int) -> None:
    """Also where there are more threads than work, or the work does not divide."""
    artifact = fewbit.compile(add(size))
    x = np.arange(size, dtype=np.float32)
    for threads in (1, 2, 3, 7, 64):
        assert np.array_equal(artifact(x, threads=threads), 2 * x)


def test_stores_of_scalars_are_done_once() -> None:
    program = Program.parse("""
func.func @main(%x: tensor<8xf32>, %v: f32) -> (tensor<8xf32>, f32) {
  %k = arith.constant 3 : index
  %r = tensor.insert %v into %x[%k] : tensor<8xf32>
  %s = tensor.extract %r[%k] : tensor<8xf32>
  func.return %r, %s : tensor<8xf32>, f32
}""")
    artifact = fewbit.compile(program)
    x = np.arange(8, dtype=np.float32)
    for threads in (1, 4):
        result, value = artifact(x, np.float32(99), threads=threads)
        assert result.tolist() == [0, 1, 2, 99, 4, 5, 6, 7]
        assert value == 99


def test_small_loops_in_a_row_need_one_wait() -> None:
    tensor = "tensor<10xf32>"
    small = """
  %{r} = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (0)>],
      iterator_types = ["reduction"]}} ins(%x : tensor<10xf32>) outs(%z : tensor<1xf32>) {{
  ^bb0(%a: f32, %b: f32):
    %s = arith.{op} %a, %b : f32
    linalg.yield %s : f32
  }} -> tensor<1xf32>"""
    program = Program.parse(
        f"func.func @main(%x: {tensor}, %z: tensor<1xf32>) -> (tensor<1xf32>, tensor<1xf32>) {{"
        + small.format(r="sum", op="addf")
        + small.format(r="most", op="maximumf")
        + "\n  func.return %sum, %most : tensor<1xf32>, tensor<1xf32>\n}"
    )
    text = loops(program)
    entry = text[text.index("func.func @program.entry(") :].partition("return")[0]
    assert len(re.findall(r"call @program\.entry_\d+", entry)) > 2
    assert len(re.findall(r"call @threads\.barrier", entry)) == 1
    art = fewbit.compile(program, profile=True)
    x, zero = np.arange(10, dtype=np.float32), np.zeros(1, np.float32)
    assert [y.tolist() for y in art(x, zero, threads=3)] == [[45], [9]]
    assert len(art.profile()) > 2
