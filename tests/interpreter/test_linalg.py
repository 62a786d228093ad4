"""linalg against loops: every strategy of the interpreter gives what the loops would."""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.linalg.ops import GenericOp
from xdsl.ir.affine import AffineMap

from fewbit.errors import InterpretError
from fewbit.interpreter import interpret
from fewbit.interpreter import linalg as strategies
from tests.interpreter.programs import Array, f32, i32, parse, run


def generic(
    maps: Sequence[str],
    iterators: str,
    body: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    yielded: str,
) -> str:
    """A function around one linalg.generic. Body arguments are %i0, ... and %o0, ..."""
    kinds = {"p": "parallel", "r": "reduction"}
    types = [*inputs, *outputs]
    elements = [t[:-1].rsplit("x", 1)[-1].removeprefix("tensor<") for t in types]
    names = [f"%i{k}" for k in range(len(inputs))] + [f"%o{k}" for k in range(len(outputs))]
    body_arguments = ", ".join(f"{n}: {e}" for n, e in zip(names, elements, strict=True))
    arguments = [f"%a{k}" for k in range(len(types))]
    signature = ", ".join(f"{a}: {t}" for a, t in zip(arguments, types, strict=True))
    results = ", ".join(outputs)
    return f"""
    func.func @main({signature}) -> ({results}) {{
      %r:{len(outputs)} = "linalg.generic"({", ".join(arguments)})
          <{{operandSegmentSizes = array<i32: {len(inputs)}, {len(outputs)}>,
            indexing_maps = [{", ".join(f"affine_map<{m}>" for m in maps)}],
            iterator_types = [{", ".join(f"#linalg.iterator_type<{kinds[i]}>" for i in iterators)}]}}> ({{
      ^bb0({body_arguments}):
        {body}
        linalg.yield {yielded} : {", ".join(elements[len(inputs) :])}
      }}) : ({", ".join(types)}) -> ({results})
      func.return {", ".join(f"%r#{k}" for k in range(len(outputs)))} : {results}
    }}"""


Body = Callable[..., Sequence[Any]]


def loops(module: Any, body: Body, arrays: Sequence[Array], ranges: Sequence[int]) -> list[Array]:
    """The semantics of linalg.generic: a loop nest around a body."""
    (op,) = (op for op in module.walk() if isinstance(op, GenericOp))
    maps: list[AffineMap] = [m.data for m in op.indexing_maps]
    count = len(op.inputs)
    results = [np.array(a) for a in arrays[count:]]
    for point in itertools.product(*map(range, ranges)):
        values = [a[m.eval(point, [])] for a, m in zip(arrays[:count], maps, strict=False)]
        current = [r[m.eval(point, [])] for r, m in zip(results, maps[count:], strict=True)]
        new = body(*values, *current)
        for result, m, value in zip(results, maps[count:], new, strict=True):
            result[m.eval(point, [])] = value
    return results


def integers(rng: np.random.Generator, *shape: int, low: int = -9, high: int = 9) -> Array:
    return rng.integers(low, high, shape).astype(np.int32)


READS = [
    ("(a, b, c) -> (a, b, c)", (2, 3, 4)),
    ("(a, b, c) -> (c, a)", (4, 2)),
    ("(a, b, c) -> (b)", (3,)),
    ("(a, b, c) -> ()", ()),
    ("(a, b, c) -> (a + c * 2, b)", (8, 3)),
    ("(a, b, c) -> (a * 3 + 1, c, c)", (5, 4, 4)),
    ("(a, b, c) -> (3 - c, 0, b)", (4, 2, 3)),
    ("(a, b, c) -> (c floordiv 2, (a + b) mod 2)", (2, 2)),
]


