"""Quantized networks, compared layer by layer on equal inputs.

A float op between two layers whose last bit differs can move one integer of the next layer by a
step, and with it all that follows: outputs of whole networks then differ by as much as quantization
itself, and say nothing. So a target's program also gives what each of its layers takes and gives,
and the interpreter computes each layer, and the floats between two of them, from exactly these.
Nothing accumulates, and the bounds are those of single ops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from fewbit.dialects.mico import QuantizedLayerOp
from fewbit.pipeline.compilation import run_passes
from fewbit.pipeline.entry import entry_of
from fewbit.program.program import Program

Array = np.ndarray

ROUNDING = 1e-5
"""What float ops of targets may differ by, relative to the largest result."""


def with_layers_shown(program: Program) -> Program:
    """Behind its outputs the program gives the input and the output of each layer."""
    shown = _inlined(program)
    entry = entry_of(shown.module)
    seen = [value for op in _layers(entry) for value in (op.input, op.result)]
    _give(entry, [*_returned(entry).operands, *seen])
    return shown


def with_layers_given(program: Program) -> Program:
    """The input of each layer is an input of the program, and so is what is made of its output.

    The program gives what `with_layers_shown` does, each computed from what is given.
    """
    cut = _inlined(program)
    entry = entry_of(cut.module)
    seen: list[SSAValue] = []
    for op in _layers(entry):
        taken, given = (
            entry.body.block.insert_arg(v.type, len(entry.body.block.args))
            for v in (op.input, op.result)
        )
        seen += [op.input, op.result]
        op.result.replace_all_uses_with(given)
        op.operands[0] = taken
    _give(entry, [*_returned(entry).operands, *seen])
    return cut


def _inlined(program: Program) -> Program:
    return run_passes(program, "inline")


def _layers(entry: func.FuncOp) -> list[QuantizedLayerOp]:
    return [op for op in entry.body.block.ops if isinstance(op, QuantizedLayerOp)]


def _returned(entry: func.FuncOp) -> func.ReturnOp:
    last = entry.body.block.last_op
    assert isinstance(last, func.ReturnOp)
    return last


def _give(entry: func.FuncOp, values: Sequence[SSAValue]) -> None:
    Rewriter.replace_op(_returned(entry), func.ReturnOp(*values))
    types = [value.type for value in values]
    entry.properties["function_type"] = FunctionType.from_lists(
        list(entry.body.block.arg_types), types
    )
    entry.properties.pop("res_attrs", None)


def assert_layers_agree(
    program: Program,
    inputs: Sequence[Array],
    run: Callable[[Program], Sequence[Array]],
    bound: float = 0,
) -> None:
    """Compare what `run` makes of a program with the interpreter, layer by layer.

    A layer's output is within `bound` of the interpreter's, by default equal; the floats between
    layers, and behind the last, are within `ROUNDING`. Both relative to the largest. With a bound of
    0, to show its layers changes nothing of a program, so it is the program itself that is compared.
    A compiler that fuses loops otherwise when a value is shown leaves two programs that differ in
    last bits; the bare one may then be as far from the interpreter as the other, which is right
    layer by layer, is by such bits alone.
    """
    alone, shown = run(program), run(with_layers_shown(program))
    count = len(alone)
    for found, right, expected in zip(alone, shown[:count], program.run(*inputs), strict=True):
        if not bound:
            np.testing.assert_array_equal(found, right)
        elif relative(found, right) > ROUNDING:
            assert typical(found - expected) <= 2 * typical(right - expected)
    computed = with_layers_given(program).run(*inputs, *shown[count:])
    pairs = list(zip(shown, computed, strict=True))
    assert len(pairs) > count, "the program has no layers"
    for i, (found, expected) in enumerate(pairs):
        is_layer = i >= count and (i - count) % 2 == 1
        error = relative(found, expected)
        what = f"output {i}" if i < count else f"{'result' if is_layer else 'input'} of a layer"
        assert error <= (bound if is_layer else ROUNDING), f"{what} ({i}) is off by {error}"


def typical(values: Array) -> float:
    """Their root mean square: which single value moves most is a matter of luck."""
    return float(np.sqrt(np.square(values.astype(np.float64)).mean()))


def relative(found: Array, expected: Array) -> float:
    assert found.shape == expected.shape
    largest = np.abs(expected.astype(np.float64)).max(initial=0)
    difference = np.abs(found.astype(np.float64) - expected).max(initial=0)
    return float(difference / (largest or 1))
