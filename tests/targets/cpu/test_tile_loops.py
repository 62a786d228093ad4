"""Loop nests in tiles: the IR that is made, and the same bits as without."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

import fewbit
from fewbit.base.typed_torch import manual_seed
from fewbit.passes.loops import tile_loops as tiled
from fewbit.passes.loops import tile_sizes
from fewbit.passes.loops.tile_loops import tile_loops
from fewbit.program.program import Program
from fewbit.targets.cpu.target import begin_cpu
from fewbit.toolchain.isa import Isa
from tests.targets.cpu.emulate import EMULATORS, emulated

DTYPES = {"f32": np.float32, "f64": np.float64, "i8": np.int8, "i32": np.int32}
FEW = settings(max_examples=4, suppress_health_check=[HealthCheck.too_slow])


@contextmanager
def tiling(*levels: str, smallest: int = 1) -> Generator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiled, "tile_loops", partial(tile_loops, levels=levels))
        patch.setattr(tile_sizes, "WORTH_TILING", smallest)
        yield


def loops(program: Program, *levels: str) -> str:
    with tiling(*levels, smallest=tile_sizes.WORTH_TILING):
        return begin_cpu(program, "net", Isa.of("x86-64-v3")).run("loops").text


def generic(
    maps: list[str], kinds: list[str], tensors: list[str], body: str, sizes: str = ""
) -> Program:
    """A nest that reads all tensors but the last, and writes the last."""
    *read, written = tensors
    names = [f"%x{i}" for i in range(len(read))]
    elements = [re.split(r"[x<>]", t)[-2] for t in tensors]
    kept = ", ".join(f"affine_map<{m}>" for m in maps)
    arguments = ", ".join(f"%v{i}: {e}" for i, e in enumerate(elements))
    zero = "0.0" if elements[-1].startswith("f") else "0"
    return Program.parse(f"""
