"""Programs with static scales, computed on integers from the first layer to the last.

A layer with a static scale rounds its input to whole steps of that scale. Where the input comes
from another such layer, the float tensor between the two is not needed: the accumulators of the
first, in i32 and with a bias in their units, are requantized to the steps of the second. Rounding
is monotone, so relu, relu6, max pooling and all that only moves data are done on the integers, and
it makes no difference. Sums of two values, and of the windows of average pooling, need one scale:
both values are brought, in i32, to a small fraction of the step that they will be rounded to (2^-16
of it for sums, 2^-8 for means), so that the result is rounded once, and is off by less than 2^-7 of
a step more than that. What arrives as floats is quantized once; what leaves is float once.

It makes new constants, so this is a function of a program. What is not of this kind stays float, or
is an error where `strict` asks for one. With `fixed_point`, factors are integers and shifts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from xdsl.builder import ImplicitBuilder
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, ModuleOp, TensorType, f32, i32
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.transforms.dead_code_elimination import dce

from fewbit.dialects import mico
from fewbit.dialects.mico.syntax import SEGMENTS, LayerOp, ints
from fewbit.dialects.traits import PicksElements
from fewbit.errors import UnsupportedError
from fewbit.ir.context import make_context
from fewbit.ir.locations import place_of
from fewbit.ir.symbols import using
from fewbit.numerics import fixed_point as as_fixed_point
from fewbit.passes.graph.changed_weights import ChangedWeights
from fewbit.passes.graph.inline import Inline
from fewbit.passes.graph.symbol_dce import SymbolDce
from fewbit.passes.quant.integer_flow.arithmetic import (
    HIGHEST,
    Factor,
    add_saturating,
    clamp,
    rescale,
    window_sums,
)
from fewbit.passes.quant.integer_flow.static_layer import (
    Grid,
    Scales,
    StaticLayer,
    static_layer,
)
from fewbit.pipeline.context import compile_context
from fewbit.program.program import Program

SUM_BITS = 16
MEAN_BITS = 8
"""How many bits finer than the step that follows the terms of a sum, or of a mean, are."""


@dataclass(frozen=True)
class IntegerOnly(ModulePass):
    """Leave no float tensor between layers that have static scales."""

    name = "integer-only"

    strict: bool = False
    """Whether a program in which floats stay is refused."""
    fixed_point: bool = False
    """Whether factors are integers and shifts."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        _without_floats(compile_context(ctx).program(op), self.strict, self.fixed_point)


def integer_only(program: Program, *, strict: bool = False, fixed_point: bool = False) -> Program:
    """Return a copy of the program with no float tensor between layers that have static scales."""
    copy = program.copy()
    _without_floats(copy, strict, fixed_point)
    return copy


def _without_floats(program: Program, strict: bool, fixed_point: bool) -> None:
    weights, module = ChangedWeights(program), program.module
    Inline().apply(make_context(), module)
    with using(weights.symbols):
        _Flow(weights, strict, fixed_point).run()
    dce(module)
    SymbolDce().apply(make_context(), module)


class Sums(NamedTuple):
    """Integers in i32, and what one of them is worth; by the entry of a dimension, perhaps."""

    value: SSAValue
    scale: Scales
    axis: int = 0


@dataclass(frozen=True)
class Fraction:
    """The scale of i32 integers: so many bits finer than a step."""

    step: float
    bits: int

    @property
    def scale(self) -> Scales:
        return np.asarray(self.step / (1 << self.bits))


