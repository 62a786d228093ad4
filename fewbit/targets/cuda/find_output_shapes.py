"""The shapes of outputs for the shapes of inputs, which a plan for a GPU must have fixed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from fewbit.errors import ShapeError, UnsupportedError
from fewbit.ir.bindings import mlir_context
from fewbit.passes.memory.make_shape_function import ShapeFunction
from fewbit.pipeline.context import CompileContext, compile_context
from fewbit.pipeline.entry import ENTRY
from fewbit.program.signature import TensorSpec
from fewbit.targets.cuda.evaluate import Evaluation
from fewbit.targets.cuda.settings import GpuSettings, Shape


@dataclass(frozen=True)
class OutputShapes:
    """The shapes of a program's outputs, all static."""

    shapes: tuple[Shape, ...]


@dataclass(frozen=True)
class FindOutputShapes(ModulePass):
    """Evaluate the shape function on the sizes that were asked for."""

    name = "find-output-shapes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        known = compile_context(ctx)
        known.put(OutputShapes(_output_shapes(known)))


def _output_shapes(ctx: CompileContext) -> tuple[Shape, ...]:
    settings = ctx.get(GpuSettings)
    outputs = settings.signature.outputs
    if not settings.signature.is_dynamic:
        return tuple(_static_shape(spec) for spec in outputs)
    shapes = ctx.get(ShapeFunction)
    if shapes.counted:
        _nothing_left()
    with mlir_context():
        evaluation = Evaluation(shapes.module, _nothing_left, _nothing_left)
        *sizes, holds = evaluation.run(f"{ENTRY}_shapes", settings.open_sizes)
    if not holds:
        given = ", ".join("x".join(map(str, shape)) for shape in settings.inputs)
        raise ShapeError(f"inputs of {given} do not fit together")
    left = iter(sizes)
    return tuple(
        tuple(next(left) if size is None else size for size in spec.shape or ()) for spec in outputs
    )


def _static_shape(spec: TensorSpec) -> Shape:
    return tuple(size for size in spec.shape or () if size is not None)


def _nothing_left(*_: Any) -> None:
    raise UnsupportedError(
        "the size of an output depends on what is computed",
        hint="all sizes of a plan for a GPU are fixed: end the model before that op, or compile it "
        "for cpu",
    )