@pytest.mark.parametrize("first", READS)
@pytest.mark.parametrize("second", READS[::2])
@pytest.mark.parametrize(
    ("write", "shape", "iterators"),
    [
        ("(a, b, c) -> (a, b, c)", (2, 3, 4), "ppp"),
        ("(a, b, c) -> (c, b, a)", (4, 3, 2), "ppp"),
        ("(a, b, c) -> (b, a)", (3, 2), "ppr"),
        ("(a, b, c) -> (a, 0)", (2, 3), "prr"),
        ("(a, b, c) -> ()", (), "rrr"),
    ],
)
def test_integer_sums_of_products_through_any_maps(
    first: tuple[str, tuple[int, ...]],
    second: tuple[str, tuple[int, ...]],
    write: str,
    shape: tuple[int, ...],
    iterators: str,
) -> None:
    rng = np.random.default_rng(7)
    body = """%p = arith.muli %i0, %i1 : i32
        %s = arith.addi %o0, %p : i32"""

    def tensor(size: Sequence[int]) -> str:
        return "tensor<" + "".join(f"{n}x" for n in size) + "i32>"

    # The last operand gives every loop its range.
    frame = "(a, b, c) -> (a, b, c)"
    text = generic(
        [first[0], second[0], frame, write],
        iterators,
        body,
        [tensor(first[1]), tensor(second[1]), "tensor<2x3x4xi32>"],
        [tensor(shape)],
        "%s",
    )
    module = parse(text)
    arrays = [integers(rng, *first[1]), integers(rng, *second[1]), integers(rng, 2, 3, 4)]
    arrays.append(integers(rng, *shape))

    def multiply_add(x: Any, y: Any, _: Any, o: Any) -> list[Any]:
        return [o + x * y]

    (wanted,) = loops(module, multiply_add, arrays, (2, 3, 4))
    (given,) = interpret(module, *arrays)
    assert np.array_equal(given, wanted)


REDUCTIONS: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "arith.addi": ("i8", lambda a, b: np.int8((int(a) + int(b) + 128) % 256 - 128)),
    "arith.muli": ("i8", lambda a, b: np.int8((int(a) * int(b) + 128) % 256 - 128)),
    "arith.maxsi": ("i8", max),
    "arith.minsi": ("i8", min),
    "arith.maxui": ("i8", lambda a, b: max(a, b, key=lambda x: int(x) % 256)),
    "arith.minui": ("i8", lambda a, b: min(a, b, key=lambda x: int(x) % 256)),
    "arith.andi": ("i8", lambda a, b: a & b),
    "arith.ori": ("i8", lambda a, b: a | b),
    "arith.xori": ("i8", lambda a, b: a ^ b),
    "arith.maximumf": ("f32", lambda a, b: np.maximum(a, b)),
    "arith.minimumf": ("f32", lambda a, b: np.minimum(a, b)),
    "arith.maxnumf": ("f32", lambda a, b: np.fmax(a, b)),
    "arith.minnumf": ("f32", lambda a, b: np.fmin(a, b)),
}


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("swapped", [False, True])
def test_reductions(name: str, swapped: bool) -> None:
    type, combine = REDUCTIONS[name]
    rng = np.random.default_rng(2)
    operands = "%o0, %i0" if swapped else "%i0, %o0"
    body = f'%s = "{name}"({operands}) : ({type}, {type}) -> {type}'
    text = generic(
        ["(a, b, c) -> (c, a, b)", "(a, b, c) -> (b)"],
        "rpr",
        body,
        [f"tensor<5x3x4x{type}>"],
        [f"tensor<4x{type}>"],
        "%s",
    )
    x, initial = (rng.integers(-128, 128, s).astype(np.int8) for s in ((5, 3, 4), (4,)))
    if type == "f32":
        x, initial = x.astype(np.float32), initial.astype(np.float32)
        x[0, 0, 0] = np.nan
    module = parse(text)

    def step(i: Any, o: Any) -> list[Any]:
        return [combine(o, i)]

    (wanted,) = loops(module, step, [x, initial], (3, 4, 5))
    (given,) = interpret(module, x, initial)
    assert np.array_equal(given, wanted, equal_nan=type == "f32")


