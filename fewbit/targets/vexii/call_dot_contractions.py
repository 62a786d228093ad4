"""Matmuls of two tensors of bytes that a run computes, as calls of functions with dot instructions.

Queries and keys that a recipe quantizes are such: one scale for each token, an integer matmul. They
are found among loops over tensors, once attention is these. Rows of both, and of the result, must
lie one after another, and their sizes be known; all loops around them may be of any size.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, i8, i32
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from fewbit.codegen.bare_metal.device_calls import DeviceCalls
from fewbit.ir.symbols import SymbolTable, using
from fewbit.passes.kernel.call_contractions import Contraction, find_contraction, is_zero
from fewbit.passes.kernel.call_site import CallSite, shape_of
from fewbit.pipeline.context import compile_context
from fewbit.program.program import Program
from fewbit.targets.vexii.call_dots import DotCalls
from fewbit.targets.vexii.kernels.activations import matmul_activations, takes


@dataclass(frozen=True)
class CallDotContractions(ModulePass):
    """Call functions with dot instructions for matmuls of tensors of bytes."""

    name = "call-dot-contractions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        known = compile_context(ctx)
        call_dot_contractions(known.program(op), cast(DotCalls, known.get(DeviceCalls)))


def call_dot_contractions(program: Program, calls: DotCalls) -> None:
    """Replace, in place, the matmuls of bytes whose rows lie one after another."""
    with using(SymbolTable(program.module)):
        for op in list(program.module.walk()):
            found = find_contraction(op)
            if found is not None and found.is_integer and _has_rows(found):
                _Call(program, op, calls).run(found)


def _has_rows(found: Contraction) -> bool:
    """Return whether both inputs and the result are rows, as many and as long as is known."""
    if found.row is None or not is_zero(found.operands[2]):
        return False
    ends = (found.lhs[-2:], found.rhs[-2:], found.out[-2:])
    row, column, depth = found.row, found.column, found.depth
    if ends != ((row, depth), (column, depth), (row, column)):
        return False
    return DYNAMIC_INDEX not in (size for v in found.operands for size in shape_of(v)[-2:])


class _Call(CallSite[Operation]):
    calls: DotCalls

    def run(self, found: Contraction) -> None:
        x, w, start = found.operands
        (m, k), n = shape_of(x)[-2:], shape_of(w)[-2]
        if not takes(k, self.calls.code.processor.xlen):
            return
        function, room = matmul_activations(self.calls.code, k, n, m)
        result = self.op.results[0]
        sizes = [
            self.make(tensor.DimOp(start, self.index(axis)))
            for axis, size in enumerate(shape_of(result))
            if size == DYNAMIC_INDEX
        ]
        sums = self.allocate(i32, shape_of(result), sizes)
        memory = [self.buffer(x), self.buffer(w), sums, self.allocate(i8, [room])]
        stub = self.stub("", [value.type for value in memory])
        lhs, rhs, out, scratch = stub.memrefs
        with ExitStack() as loops:
            place = {
                loop: loops.enter_context(stub.loop(0, out.sizes[axis])).index
                for axis, loop in enumerate(found.out[:-2])
            }
            pointers = [
                stub.advance(
                    given.pointer,
                    given.element,
                    *((place[d], given.strides[i]) for i, d in enumerate(dims) if d in place),
                )
                for given, dims in ((lhs, found.lhs), (rhs, found.rhs), (out, found.out))
            ]
            stub.call(function, *pointers, scratch.pointer)
        self.call(stub, memory)
        self.replace(self.as_tensor(sums))
