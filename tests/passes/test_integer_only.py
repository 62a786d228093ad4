"""Integer-only programs: close to those with float scales, and without floats between layers."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import f32

from fewbit.dialects import mico
from fewbit.errors import UnsupportedError
from fewbit.frontends import import_model
from fewbit.ir.context import make_context
from fewbit.ir.parse import parse_module
from fewbit.models import create, zoo
from fewbit.passes.graph.fold_batch_norm import fold_batch_norm
from fewbit.passes.graph.inline import Inline
from fewbit.passes.quant.integer_only import integer_only
from fewbit.program.program import Program
from fewbit.program.store import WeightStore
from fewbit.quant.program_calibration import calibrate_program
from fewbit.quant.quantize import quantize
from fewbit.targets.cpu.target import begin_cpu
from fewbit.toolchain.isa import Isa

MODELS = ("mlp", "lenet", "resnet8")


@cache
def quantized(name: str, recipe: str) -> Program:
    entry = zoo()[name]
    program = import_model(create(name), entry.example_inputs(2), entry.dynamic_shapes)
    Inline().apply(make_context(), program.module)
    program = fold_batch_norm(program)
    data = [tuple(t.numpy() for t in entry.example_inputs(4, seed=seed)) for seed in range(2)]
    if not recipe.endswith("static"):
        return quantize(program, recipe)
    return quantize(program, recipe, calibrate_program(program, data, recipe))


def float_tensors(program: Program) -> list[str]:
    """Return ops that make float tensors which are neither constants nor what the program returns."""
    found: list[str] = []
    for op in program.module.walk():
        for result in op.results:
            returned = any(isinstance(use.operation, func.ReturnOp) for use in result.uses)
            is_read = isinstance(op, mico.GetConstantOp)
            is_tensor = mico.shape_of(result.type) != ()
            if is_tensor and mico.element_type(result.type) == f32 and not returned and not is_read:
                found.append(op.name)
    return found


def last_step(program: Program) -> float:
    """Return the scale of the last layer's activations."""
    *_, last = (op for op in program.module.walk() if isinstance(op, mico.QuantizedLayerOp))
    assert last.act_scale is not None
    text = str(last.act_scale.owner)
    match = re.search(r"constant ([\d.e+-]+) : f32", text)
    assert match is not None
    return float(match.group(1))


@pytest.mark.parametrize("fixed_point", [False, True])
@pytest.mark.parametrize("recipe", ["w8a8-static", "w4a8-static"])
@pytest.mark.parametrize("name", MODELS)
def test_networks_agree_with_float_scales(name: str, recipe: str, fixed_point: bool) -> None:
    """Two steps of the last activation: its integers are off by one where a rounding falls the
    other way, here or in a layer before, and few are; weights below 1 sum these up."""
    program = quantized(name, recipe)
    result = integer_only(program, strict=True, fixed_point=fixed_point)
    result.verify()
    x = [t.numpy() for t in zoo()[name].example_inputs(8, seed=9)]
    (expected,), (given,) = program.run(*x), result.run(*x)
    assert np.abs(given - expected).max() <= 2 * last_step(program)
    flat = [name for name in float_tensors(result) if name != "mico.reshape"]
    assert flat == []


def test_fixed_point_multiplies_no_floats() -> None:
    result = integer_only(quantized("resnet8", "w8a8-static"), strict=True, fixed_point=True)
    between = [op for op in result.module.walk() if isinstance(op, mico.RequantizeOp)]
    assert between
    assert all(op.shift is not None for op in between)
    assert not any(op.name == "arith.mulf" for op in result.module.walk())


@pytest.mark.parametrize("name", MODELS)
def test_memory_between_layers_holds_integers(name: str) -> None:
    result = integer_only(quantized(name, "w8a8-static"), strict=True)
    linalg = begin_cpu(result, "net", Isa.host()).run("linalg").text
    produced = re.findall(r"linalg\.generic.*?-> (tensor<\S+>)", linalg, re.DOTALL)
    floats = [type for type in produced if type.endswith("xf32>")]
    assert set(floats) <= {"tensor<?x10xf32>"}
    memref = begin_cpu(result, "net", Isa.host()).run("memref").text
    # The entry is given inputs, results, weights and the arena, in which all else lies.
    entry = memref[memref.index("@program.entry(") :]
    arena = re.findall(r"memref\.view %arg3.* to (memref<.*>)", entry.split("return")[0])
    assert arena
    assert {type for type in arena if "f32" in type} <= {"memref<?x10xf32>"}