def test_a_reduction_of_single_bits() -> None:
    for name, wanted in [("addi", [True, False]), ("andi", [True, False]), ("ori", [True, True])]:
        text = generic(
            ["(a, b) -> (a, b)", "(a, b) -> (a)"],
            "pr",
            f"%s = arith.{name} %i0, %o0 : i1",
            ["tensor<2x3xi1>"],
            ["tensor<2xi1>"],
            "%s",
        )
        x = np.array([[True, True, True], [True, False, False]])
        initial = np.array([name == "andi", name == "addi"])
        if name == "andi":
            initial[1] = True
        assert run(text, x, initial)[0].tolist() == wanted


def test_float_sums_are_rounded_once() -> None:
    # In float32, one after the other, the small terms would all be lost.
    x = np.full(2**16 + 1, 2.0**-24, np.float32)
    x[0] = 1
    text = generic(
        ["(k) -> (k)", "(k) -> ()"], "r", "%s = arith.addf %o0, %i0 : f32",
        ["tensor<?xf32>"], ["tensor<f32>"], "%s",
    )  # fmt: skip
    assert run(text, x, f32(0))[0] == np.float32(1 + 2.0**-8)


def test_float_products_are_summed_exactly() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=s).astype(np.float32) for s in ((7, 300), (300, 5)))
    text = """func.func @main(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>, %c: tensor<?x?xf32>)
        -> tensor<?x?xf32> {
      %r = linalg.matmul ins(%a, %b : tensor<?x?xf32>, tensor<?x?xf32>)
        outs(%c : tensor<?x?xf32>) -> tensor<?x?xf32>
      func.return %r : tensor<?x?xf32> }"""
    c = rng.normal(size=(7, 5)).astype(np.float32)
    (given,) = run(text, a, b, c)
    exact = a.astype(np.longdouble) @ b.astype(np.longdouble) + c
    assert np.array_equal(given, exact.astype(np.float32))


def test_integer_contractions_wrap_even_where_floats_are_not_exact() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-(2**62), 2**62, s) for s in ((3, 9), (9, 2)))
    text = """func.func @main(%a: tensor<3x9xi64>, %b: tensor<9x2xi64>, %c: tensor<3x2xi64>)
        -> tensor<3x2xi64> {
      %r = linalg.matmul ins(%a, %b : tensor<3x9xi64>, tensor<9x2xi64>)
        outs(%c : tensor<3x2xi64>) -> tensor<3x2xi64>
      func.return %r : tensor<3x2xi64> }"""
    (given,) = run(text, a, b, np.zeros((3, 2), np.int64))
    exact = a.astype(object) @ b.astype(object)
    assert given.astype(object).tolist() == [
        [(n + 2**63) % 2**64 - 2**63 for n in row] for row in exact
    ]


def test_several_outputs_with_argmax() -> None:
    body = """%d = linalg.index 1 : index
        %k = arith.index_cast %d : index to i64
        %m = arith.maximumf %i0, %o0 : f32
        %g = arith.cmpf ogt, %i0, %o0 : f32
        %j = arith.select %g, %k, %o1 : i64"""
    text = generic(
        ["(a, b) -> (a, b)", "(a, b) -> (a)", "(a, b) -> (a)"],
        "pr",
        body,
        ["tensor<?x?xf32>"],
        ["tensor<?xf32>", "tensor<?xi64>"],
        "%m, %j",
    )
    x = np.random.default_rng(1).normal(size=(6, 9)).astype(np.float32)
    x[2, 4] = x[2, 7] = 9
    most, where = run(text, x, np.full(6, -np.inf, np.float32), np.zeros(6, np.int64))
    assert np.array_equal(most, x.max(1))
    assert np.array_equal(where, x.argmax(1))