class _Flow:
    def __init__(self, weights: ChangedWeights, strict: bool, fixed_point: bool) -> None:
        self.weights = weights
        self.strict = strict
        self.fixed_point = fixed_point
        self.layers: dict[Operation, StaticLayer] = {}
        self.anchors: dict[Operation | Block, Operation] = {}
        """By owner of a value, the op in front of which new ops for it are inserted."""
        self.few: dict[tuple[SSAValue, Grid], SSAValue] = {}
        self.wide: dict[tuple[SSAValue, Fraction], SSAValue] = {}
        self.accumulators: dict[Operation, SSAValue] = {}
        self.known_sums: dict[SSAValue, dict[float, Sums]] = {}

    def run(self) -> None:
        ops = list(self.weights.program.module.walk())
        for op in ops:
            if isinstance(op, mico.QuantizedLayerOp):
                layer = static_layer(op, self.weights)
                if isinstance(layer, StaticLayer):
                    self.layers[op] = layer
                elif self.strict:
                    raise _not_integer(op, layer)
        self.anchors = {op: op.next_op for op in ops if op.next_op is not None}
        results = {
            layer.op: self._on_integers(layer, gives_floats=True) for layer in self.layers.values()
        }
        for op, result in results.items():
            op.results[0].replace_all_uses_with(result)

    def obstacle(self, value: SSAValue) -> SSAValue | None:
        """Return the value that keeps this one from being integers; None if nothing does."""
        op = value.owner
        if op in self.layers:
            return None
        match op:
            case mico.AddOp() if not op.lhs.type == op.rhs.type == op.result.type:
                return value
            case mico.AvgPool2dOp() if not _all_count(op):
                return value
            case mico.AddOp() | mico.AvgPool2dOp() | mico.ReluOp() | mico.Relu6Op():
                pass
            case _ if not PicksElements.holds(op):
                return value
            case _:
                pass
        assert isinstance(op, Operation)
        obstacles = (self.obstacle(v) for v in op.operands)
        return next((value for value in obstacles if value is not None), None)

    def integers(self, value: SSAValue, grid: Grid) -> SSAValue:
        """Return a float value as integers of a grid."""
        key = value, grid
        if key not in self.few:
            self.few[key] = self._integers(value, grid)
        return self.few[key]

    def _integers(self, value: SSAValue, grid: Grid) -> SSAValue:
        op = value.owner
        if self.obstacle(value) is not None:
            return self._quantize(value, grid)
        if PicksElements.holds(op) and isinstance(op, LayerOp):
            return self._same(op, type(op), [self.integers(v, grid) for v in op.operands])
        if isinstance(op, mico.ReluOp | mico.Relu6Op) and _is_relu_on(op, grid):
            return self._same(op, mico.ReluOp, [self.integers(op.input, grid)])
        return self._requantize(value, self.sums(value, grid.step), grid)

    def fractions(self, value: SSAValue, unit: Fraction) -> SSAValue:
        """Return a float value in i32, in units that are finer than the step to come."""
        key = value, unit
        if key not in self.wide:
            self.wide[key] = self._fractions(value, unit)
        return self.wide[key]

    def _fractions(self, value: SSAValue, unit: Fraction) -> SSAValue:
        op = value.owner
        if isinstance(op, mico.Relu6Op):
            six = int(np.rint(min(6 / float(unit.scale), HIGHEST)))
            inner = self.fractions(op.input, unit)
            return self._emit(value, lambda: clamp(inner, 0, six))
        if isinstance(op, mico.ReluOp):
            return self._same(op, type(op), [self.fractions(op.input, unit)])
        if PicksElements.holds(op) and isinstance(op, LayerOp):
            return self._same(op, type(op), [self.fractions(v, unit) for v in op.operands])
        sums = self.sums(value, unit.step)
        ratio = sums.scale / unit.scale
        if (ratio == 1).all():
            return sums.value
        factor = self._factor(value, ratio)
        return self._emit(value, lambda: rescale(sums.value, factor, sums.axis))

    def sums(self, value: SSAValue, step: float) -> Sums:
        """Return a float value as i32 of the best scale at hand, fit to be rounded to a step."""
        for known, sums in self.known_sums.setdefault(value, {}).items():
            if known == step or (_is_alike(known, step) and isinstance(value.owner, mico.AddOp)):
                return sums
        self.known_sums[value][step] = sums = self._sums(value, step)
        return sums

    def _sums(self, value: SSAValue, step: float) -> Sums:
        op = value.owner
        unit = Fraction(step, MEAN_BITS if isinstance(op, mico.AvgPool2dOp) else SUM_BITS)
        if isinstance(op, mico.AddOp):
            lhs, rhs = self.fractions(op.lhs, unit), self.fractions(op.rhs, unit)
            return Sums(self._emit(value, lambda: add_saturating(lhs, rhs)), unit.scale)
        if isinstance(op, mico.AvgPool2dOp):
            x = self.fractions(op.input, unit)
            return Sums(self._emit(value, lambda: window_sums(op, x)), unit.scale / _elements(op))
        if not isinstance(op, mico.QuantizedLayerOp):
            return Sums(self.fractions(value, unit), unit.scale)
        layer = self.layers[op]
        if op not in self.accumulators:
            self.accumulators[op] = self._on_integers(layer, gives_floats=False)
        return Sums(self.accumulators[op], layer.scale, layer.axis)

    def _quantize(self, value: SSAValue, grid: Grid) -> SSAValue:
        """Quantize a float value to a grid."""
        if self.strict and any(op in self.layers for op in _behind(value)):
            obstacle = self.obstacle(value)
            assert obstacle is not None
            op = obstacle.owner if isinstance(obstacle.owner, Operation) else value.owner
            assert isinstance(op, Operation)
            raise _not_integer(op, "it stands between layers, and works on floats")
        few_bit = _few_bit(grid, value)

        def make() -> SSAValue:
            scale = arith.ConstantOp(FloatAttr(grid.step, f32))
            zero_point = _zero_point(grid)
            return mico.QuantizeOp.of(
                value, scale, zero_point=zero_point, result_types=[few_bit]
            ).result

        return self._emit(value, make)

    def _requantize(self, value: SSAValue, sums: Sums, grid: Grid) -> SSAValue:
        few_bit = _few_bit(grid, value)
        factor = self._factor(value, sums.scale / grid.step)

        def make() -> SSAValue:
            return mico.RequantizeOp.of(
                sums.value,
                factor.multiplier,
                shift=factor.shift,
                zero_point=_zero_point(grid),
                axis=sums.axis,
                result_types=[few_bit],
            ).result

        return self._emit(value, make)

    def _on_integers(self, layer: StaticLayer, *, gives_floats: bool) -> SSAValue:
        """Return a layer on integers: scaled, as the original is, or bare accumulators."""
        op, grid = layer.op, layer.grid
        x = self.integers(op.input, grid)
        bias = op.bias
        if not gives_floats and layer.bias is not None and op.bias is not None:
            vector = TensorType(i32, layer.bias.shape)
            bias = self.weights.add(f"{_name(op)}.bias.integer", layer.bias, vector, op)
        attributes = {k: v for k, v in op.properties.items() if k not in (SEGMENTS, "act_mode")}
        element: Attribute = f32 if gives_floats else i32
        result_type = TensorType(element, mico.shape_of(op.result.type))

        def make() -> SSAValue:
            return (
                type(op)
                .of(
                    x,
                    op.weight,
                    bias,
                    weight_scale=op.weight_scale if gives_floats else None,
                    weight_zero_point=op.weight_zero_point,
                    act_scale=op.act_scale if gives_floats else None,
                    act_zero_point=_zero_point(grid),
                    result_types=[result_type],
                    **attributes,
                )
                .result
            )

        return self._emit(op.result, make)

    def _same(self, op: Operation, kind: type[LayerOp], inputs: list[SSAValue]) -> SSAValue:
        """Return an op that works on floats and integers alike, on integers."""
        result = op.results[0]
        integers = TensorType(mico.element_type(inputs[0].type), mico.shape_of(result.type))
        return self._emit(
            result, lambda: kind.of(*inputs, result_types=[integers], **op.properties).results[0]
        )

    def _factor(self, value: SSAValue, ratio: Scales) -> Factor:
        """Return a ratio of scales, as what integers are multiplied by."""
        rounded = ratio.astype(np.float32)
        if rounded.size and (rounded == rounded.flat[0]).all():
            rounded = rounded.reshape(-1)[0]
        if not self.fixed_point:
            return Factor(self._constant(value, "multiplier", rounded, f32), None)
        fixed = as_fixed_point(rounded)
        return Factor(
            self._constant(value, "multiplier", fixed.multiplier, i32),
            self._constant(value, "shift", fixed.shift, i32),
        )

    def _constant(self, value: SSAValue, what: str, data: Any, element: Attribute) -> SSAValue:
        array = np.asarray(data)
        if array.ndim == 0:
            number = (
                FloatAttr(float(array), f32) if element == f32 else IntegerAttr(int(array), i32)
            )
            return self._emit(value, lambda: arith.ConstantOp(number).result)
        op = value.owner
        assert isinstance(op, Operation)
        return self.weights.add(f"{_name(op)}.{what}", array, TensorType(element, array.shape), op)

    def _emit(self, value: SSAValue, make: Callable[[], SSAValue]) -> SSAValue:
        """Insert the ops that `make` builds behind the owner of a value; return their result."""
        block = Block()
        with ImplicitBuilder(block):
            result = make()
        owner = value.owner
        anchor = owner.first_op if isinstance(owner, Block) else self.anchors[owner]
        assert anchor is not None
        for op in list(block.ops):
            op.detach()
            if isinstance(owner, Operation):
                op.location = owner.location
            Rewriter.insert_op(op, InsertPoint.before(anchor))
        return result


