"""Layer by layer: shapes, widths, bytes, operations, and how far from float.

Operations are counted from the shapes of an actual run, so dynamic dimensions have sizes. A layer's
SQNR compares its output in the quantized program with that in the float program on the same inputs:
all that went wrong up to and including the layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, log10, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation

from fewbit.dialects.mico import (
    EmbeddingOp,
    GetConstantOp,
    QuantizedLayerOp,
    element_width,
    shape_of,
)
from fewbit.interpreter import Interpreter
from fewbit.interpreter.values import Value
from fewbit.ir.layers import layer_name
from fewbit.numerics import Width
from fewbit.program.program import Program
from fewbit.program.references import constant_bytes

FLOAT_BITS = 32
DYNAMIC_SIZE = 8
"""The size given to dynamic dimensions of random inputs."""

Array = NDArray[Any]


@dataclass(frozen=True)
class LayerReport:
    """One layer of a program, as it ran once."""

    name: str
    op: str
    weight_shape: tuple[int, ...]
    output_shape: tuple[int, ...]
    weight: Width | None
    act: Width | None
    parameters: int
    bytes: int
    macs: int
    sqnr: float | None
    """In decibels; None where there is no float program to compare with."""

    @property
    def bops(self) -> int:
        """Bit operations: MACs times both widths."""
        weight = FLOAT_BITS if self.weight is None else self.weight.bits
        act = FLOAT_BITS if self.act is None else self.act.bits
        return self.macs * weight * act


def report_layers(
    program: Program,
    inputs: Sequence[Array],
    reference: Program | None = None,
    more: Sequence[Sequence[Array]] = (),
) -> list[LayerReport]:
    """Return every layer in the order in which it ran, compared with `reference` where given.

    Noise is that on `inputs` and on all of `more` together; everything else is of `inputs`.
    """
    ran = observed_layers(program, inputs)
    powers: dict[Key, Powers] = {}
    if reference is not None:
        _add_powers(powers, ran, observed_layers(reference, inputs))
        for each in more:
            _add_powers(powers, observed_layers(program, each), observed_layers(reference, each))
    return [
        _report(program, op, output, powers[key].decibels if key in powers else None)
        for key, (op, output) in ran
    ]


def sqnr(expected: Value, given: Value) -> float:
    """Return the signal-to-quantization-noise ratio, in decibels."""
    return Powers.of(expected, given).decibels


@dataclass(frozen=True)
class Powers:
    """Sums of squares: of what is expected, and of the difference from it."""

    signal: float = 0.0
    noise: float = 0.0

    @staticmethod
    def of(expected: Value, given: Value) -> Powers:
        return Powers(
            float(np.square(expected, dtype=np.float64).sum()),
            float(np.square(expected.astype(np.float64) - given).sum()),
        )

    def __add__(self, other: Powers) -> Powers:
        return Powers(self.signal + other.signal, self.noise + other.noise)

    @property
    def decibels(self) -> float:
        if self.noise == 0:
            return inf
        return 10 * log10(self.signal / self.noise) if self.signal > 0 else -inf


def made_up_inputs(program: Program, seed: int = 0, dynamic: int = DYNAMIC_SIZE) -> list[Array]:
    """Return random inputs that fit the signature; integers are zero, so they index anything.

    Dynamic dimensions get the size `dynamic`.
    """
    rng = np.random.default_rng(seed)
    inputs: list[Array] = []
    for parameter in program.signature.inputs:
        shape = tuple(dynamic if size is None else size for size in parameter.shape or ())
        if parameter.dtype.kind in "iub":
            inputs.append(np.zeros(shape, parameter.dtype))
        else:
            inputs.append(rng.standard_normal(shape).astype(parameter.dtype))
    return inputs


Layer = QuantizedLayerOp | EmbeddingOp
Key = tuple[str, int]
Observed = list[tuple[Key, tuple[Layer, Value]]]


def observed_layers(program: Program, inputs: Sequence[Array]) -> Observed:
    """Return the layers' outputs, by layer and how often it had run before."""
    seen: Observed = []
    counts: dict[str, int] = {}

    def observe(op: Operation, results: Sequence[Value]) -> None:
        if not isinstance(op, QuantizedLayerOp | EmbeddingOp):
            return
        name = layer_name(op) or op.name
        seen.append(((name, counts.get(name, 0)), (op, results[0])))
        counts[name] = counts.get(name, 0) + 1

    Interpreter(program.module, program.store, observe=observe).call(None, list(inputs))
    return seen


def _add_powers(powers: dict[Key, Powers], given: Observed, reference: Observed) -> None:
    expected = dict(reference)
    for key, (_, output) in given:
        if key in expected:
            powers[key] = powers.get(key, Powers()) + Powers.of(expected[key][1], output)


def _report(program: Program, op: Layer, output: Value, quality: float | None) -> LayerReport:
    weight = shape_of(op.weight.type)
    linear = isinstance(op, QuantizedLayerOp)
    return LayerReport(
        name=layer_name(op) or op.name,
        op=op.name,
        weight_shape=weight,
        output_shape=output.shape,
        weight=element_width(op.weight.type),
        act=op.act_width if linear else None,
        parameters=prod(weight) + (prod(shape_of(op.bias.type)) if linear and op.bias else 0),
        bytes=sum(_stored_bytes(program, value.owner) for value in op.operands),
        macs=output.size * prod(weight[1:]) if linear else 0,
        sqnr=quality,
    )


def _stored_bytes(program: Program, owner: object) -> int:
    """Return bytes of a constant operand: weight, scale, zero point or bias."""
    if not isinstance(owner, GetConstantOp):
        return 0
    return constant_bytes(owner.constant, program.store)