def test_bodies_that_are_no_reduction_run_in_order() -> None:
    # Horner's rule: each step needs the one before.
    body = """%t = arith.mulf %o0, %i1 : f32
        %s = arith.addf %t, %i0 : f32"""
    text = generic(
        ["(p, k) -> (k)", "(p, k) -> (p)", "(p, k) -> (p)"],
        "pr",
        body,
        ["tensor<4xf32>", "tensor<3xf32>"],
        ["tensor<3xf32>"],
        "%s",
    )
    coefficients, x = f32([1, -2, 0.5, 4]), f32([0, 1, -2])
    (given,) = run(text, coefficients, x, np.zeros(3, np.float32))
    assert given.tolist() == np.polyval(coefficients, x).tolist()


def test_outputs_of_different_rank_see_each_others_order() -> None:
    # A prefix sum: the running total is one output, every prefix the other.
    body = "%s = arith.addi %o0, %i0 : i32"
    text = generic(
        ["(k) -> (k)", "(k) -> ()", "(k) -> (k)"],
        "r",
        body,
        ["tensor<5xi32>"],
        ["tensor<i32>", "tensor<5xi32>"],
        "%s, %s",
    )
    x = i32([1, 2, 3, 4, 5])
    total, prefixes = run(text, x, i32(0), np.zeros(5, np.int32))
    assert total == 15
    assert prefixes.tolist() == np.cumsum(x).tolist()


def test_outputs_that_are_exchanged() -> None:
    text = generic(
        ["(k) -> (k)", "(k) -> (k)"], "p", "", [], ["tensor<3xi32>", "tensor<3xi32>"], "%o1, %o0"
    )
    a, b = i32([1, 2, 3]), i32([4, 5, 6])
    x, y = run(text, a, b)
    assert (x.tolist(), y.tolist()) == ([4, 5, 6], [1, 2, 3])


def test_control_flow_in_a_body() -> None:
    body = """%d = linalg.index 0 : index
        %c1 = arith.constant 1 : index
        %c = arith.cmpi eq, %d, %c1 : index
        %s = scf.if %c -> (i32) {
          scf.yield %o0 : i32
        } else {
          %t = arith.addi %i0, %o0 : i32
          scf.yield %t : i32
        }"""
    text = generic(
        ["(a, b) -> (a, b)", "(a, b) -> (b)"],
        "rp",
        body,
        ["tensor<3x2xi32>"],
        ["tensor<2xi32>"],
        "%s",
    )
    x = i32([[1, 2], [30, 40], [5, 6]])
    assert run(text, x, i32([100, 200]))[0].tolist() == [106, 208]


def test_gathers_in_a_body() -> None:
    text = """
    func.func @main(%t: tensor<?x?xf32>, %i: tensor<?xi64>) -> tensor<?x3xf32> {
      %c0 = arith.constant 0 : index
      %n = tensor.dim %i, %c0 : tensor<?xi64>
      %e = tensor.empty(%n) : tensor<?x3xf32>
      %r = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a)>, affine_map<(a, b) -> (a, b)>],
          iterator_types = ["parallel", "parallel"]} ins(%i : tensor<?xi64>) outs(%e : tensor<?x3xf32>) {
      ^bb0(%k: i64, %o: f32):
        %row = arith.index_cast %k : i64 to index
        %column = linalg.index 1 : index
        %v = tensor.extract %t[%row, %column] : tensor<?x?xf32>
        linalg.yield %v : f32
      } -> tensor<?x3xf32>
      func.return %r : tensor<?x3xf32>
    }"""
    table = np.random.default_rng(0).normal(size=(7, 3)).astype(np.float32)
    rows = np.array([6, 0, 0, 3])
    assert np.array_equal(run(text, table, rows)[0], table[rows])
    with pytest.raises(InterpretError, match="index 7 is outside dimension 0 of size 7"):
        run(text, table, np.array([1, 7]))


def test_assertions_in_a_body() -> None:
    text = generic(
        ["(k) -> (k)", "(k) -> (k)"],
        "p",
        """%z = arith.constant 0.0 : f32
        %c = arith.cmpf one, %i0, %z : f32
        cf.assert %c, "zero element" """,
        ["tensor<2xf32>"],
        ["tensor<2xf32>"],
        "%i0",
    )
    x = f32([1, 2])
    assert run(text, x, x)[0].tolist() == [1, 2]
    with pytest.raises(InterpretError, match=r"cf\.assert.*zero element"):
        run(text, f32([1, 0]), x)