func.func @main({", ".join(f"{n}: {t}" for n, t in zip(names, read, strict=True))}) -> {written} {{
  {sizes}
  %zero = arith.constant {zero} : {elements[-1]}
  %empty = tensor.empty({", ".join(re.findall("%size[0-9]+", sizes))}) : {written}
  %filled = linalg.fill ins(%zero : {elements[-1]}) outs(%empty : {written}) -> {written}
  %r = linalg.generic {{indexing_maps = [{kept}], iterator_types = [{", ".join(f'"{k}"' for k in kinds)}]}}
      ins({", ".join(names)} : {", ".join(read)}) outs(%filled : {written}) {{
  ^bb0({arguments}):
    {body}
    linalg.yield %r : {elements[-1]}
  }} -> {written}
  func.return %r : {written}
}}""")


def transpose(rows: int, columns: int, element: str = "f32") -> Program:
    return generic(
        ["(i, j) -> (j, i)", "(i, j) -> (i, j)"],
        ["parallel", "parallel"],
        [f"tensor<{columns}x{rows}x{element}>", f"tensor<{rows}x{columns}x{element}>"],
        f"%r = arith.add{element[0]} %v0, %v0 : {element}",
    )


def product(m: int, n: int, k: int, element: str = "f64") -> Program:
    kind = element[0]
    return generic(
        ["(i, j, k) -> (i, k)", "(i, j, k) -> (k, j)", "(i, j, k) -> (i, j)"],
        ["parallel", "parallel", "reduction"],
        [f"tensor<{m}x{k}x{element}>", f"tensor<{k}x{n}x{element}>", f"tensor<{m}x{n}x{element}>"],
        f"%p = arith.mul{kind} %v0, %v1 : {element}\n    %r = arith.add{kind} %v2, %p : {element}",
    )


def values(shape: tuple[int, ...], element: str = "f64", seed: int = 0) -> np.ndarray:
    found = np.random.default_rng(seed).standard_normal(shape)
    return (found * 20 if element.startswith("i") else found).astype(DTYPES[element])


def same_bits(program: Program, *inputs: np.ndarray, levels: tuple[str, ...] = ("linalg",)) -> None:
    """Compare runs with tiles and without, for any number of threads."""
    with tiling():
        (expected, *_) = fewbit.compile(program).run(*inputs)
    with tiling(*levels):
        artifact = fewbit.compile(program)
    for threads in (1, 2, 5):
        (found, *_) = artifact.run(*inputs, threads=threads)
        np.testing.assert_array_equal(found, expected)


def test_a_transpose_is_shuffled_in_registers_and_shared_by_tiles() -> None:
    text = loops(transpose(1000, 1000), "linalg")
    assert "vector.shuffle" in text
    assert "vector.load" in text
    # 32 tiles of rows; each thread has a part of them.
    assert re.search(r"arith\.muli %arg\d+, %c32 : index\n\s*%\d+ = arith\.divui", text)


def test_blocks_of_other_sizes_are_at_the_edges() -> None:
    whole, rest = (loops(transpose(1024, n), "linalg") for n in (1024, 1023))
    assert "memref.load" not in whole
    assert "memref.load" in rest


def test_a_product_takes_four_summands_at_a_time() -> None:
    text = loops(product(256, 256, 256), "linalg")
    nest = text[text.index("@program.entry_001(%arg0: ") :]
    assert re.search(r"scf\.for %arg\d+ = %c0 to %c256 step %c4", nest)
    assert nest.count("scf.for") == 5  # tiles of columns, rows, summands; columns, summands


@pytest.mark.parametrize("levels", [(), ("linalg",), ("affine",), ("linalg", "affine")])
def test_what_streams_is_left(levels: tuple[str, ...]) -> None:
    same = "(i, j) -> (i, j)"
    tensor = "tensor<100x200xf32>"
    program = generic(
        [same, "(i, j) -> (j)", same],
        ["parallel", "parallel"],
        [tensor, "tensor<200xf32>", tensor],
        "%r = arith.addf %v0, %v1 : f32",
    )
    assert loops(program, *levels) == loops(program)


def test_small_nests_are_left() -> None:
    assert loops(transpose(20, 20), "linalg", "affine") == loops(transpose(20, 20))


def test_affine_loops_are_tiled_where_indices_are_quotients() -> None:
    program = repeated()
    plain, tiled = loops(program), loops(program, "linalg", "affine")
    assert plain.count("scf.for") == 2
    assert tiled.count("scf.for") == 4
    same_bits(program, values((100, 400), "f32"), levels=("linalg", "affine"))


def repeated() -> Program:
    """A transpose in which every column comes twice."""
    return generic(
        ["(i, j) -> (j floordiv 2, i)", "(i, j) -> (i, j)"],
        ["parallel", "parallel"],
        ["tensor<100x400xf32>", "tensor<400x200xf32>"],
        "%r = arith.addf %v0, %v0 : f32",
    )


@pytest.mark.parametrize("levels", [("linalg",), ("affine",)])
def test_both_levels_give_the_same_bits(levels: tuple[str, ...]) -> None:
    same_bits(transpose(90, 77, "f64"), values((77, 90)), levels=levels)
    same_bits(product(33, 70, 41), values((33, 41)), values((41, 70), seed=1), levels=levels)


@FEW
@given(
    sizes=st.tuples(st.integers(1, 70), st.integers(1, 70), st.integers(1, 30)),
    element=st.sampled_from(["f32", "f64", "i32", "i8"]),
)
def test_products_of_any_size(sizes: tuple[int, int, int], element: str) -> None:
    m, n, k = sizes
    same_bits(product(m, n, k, element), values((m, k), element), values((k, n), element, 1))


@FEW
@given(data=st.data())
def test_dimensions_in_any_order(data: st.DataObject) -> None:
    """Factors are one number, one that is a row; the run knows the sizes or not."""
    rank = data.draw(st.integers(2, 4))
    sizes = data.draw(st.lists(st.integers(1, 20), min_size=rank, max_size=rank))
    order = data.draw(st.permutations(range(rank)))
    dynamic = data.draw(st.booleans())
    element = data.draw(st.sampled_from(["f32", "f64"]))
    program, expected = permuted(sizes, order, element, dynamic)
    x, row, one = (
        values(tuple(sizes), element),
        values((sizes[order[-1]],), element, 1),
        values((), element, 2),
    )
    with tiling("linalg"):
        artifact = fewbit.compile(program)
    for threads in (1, 3):
        result = artifact(x, row, one, threads=threads)
        np.testing.assert_array_equal(result, expected(x, row, one))


def permuted(
    sizes: list[int], order: list[int], element: str, dynamic: bool
) -> tuple[Program, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]]:
    rank = len(sizes)
    loops = ", ".join(f"d{i}" for i in range(rank))
    # Axis `a` of the input is axis `order.index(a)` of the output.
    read = ", ".join(f"d{order.index(axis)}" for axis in range(rank))

    def tensor(shape: list[int]) -> str:
        dims = "".join("?x" if dynamic else f"{size}x" for size in shape)
        return f"tensor<{dims}{element}>"

    whole = tensor(sizes)
    measured = "\n".join(
        f"  %axis{i} = arith.constant {axis} : index\n  %size{i} = tensor.dim %x0, %axis{i} : {whole}"
        for i, axis in enumerate(order)
    )
    program = generic(
        [
            f"({loops}) -> ({read})",
            f"({loops}) -> (d{rank - 1})",
            f"({loops}) -> ()",
            f"({loops}) -> ({loops})",
        ],
        ["parallel"] * rank,
        [
            whole,
            tensor([sizes[order[-1]]]),
            f"tensor<{element}>",
            tensor([sizes[a] for a in order]),
        ],
        f"%s = arith.mulf %v0, %v2 : {element}\n    %r = arith.addf %s, %v1 : {element}",
        measured if dynamic else "",
    )
    return program, lambda x, row, one: x.transpose(order) * one + row


class Columns(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x.transpose(1, 2).sum(-1), x.permute(2, 0, 1) * 2


CONV = (nn.Conv2d(5, 7, 3, stride=2, padding=1), (2, 5, 19, 21), torch.float64)
LINEAR = (nn.Linear(45, 37), (9, 45), torch.float64)
POOL = (nn.MaxPool2d(3, 2), (2, 9, 17, 19), torch.float64)
COLUMNS = (Columns(), (3, 40, 50), torch.float32)


@pytest.mark.parametrize(
    ("module", "shape", "dtype", "dynamic"),
    [
        (*CONV, True),
        (*LINEAR, True),
        (*COLUMNS, False),
        *(pytest.param(*case, False, marks=pytest.mark.slow) for case in (CONV, LINEAR, POOL)),
        *(pytest.param(*case, True, marks=pytest.mark.slow) for case in (POOL, COLUMNS)),
    ],
)
def test_models(
    module: nn.Module, shape: tuple[int, ...], dtype: torch.dtype, dynamic: bool
) -> None:
    manual_seed(0)
    x = torch.randn(shape).to(dtype)
    shapes = ({0: torch.export.Dim("batch")},) if dynamic else None
    program = fewbit.import_model(module.to(dtype).eval(), (x,), shapes)
    same_bits(program, x.numpy())
    (expected, *_) = program.run(x.numpy())
    (found, *_) = fewbit.compile(program).run(x.numpy())
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("processor", EMULATORS)
def test_other_processors(tmp_path: Path, processor: str) -> None:
    program = transpose(70, 90)
    x = values((90, 70), "f32")
    artifact = fewbit.compile(program, f"cpu:{processor}", tmp_path / "net")
    (found,) = emulated(artifact, tmp_path, x, like=[2 * x.T], threads=2)
    np.testing.assert_array_equal(found, 2 * x.T)
