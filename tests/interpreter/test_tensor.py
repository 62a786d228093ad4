"""The tensor dialect against numpy, with static and dynamic shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewbit.errors import InterpretError
from tests.interpreter.programs import Array, f32, i32, run


def numbers(*shape: int) -> Array:
    return np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)


def body(arguments: str, result: str, ops: str, value: str) -> str:
    return f"func.func @main({arguments}) -> {result} {{\n{ops}\nfunc.return {value} : {result}\n}}"


def test_empty_shows_when_it_is_read() -> None:
    (x,) = run(
        body("%n: index", "tensor<?x2xf32>", "%0 = tensor.empty(%n) : tensor<?x2xf32>", "%0"), 3
    )
    assert x.shape == (3, 2)
    assert np.isnan(x).all()
    (x,) = run(body("", "tensor<2xi4>", "%0 = tensor.empty() : tensor<2xi4>", "%0"))
    assert x.tolist() == [-8, -8]
    with pytest.raises(InterpretError, match="negative size"):
        run(body("%n: index", "tensor<?xf32>", "%0 = tensor.empty(%n) : tensor<?xf32>", "%0"), -1)


def test_splat_and_from_elements() -> None:
    ops = """%0 = tensor.splat %x[%n] : tensor<?x2xf32>"""
    (y,) = run(body("%x: f32, %n: index", "tensor<?x2xf32>", ops, "%0"), 1.5, 3)
    assert np.array_equal(y, np.full((3, 2), 1.5, np.float32))
    ops = """%0 = tensor.from_elements %x, %x, %y, %x : tensor<2x2xi16>"""
    (y,) = run(body("%x: i16, %y: i16", "tensor<2x2xi16>", ops, "%0"), 1, 2)
    assert y.tolist() == [[1, 1], [2, 1]]


def test_generate_from_indices() -> None:
    ops = """%0 = tensor.generate %n {
      ^bb0(%i: index, %j: index):
        %p = arith.muli %i, %j : index
        %s = arith.addi %p, %n : index
        tensor.yield %s : index
      } : tensor<?x3xindex>"""
    (y,) = run(body("%n: index", "tensor<?x3xindex>", ops, "%0"), 4)
    assert np.array_equal(y, np.multiply.outer(np.arange(4), np.arange(3)) + 4)


def test_generate_with_control_flow_runs_point_by_point() -> None:
    ops = """%0 = tensor.generate {
      ^bb0(%i: index):
        %one = arith.constant 1 : index
        %c = arith.cmpi eq, %i, %one : index
        %v = scf.if %c -> (f32) {
          %a = arith.constant 5.0 : f32
          scf.yield %a : f32
        } else {
          %b = arith.constant 7.0 : f32
          scf.yield %b : f32
        }
        tensor.yield %v : f32
      } : tensor<3xf32>"""
    assert run(body("", "tensor<3xf32>", ops, "%0"))[0].tolist() == [7, 5, 7]


def test_dim_rank_and_cast() -> None:
    ops = """%c1 = arith.constant 1 : index
      %d = tensor.dim %x, %c1 : tensor<?x?xf32>
      %r = tensor.rank %x : tensor<?x?xf32>
      %s = arith.addi %d, %r : index"""
    assert run(body("%x: tensor<?x?xf32>", "index", ops, "%s"), numbers(2, 5))[0] == 7
    ops = "%0 = tensor.cast %x : tensor<?xf32> to tensor<2xf32>"
    assert run(body("%x: tensor<?xf32>", "tensor<2xf32>", ops, "%0"), numbers(2))[0].shape == (2,)
    with pytest.raises(InterpretError, match=r"op 'tensor.cast'.*given float32\[3\]"):
        run(body("%x: tensor<?xf32>", "tensor<2xf32>", ops, "%0"), numbers(3))
    ops = "%0 = tensor.dim %x, %n : tensor<?xf32>"
    with pytest.raises(InterpretError, match="dimension 1 of a tensor of rank 1"):
        run(body("%x: tensor<?xf32>, %n: index", "index", ops, "%0"), numbers(2), 1)


def test_extract_and_insert_one_element() -> None:
    ops = """%v = tensor.extract %x[%i, %j] : tensor<?x?xf32>
      %w = arith.addf %v, %v : f32
      %0 = tensor.insert %w into %x[%j, %i] : tensor<?x?xf32>"""
    arguments = "%x: tensor<?x?xf32>, %i: index, %j: index"
    x = numbers(3, 3)
    (y,) = run(body(arguments, "tensor<?x?xf32>", ops, "%0"), x, 1, 2)
    x[2, 1] = 2 * x[1, 2]
    assert np.array_equal(y, x)
    for i, j in [(3, 0), (0, -1)]:
        with pytest.raises(InterpretError, match="outside dimension"):
            run(body(arguments, "tensor<?x?xf32>", ops, "%0"), x, i, j)


def test_inputs_are_not_written_to() -> None:
    ops = """%c0 = arith.constant 0 : index
      %v = arith.constant 9.0 : f32
      %0 = tensor.insert %v into %x[%c0] : tensor<2xf32>"""
    x = numbers(2)
    run(body("%x: tensor<2xf32>", "tensor<2xf32>", ops, "%0"), x)
    assert x.tolist() == [0, 1]


slices = st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(1, 3))


@settings(max_examples=40)
@given(windows=st.lists(slices, min_size=2, max_size=2))
def test_slices_static_and_dynamic(windows: list[tuple[int, int, int]]) -> None:
    (o0, n0, s0), (o1, n1, s1) = windows
    shape = tuple(o + max(n - 1, 0) * s + 2 for o, n, s in windows)
    x = numbers(*shape)
    window = tuple(slice(o, o + n * s, s) for o, n, s in windows)
    wanted = x[window]
    ops = f"""%0 = tensor.extract_slice %x[{o0}, %o] [{n0}, %n] [{s0}, %s]
        : tensor<{shape[0]}x{shape[1]}xf32> to tensor<{n0}x?xf32>"""
    arguments = f"%x: tensor<{shape[0]}x{shape[1]}xf32>, %o: index, %n: index, %s: index"
    (y,) = run(body(arguments, f"tensor<{n0}x?xf32>", ops, "%0"), x, o1, n1, s1)
    assert np.array_equal(y, wanted)
    ops = f"""%0 = tensor.insert_slice %y into %x[%o, {o1}] [{n0}, {n1}] [{s0}, {s1}]
        : tensor<{n0}x{n1}xf32> into tensor<?x?xf32>"""
    arguments = f"%x: tensor<?x?xf32>, %y: tensor<{n0}x{n1}xf32>, %o: index"
    (z,) = run(body(arguments, "tensor<?x?xf32>", ops, "%0"), x, -wanted, o0)
    x[window] = -wanted
    assert np.array_equal(z, x)


@pytest.mark.parametrize(
    ("sizes", "result", "shape"),
    [
        ("1, %n, 1", "tensor<?xf32>", (4,)),
        ("1, %n, 1", "tensor<1x?xf32>", (1, 4)),
        ("1, %n, 1", "tensor<?x1xf32>", (4, 1)),
        ("1, 1, 1", "tensor<f32>", ()),
        ("1, 1, 1", "tensor<1xf32>", (1,)),
    ],
)
def test_slices_may_drop_unit_dimensions(sizes: str, result: str, shape: tuple[int, ...]) -> None:
    ops = f"""%0 = tensor.extract_slice %x[1, 0, 2] [{sizes}] [1, 1, 1]
        : tensor<2x4x3xf32> to {result}"""
    x = numbers(2, 4, 3)
    (y,) = run(body("%x: tensor<2x4x3xf32>, %n: index", result, ops, "%0"), x, 4)
    assert y.shape == shape
    assert np.array_equal(y.ravel(), x[1, : y.size, 2])


def test_a_slice_that_leaves_the_tensor_is_an_error() -> None:
    ops = "%0 = tensor.extract_slice %x[%o] [3] [2] : tensor<?xf32> to tensor<3xf32>"
    text = body("%x: tensor<?xf32>, %o: index", "tensor<3xf32>", ops, "%0")
    assert run(text, numbers(6), 1)[0].tolist() == [1, 3, 5]
    for offset in (2, -1):
        with pytest.raises(InterpretError, match="leaves its size of 6"):
            run(text, numbers(6), offset)


def test_reshaping() -> None:
    x = numbers(2, 3, 4)
    ops = """%a = tensor.collapse_shape %x [[0, 1], [2]] : tensor<?x3x4xf32> into tensor<?x4xf32>
      %0 = tensor.expand_shape %a [[0], [1, 2]] output_shape [%n, 2, 2]
        : tensor<?x4xf32> into tensor<?x2x2xf32>"""
    text = body("%x: tensor<?x3x4xf32>, %n: index", "tensor<?x2x2xf32>", ops, "%0")
    assert np.array_equal(run(text, x, 6)[0], x.reshape(6, 2, 2))
    with pytest.raises(InterpretError, match=r"dimension 0 of 6 expands to \[5\]"):
        run(text, x, 5)
    ops = """%0 = tensor.reshape %x(%s) : (tensor<?x3x4xf32>, tensor<2xi64>) -> tensor<?x?xf32>"""
    text = body("%x: tensor<?x3x4xf32>, %s: tensor<2xi64>", "tensor<?x?xf32>", ops, "%0")
    assert np.array_equal(run(text, x, np.array([8, 3]))[0], x.reshape(8, 3))
    with pytest.raises(InterpretError, match=r"cannot reshape \[2, 3, 4\] to \[5, 5\]"):
        run(text, x, np.array([5, 5]))


def test_concat() -> None:
    ops = """%0 = tensor.concat dim(1) %x, %y, %x
        : (tensor<2x?xf32>, tensor<2x1xf32>, tensor<2x?xf32>) -> tensor<2x?xf32>"""
    x, y = numbers(2, 3), -numbers(2, 1)
    (z,) = run(body("%x: tensor<2x?xf32>, %y: tensor<2x1xf32>", "tensor<2x?xf32>", ops, "%0"), x, y)
    assert np.array_equal(z, np.concatenate([x, y, x], 1))


def test_pad_with_a_constant_and_dynamic_amounts() -> None:
    ops = """%v = arith.constant 9.0 : f32
      %0 = tensor.pad %x low[1, %n] high[%n, 0] {
      ^bb0(%i: index, %j: index):
        tensor.yield %v : f32
      } : tensor<2x3xf32> to tensor<?x?xf32>"""
    text = body("%x: tensor<2x3xf32>, %n: index", "tensor<?x?xf32>", ops, "%0")
    x = numbers(2, 3)
    assert np.array_equal(run(text, x, 2)[0], np.pad(x, ((1, 2), (2, 0)), constant_values=9))
    with pytest.raises(InterpretError, match="negative padding"):
        run(text, x, -1)


def test_pad_with_a_function_of_the_index() -> None:
    ops = """%0 = tensor.pad %x low[1] high[2] {
      ^bb0(%i: index):
        %a = arith.index_cast %i : index to i32
        tensor.yield %a : i32
      } : tensor<2xi32> to tensor<5xi32>"""
    text = body("%x: tensor<2xi32>", "tensor<5xi32>", ops, "%0")
    assert run(text, i32([70, 80]))[0].tolist() == [0, 70, 80, 3, 4]


@pytest.mark.parametrize("keep", [True, False])
def test_gather_and_scatter(keep: bool) -> None:
    x = numbers(4, 5, 3)
    indices = np.array([[1, 2], [3, 0]])
    shape = "2x1x5x1" if keep else "2x5"
    ops = f"""%0 = tensor.gather %x[%i] gather_dims([0, 2])
        : (tensor<4x5x3xf32>, tensor<2x2xi64>) -> tensor<{shape}xf32>"""
    text = body("%x: tensor<4x5x3xf32>, %i: tensor<2x2xi64>", f"tensor<{shape}xf32>", ops, "%0")
    (y,) = run(text, x, indices)
    assert np.array_equal(y.reshape(2, 5), [x[1, :, 2], x[3, :, 0]])
    ops = f"""%0 = tensor.scatter %y into %x[%i] scatter_dims([0, 2]) unique
        : (tensor<{shape}xf32>, tensor<4x5x3xf32>, tensor<2x2xi64>) -> tensor<4x5x3xf32>"""
    arguments = f"%x: tensor<4x5x3xf32>, %i: tensor<2x2xi64>, %y: tensor<{shape}xf32>"
    (z,) = run(body(arguments, "tensor<4x5x3xf32>", ops, "%0"), x, indices, -y)
    wanted = x.copy()
    wanted[1, :, 2] *= -1
    wanted[3, :, 0] *= -1
    assert np.array_equal(z, wanted)
    with pytest.raises(InterpretError, match="index 4 is outside dimension 0 of size 4"):
        run(text, x, np.array([[4, 0], [0, 0]]))


def test_bitcast() -> None:
    ops = "%0 = tensor.bitcast %x : tensor<2xf32> to tensor<2xi32>"
    (y,) = run(body("%x: tensor<2xf32>", "tensor<2xi32>", ops, "%0"), f32([1, -1]))
    assert y.tolist() == [0x3F800000, -0x40800000]


@pytest.mark.parametrize("dtype", [np.float16, np.int8, bool])
def test_element_types_are_kept(dtype: Any) -> None:
    name = {np.float16: "f16", np.int8: "i8", bool: "i1"}[dtype]
    ops = f"%0 = tensor.concat dim(0) %x, %x : (tensor<2x{name}>, tensor<2x{name}>) -> tensor<4x{name}>"
    (y,) = run(body(f"%x: tensor<2x{name}>", f"tensor<4x{name}>", ops, "%0"), np.ones(2, dtype))
    assert y.dtype == dtype