def test_empty_iteration_spaces() -> None:
    text = generic(
        ["(a, b) -> (a, b)", "(a, b) -> (a)"], "pr", "%s = arith.addf %i0, %o0 : f32",
        ["tensor<?x?xf32>"], ["tensor<?xf32>"], "%s",
    )  # fmt: skip
    assert run(text, np.zeros((2, 0), np.float32), f32([3, 4]))[0].tolist() == [3, 4]
    assert run(text, np.zeros((0, 5), np.float32), np.zeros(0, np.float32))[0].shape == (0,)


def test_shapes_that_do_not_go_together_are_an_error() -> None:
    text = generic(
        ["(a) -> (a)", "(a) -> (a)"], "p", "", ["tensor<?xf32>"], ["tensor<?xf32>"], "%i0"
    )
    with pytest.raises(InterpretError, match="loop d0 has two ranges, 2 and 3"):
        run(text, np.zeros(2, np.float32), np.zeros(3, np.float32))
    text = generic(
        ["(a) -> (a + 1)", "(a) -> (a)"], "p", "", ["tensor<?xf32>"], ["tensor<?xf32>"], "%i0"
    )
    with pytest.raises(
        InterpretError, match="the loops reach 1 to 3 in dimension 0, whose size is 3"
    ):
        run(text, np.zeros(3, np.float32), np.zeros(3, np.float32))


@settings(max_examples=25)
@given(st.tuples(*[st.integers(1, 6)] * 3), st.integers(1, 40), st.integers(1, 40), st.booleans())
def test_cutting_the_space_changes_nothing(
    sizes: tuple[int, int, int], map_limit: int, reduction_limit: int, product: bool
) -> None:
    m, n, k = sizes
    rng = np.random.default_rng(4)
    a, b, c = integers(rng, m, k), integers(rng, k, n), integers(rng, m, n)
    operand = "%p" if product else "%q"
    body = f"""%p = arith.muli %i0, %i1 : i32
        %q = arith.subi %i0, %i1 : i32
        %s = arith.addi %o0, {operand} : i32"""
    text = generic(
        ["(m, n, k) -> (m, k)", "(m, n, k) -> (k, n)", "(m, n, k) -> (m, n)"],
        "ppr",
        body,
        [f"tensor<{m}x{k}xi32>", f"tensor<{k}x{n}xi32>"],
        [f"tensor<{m}x{n}xi32>"],
        "%s",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strategies, "LARGEST_MAP", map_limit)
        patch.setattr(strategies, "LARGEST_REDUCTION", reduction_limit)
        (given,) = run(text, a, b, c)
    terms = a[:, :, None] * b[None] if product else a[:, :, None] - b[None]
    assert np.array_equal(given, c + terms.sum(1))


def test_float_sums_that_are_cut_are_still_rounded_once() -> None:
    x = np.full(4097, 2.0**-24, np.float32)
    x[0] = 1
    text = generic(
        ["(k) -> (k)", "(k) -> ()"], "r", "%s = arith.addf %o0, %i0 : f32",
        ["tensor<?xf32>"], ["tensor<f32>"], "%s",
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strategies, "LARGEST_REDUCTION", 100)
        assert run(text, x, f32(0))[0] == np.float32(1 + 2.0**-12)