FLOATS = "tensor<2x3x6x6xf32>"


def between(middle: str, shape: str, step: float, zero_point: int | None = None) -> Program:
    """Return %a and %b, static layers of %x, then `middle`, which makes %m, then a layer that copies."""
    channels = int(shape.split("x")[1])
    rng = np.random.default_rng(3)
    identity = np.eye(channels, dtype=np.int8).reshape(channels, channels, 1, 1)
    weight = rng.integers(-128, 128, (3, 3, 1, 1)).astype(np.int8)
    bias = rng.normal(size=3).astype(np.float32)
    scale = (rng.random(3) / 50 + 0.002).astype(np.float32)
    zero = "" if zero_point is None else " act_zero_point(%z)"
    conv = f"({FLOATS}, tensor<3x3x1x1x!mico.int<8>>, tensor<3xf32>, tensor<3xf32>, f32)"
    copies = f"tensor<{channels}x{channels}x1x1x!mico.int<8>>"
    types = f"tensor<{shape}xf32>, {copies}, f32, f32{', i32' if zero else ''}"
    text = f"""
mico.constant @scale : tensor<3xf32> = dense<"0x{scale.tobytes().hex()}">
mico.constant @w : tensor<3x3x1x1x!mico.int<8>> = dense<"0x{weight.tobytes().hex()}"> scale @scale
mico.constant @bias : tensor<3xf32> = dense<"0x{bias.tobytes().hex()}">
mico.constant @unit : tensor<f32> = dense<1.0>
mico.constant @copy : {copies} = dense<"0x{identity.tobytes().hex()}"> scale @unit
func.func @main(%x: {FLOATS}) -> tensor<{shape}xf32> {{
  %w = mico.get_constant @w : tensor<3x3x1x1x!mico.int<8>>
  %s = mico.get_constant @scale : tensor<3xf32>
  %bias = mico.get_constant @bias : tensor<3xf32>
  %copy = mico.get_constant @copy : {copies}
  %unit = mico.get_constant @unit : tensor<f32>
  %p = arith.constant 0.02 : f32
  %q = arith.constant 0.05 : f32
  %step = arith.constant {step} : f32
  %z = arith.constant {zero_point or 0} : i32
  %a = mico.bitconv2d(%x, %w, %bias) weight_scale(%s) act_scale(%p) {{act_bits = 8}} : {conv} -> {FLOATS}
  %b = mico.bitconv2d(%x, %w, %bias) weight_scale(%s) act_scale(%q) {{act_bits = 8}} : {conv} -> {FLOATS}
  {middle}
  %y = mico.bitconv2d(%m, %copy) weight_scale(%unit) act_scale(%step){zero} {{act_bits = 8}} : ({types.replace("f32, f32", "tensor<f32>, f32")}) -> tensor<{shape}xf32>
  func.return %y : tensor<{shape}xf32>
}}"""
    return Program(parse_module(text), WeightStore())


def pooled(op: str, attributes: str, shape: str) -> str:
    return f"%m = mico.{op}(%a) {{{attributes}}} : ({FLOATS}) -> tensor<{shape}xf32>"