def _is_alike(a: float, b: float) -> bool:
    """Return whether fractions of one step serve for the other: within a factor of 16."""
    return 1 / 16 <= a / b <= 16


def _is_relu_on(op: mico.ReluOp | mico.Relu6Op, grid: Grid) -> bool:
    """Return whether integers on a grid can be bounded as what they stand for is, by 0 alone."""
    if grid.zero_point is not None or grid.width.is_binary:
        return False
    return isinstance(op, mico.ReluOp) or round(6 / grid.step) >= grid.width.qmax


def _all_count(op: mico.AvgPool2dOp) -> bool:
    """Return whether every element of every window counts in its mean."""
    is_padded = any(ints(op.padding))
    return not op.ceil_mode.value.data and (not is_padded or op.count_include_pad.value.data != 0)


def _elements(op: mico.AvgPool2dOp) -> int:
    height, width = ints(op.kernel_size)
    return height * width


def _few_bit(grid: Grid, value: SSAValue) -> TensorType[Attribute]:
    return TensorType(mico.few_bit_type(grid.width), mico.shape_of(value.type))


def _zero_point(grid: Grid) -> SSAValue | None:
    if grid.zero_point is None:
        return None
    return arith.ConstantOp(IntegerAttr(grid.zero_point, i32)).result


def _behind(value: SSAValue) -> Iterator[Operation]:
    """Yield all ops that a value depends on."""
    waiting, seen = [value], set[Operation]()
    while waiting:
        op = waiting.pop().owner
        if isinstance(op, Operation) and op not in seen:
            seen.add(op)
            yield op
            waiting.extend(op.operands)


def _name(op: Operation) -> str:
    return place_of(op).layer or op.name


def _not_integer(op: Operation, why: str) -> UnsupportedError:
    return UnsupportedError(
        f"{op.name} cannot be computed on integers alone: {why}",
        place=place_of(op, "integer-only"),
        hint="give all layers static scales (w8a8-static), fold batch norms first, or do not ask "
        "for integers strictly",
    )