@pytest.mark.slow
def test_a_large_convolution_stays_below_two_gigabytes() -> None:
    text = """func.func @main(%x: tensor<4x64x226x226xf32>, %w: tensor<64x64x3x3xf32>,
          %c: tensor<4x64x224x224xf32>) -> tensor<4x64x224x224xf32> {
      %r = linalg.conv_2d_nchw_fchw {strides = dense<1> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
        ins(%x, %w : tensor<4x64x226x226xf32>, tensor<64x64x3x3xf32>)
        outs(%c : tensor<4x64x224x224xf32>) -> tensor<4x64x224x224xf32>
      func.return %r : tensor<4x64x224x224xf32> }"""
    module = parse(text)
    x = np.ones((4, 64, 226, 226), np.float32)
    w = np.ones((64, 64, 3, 3), np.float32)
    c = np.zeros((4, 64, 224, 224), np.float32)
    tracemalloc.start()
    (y,) = interpret(module, x, w, c)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (y == 576).all()
    assert peak < 2**31


def test_elementwise_named_ops() -> None:
    x = f32([[1.5, -2], [0.25, 4]])
    text = """func.func @main(%x: tensor<2x2xf32>, %y: tensor<2x2xf32>) -> tensor<2x2xf32> {{
      %e = tensor.empty() : tensor<2x2xf32>
      %r = linalg.{} ins({}) outs(%e : tensor<2x2xf32>) -> tensor<2x2xf32>
      func.return %r : tensor<2x2xf32> }}"""
    one, two = "%x : tensor<2x2xf32>", "%x, %y : tensor<2x2xf32>, tensor<2x2xf32>"
    unary: dict[str, Callable[[Array], Array]] = {
        "abs": np.abs, "ceil": np.ceil, "exp": np.exp, "floor": np.floor, "negf": np.negative,
        "reciprocal": lambda a: 1 / a, "square": lambda a: a * a, "tanh": np.tanh,
    }  # fmt: skip
    for name, compute in unary.items():
        np.testing.assert_allclose(run(text.format(name, one), x, x)[0], compute(x), rtol=1e-6)
    binary: dict[str, Callable[[Array, Array], Array]] = {
        "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
        "max": np.maximum, "min": np.minimum,
    }  # fmt: skip
    for name, compute in binary.items():
        assert np.array_equal(run(text.format(name, two), x, x[::-1])[0], compute(x, x[::-1]))


def test_structural_named_ops() -> None:
    text = """func.func @main(%x: tensor<2x3xf32>, %s: f32)
        -> (tensor<3x2xf32>, tensor<2x4x3xf32>, tensor<3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
      %a = tensor.empty() : tensor<3x2xf32>
      %t = linalg.transpose ins(%x : tensor<2x3xf32>) outs(%a : tensor<3x2xf32>) permutation = [1, 0]
      %b = tensor.empty() : tensor<2x4x3xf32>
      %u = linalg.broadcast ins(%x : tensor<2x3xf32>) outs(%b : tensor<2x4x3xf32>) dimensions = [1]
      %c = tensor.empty() : tensor<3xf32>
      %z = linalg.fill ins(%s : f32) outs(%c : tensor<3xf32>) -> tensor<3xf32>
      %v = linalg.reduce ins(%x : tensor<2x3xf32>) outs(%z : tensor<3xf32>) dimensions = [0]
        (%i: f32, %o: f32) {
          %m = arith.addf %i, %o : f32
          linalg.yield %m : f32
        }
      %d = tensor.empty() : tensor<2x3xf32>
      %w = linalg.copy ins(%x : tensor<2x3xf32>) outs(%d : tensor<2x3xf32>) -> tensor<2x3xf32>
      %f = linalg.fill ins(%s : f32) outs(%d : tensor<2x3xf32>) -> tensor<2x3xf32>
      func.return %t, %u, %v, %w, %f
        : tensor<3x2xf32>, tensor<2x4x3xf32>, tensor<3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
    }"""
    x = np.random.default_rng(5).normal(size=(2, 3)).astype(np.float32)
    t, u, v, w, f = run(text, x, 2.0)
    assert np.array_equal(t, x.T)
    assert np.array_equal(u, np.repeat(x[:, None], 4, 1))
    np.testing.assert_allclose(v, x.sum(0) + 2, rtol=1e-6)
    assert np.array_equal(w, x)
    assert (f == 2).all()