MIDDLES = {
    "relu": (f"%m = mico.relu(%a) : ({FLOATS}) -> {FLOATS}", "2x3x6x6"),
    "relu6": (f"%m = mico.relu6(%a) : ({FLOATS}) -> {FLOATS}", "2x3x6x6"),
    "sum": (f"%m = mico.add(%a, %b) : ({FLOATS}, {FLOATS}) -> {FLOATS}", "2x3x6x6"),
    "sums of sums": (
        f"%c = mico.add(%a, %b) : ({FLOATS}, {FLOATS}) -> {FLOATS}\n"
        f"%d = mico.relu6(%b) : ({FLOATS}) -> {FLOATS}\n"
        f"%m = mico.add(%c, %d) : ({FLOATS}, {FLOATS}) -> {FLOATS}",
        "2x3x6x6",
    ),
    "max pooling": (
        pooled("maxpool2d", "kernel_size = [3, 3], stride = [2, 2], padding = [1, 1]", "2x3x3x3"),
        "2x3x3x3",
    ),
    "average pooling": (
        pooled("avgpool2d", "kernel_size = [3, 2], stride = [2, 1], padding = [1, 0]", "2x3x3x5"),
        "2x3x3x5",
    ),
    "mean": (pooled("avgpool2d", "kernel_size = [6, 6]", "2x3x1x1"), "2x3x1x1"),
    "concat": (
        f"%m = mico.concat(%a, %b) {{dim = 1}} : ({FLOATS}, {FLOATS}) -> tensor<2x6x6x6xf32>",
        "2x6x6x6",
    ),
    "transpose": (
        f"%m = mico.transpose(%a) {{permutation = [0, 1, 3, 2]}} : ({FLOATS}) -> {FLOATS}",
        "2x3x6x6",
    ),
}


@pytest.mark.parametrize("fixed_point", [False, True])
@pytest.mark.parametrize("zero_point", [None, -20])
@pytest.mark.parametrize("step", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("middle", MIDDLES)
def test_results_are_within_a_step(
    middle: str, step: float, zero_point: int | None, fixed_point: bool
) -> None:
    """The layer behind copies its integers, so they can be seen; hardly any differ, and by one."""
    program = between(*MIDDLES[middle], step, zero_point)
    program.verify()
    result = integer_only(program, strict=True, fixed_point=fixed_point)
    result.verify()
    assert float_tensors(result) == []
    x = np.random.default_rng(1).normal(size=(2, 3, 6, 6)).astype(np.float32)
    (expected,), (given,) = program.run(x), result.run(x)
    off = np.rint(np.abs(given - expected) / step)
    assert off.max() <= 1
    assert off.mean() <= 0.02


@pytest.mark.parametrize(
    ("middle", "named"),
    [
        (f"%m = mico.gelu(%a) : ({FLOATS}) -> {FLOATS}", "mico.gelu"),
        (
            f"%c = mico.silu(%a) : ({FLOATS}) -> {FLOATS}\n"
            f"%m = mico.add(%c, %b) : ({FLOATS}, {FLOATS}) -> {FLOATS}",
            "mico.silu",
        ),
        (
            pooled(
                "avgpool2d",
                "kernel_size = [3, 3], stride = [3, 3], padding = [1, 1], "
                "count_include_pad = false",
                "2x3x2x2",
            ),
            "mico.avgpool2d",
        ),
    ],
)
def test_what_stays_float(middle: str, named: str) -> None:
    program = between(middle, "2x3x2x2" if "2x3x2x2" in middle else "2x3x6x6", 0.1)
    with pytest.raises(UnsupportedError, match=named) as caught:
        integer_only(program, strict=True)
    assert caught.value.place is not None
    result = integer_only(program)
    result.verify()
    x = np.random.default_rng(1).normal(size=(2, 3, 6, 6)).astype(np.float32)
    (expected,), (given,) = program.run(x), result.run(x)
    np.testing.assert_array_equal(given, expected)
    assert named in float_tensors(result)


def test_layers_with_scales_found_at_run_time_stay_as_they_are() -> None:
    program = quantized("mlp", "w8a8")
    with pytest.raises(UnsupportedError, match=r"mico\.bitlinear.*scaled at run time"):
        integer_only(program, strict=True)
    x = [t.numpy() for t in zoo()["mlp"].example_inputs(3)]
    np.testing.assert_array_equal(integer_only(program).run(*x)[0], program.run(*x)[0])


def test_the_given_program_is_not_changed() -> None:
    program = quantized("mlp", "w8a8-static")
    before = str(program.module)
    integer_only(program)
    assert str(program.module) == before
