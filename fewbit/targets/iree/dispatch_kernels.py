"""Layers computed by fewbit's own kernels, whose machine code becomes part of IREE's module.

`call_kernels` makes of a layer a call on memory, as it does for the `cpu` target. Here each call
becomes a dispatch on tensors, so that IREE plans the memory: what the call reads are operands, what
it allocates are results. All dispatches are in one executable, in IREE's own words, that refers to
one object file. Its functions take memrefs apart by the same convention, so stubs stay as they are;
the number of a workgroup is that of a thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, tensor
from xdsl.dialects.bufferization import ToBufferOp, ToTensorOp
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, ModuleOp, TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from fewbit.codegen.stubs import KernelCalls
from fewbit.dialects import kernel
from fewbit.dialects.mico import shape_of
from fewbit.dialects.upstream.iree import DispatchOp
from fewbit.passes.kernel.call_kernels import call_kernels
from fewbit.passes.kernel.call_site import dynamic_axes
from fewbit.pipeline.context import compile_context
from fewbit.program.program import Program
from fewbit.toolchain import objects
from fewbit.toolchain.isa import Isa

OBJECT = "kernels.o"
"""The file that the program names."""
EXECUTABLE = "kernels"
WORKGROUPS = 8
"""The workgroups of a dispatch, at most: as many threads can share it."""
_FORMATS = {"x86_64": "x86_64", "aarch64": "arm_64", "riscv64": "riscv_64"}
_CONTRACTION = re.compile(r"fewbit_(?:matmul|conv2d|depthwise)_")

Tensor = TensorType[Attribute]


@dataclass(frozen=True)
class Export:
    """A function of the executable: a call of a stub, with a buffer for each tensor."""

    name: str
    tensors: Sequence[Tensor]
    results: int
    """How many of the tensors, the last, are written."""
    workgroups: int
    kernel: str
    """What the stub calls."""
    macs: int

    def text(self) -> str:
        given = self.tensors[: len(self.tensors) - self.results]
        names = [f"%b{i}: !stream.binding" for i in range(len(self.tensors))]
        sizes = [f"%d{i}_{axis}: index" for i, axis in self.dynamic]
        arguments = [*names[: len(given)], *sizes, *names[len(given) :]]
        types = ", ".join([*map(_memref, self.tensors), "index", "index"])
        buffers = "\n".join(
            f"%m{i} = stream.binding.subspan %b{i}[%zero] : !stream.binding -> {_memref(type)}"
            f"{self._sizes(i)}"
            for i, type in enumerate(self.tensors)
        )
        memory = ", ".join(f"%m{i}" for i in range(len(self.tensors)))
        about = f'{{hal.import.static, kernel = "{self.kernel}", macs = {self.macs}}}'
        return f"""func.func private @"{self.name}"({types}) attributes {about}
func.func @"{self.name}.dispatch"({", ".join(arguments)}) {{
%zero = arith.constant 0 : index
%thread = stream.dispatch.workgroup.id[0] : index
%threads = stream.dispatch.workgroup.count[0] : index
{buffers}
func.call @"{self.name}"({memory}, %thread, %threads) : ({types}) -> ()
func.return
}}"""

    def declaration(self) -> str:
        return f"""stream.executable.export public @"{self.name}.dispatch"
workgroups() -> (index, index, index) {{
%one = arith.constant 1 : index
%count = arith.constant {self.workgroups} : index
stream.return %count, %one, %one : index, index, index
}}"""

    @property
    def dynamic(self) -> list[tuple[int, int]]:
        """Tensors and their axes whose size is known only at run time."""
        return [
            (i, axis)
            for i, type in enumerate(self.tensors)
            for axis, size in enumerate(type.get_shape())
            if size < 0
        ]

    def _sizes(self, number: int) -> str:
        names = [f"%d{i}_{axis}" for i, axis in self.dynamic if i == number]
        return f"{{{', '.join(names)}}}" if names else ""


@dataclass(frozen=True)
class Kernels:
    """What a program needs besides its text: an executable, and the object that it refers to."""

    isa: Isa
    code: bytes
    exports: Sequence[Export] = field(default_factory=list[Export])

    @property
    def files(self) -> dict[str, bytes]:
        return {OBJECT: self.code} if self.exports else {}

    def text(self) -> str:
        """Return the executable, for the top of a module."""
        if not self.exports:
            return ""
        target = f'<"llvm-cpu", "embedded-elf-{_FORMATS[self.isa.architecture]}">'
        declared = "\n".join(export.declaration() for export in self.exports)
        defined = "\n".join(export.text() for export in self.exports)
        return f"""stream.executable private @{EXECUTABLE} attributes {{
hal.executable.objects = #hal.executable.objects<{{
#hal.executable.target{target} = [#hal.executable.object<{{path = "{OBJECT}"}}>]}}>}} {{
{declared}
builtin.module {{
{defined}
}}
}}
"""


@dataclass(frozen=True)
class DispatchKernels(ModulePass):
    """Compute layers by dispatches of our own kernels."""

    name = "dispatch-kernels"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        known = compile_context(ctx)
        known.put(dispatch_kernels(known.program(op), known.get(Isa)))


def dispatch_kernels(program: Program, isa: Isa) -> Kernels:
    """Replace, in place, every op that there is a kernel for by a dispatch of it."""
    macs = _macs_by_location(program)
    calls = call_kernels(program, isa)
    kernels = {stub.name: stub.called[-1] for stub in calls.stubs}
    dispatches = [
        op
        for op in program.module.walk()
        if isinstance(op, func.CallOp) and op.callee.root_reference.data in kernels
    ]
    written: dict[SSAValue, SSAValue] = {}
    exports: list[Export] = []
    for call in dispatches:
        name = call.callee.root_reference.data
        symbol = kernels[name]
        count = macs.get(call.location, 0) if _CONTRACTION.match(symbol) else 0
        most = min(calls.most_threads.get(name, WORKGROUPS), WORKGROUPS)
        exports.append(_dispatch(call, written, most, symbol, count))
    _sweep(program, written, kernels)
    return Kernels(isa, _object(calls) if exports else b"", exports)


def _dispatch(
    call: func.CallOp, written: dict[SSAValue, SSAValue], workgroups: int, symbol: str, macs: int
) -> Export:
    """Replace a call by a dispatch; note the tensors that it writes."""
    name = call.callee.root_reference.data
    *memory, _, _ = call.arguments
    new = [m for m in memory if isinstance(m.owner, memref.AllocOp) and m not in written]
    assert list(memory[len(memory) - len(new) :]) == new, "results come last"
    given = [_read(m, written) for m in memory[: len(memory) - len(new)]]
    types = [_tensor(m) for m in new]
    sizes = [size for value in given for size in _sizes_of(value, call)]
    dynamic = [size for m in new for size in cast(memref.AllocOp, m.owner).dynamic_sizes]
    dispatch = DispatchOp(
        EXECUTABLE, f"{name}.dispatch", given, [*sizes, *dynamic], sizes, dynamic, types
    )
    dispatch.location = call.location
    Rewriter.insert_op(dispatch, InsertPoint.before(call))
    for m, result in zip(new, dispatch.results, strict=True):
        result.name_hint = m.name_hint
        written[m] = result
    Rewriter.erase_op(call)
    tensors = [cast(Tensor, value.type) for value in given] + types
    return Export(name, tensors, len(new), workgroups, symbol, macs)


def _read(memory: SSAValue, written: dict[SSAValue, SSAValue]) -> SSAValue:
    """Return the tensor whose elements a buffer has."""
    if memory in written:
        return written[memory]
    value = cast(ToBufferOp, memory.owner).tensor
    owner = value.owner
    return written[owner.memref] if isinstance(owner, ToTensorOp) else value


def _sizes_of(value: SSAValue, before: Operation) -> Iterable[SSAValue]:
    """Return sizes of a tensor that are known only at run time."""
    for axis in dynamic_axes(value):
        index = arith.ConstantOp(IntegerAttr(axis, IndexType()))
        size = tensor.DimOp(value, index.result)
        for op in (index, size):
            op.location = before.location
            Rewriter.insert_op(op, InsertPoint.before(before))
        yield size.result


def _sweep(program: Program, written: dict[SSAValue, SSAValue], kernels: dict[str, str]) -> None:
    """Remove memory, for which there are tensors now, and the functions that were called."""
    ops = list(program.module.walk())
    for op in ops:
        if isinstance(op, ToTensorOp) and op.memref in written:
            op.tensor.replace_all_uses_with(written[op.memref])
    for op in reversed(ops):
        is_memory = isinstance(op, ToBufferOp | ToTensorOp | memref.AllocOp)
        is_declared = isinstance(op, func.FuncOp) and op.sym_name.data in kernels
        if is_declared or (is_memory and not op.results[0].uses):
            Rewriter.erase_op(op)


def _object(calls: KernelCalls) -> bytes:
    module = objects.link_modules(calls.texts(), calls.names, calls.isa)
    return objects.emit_object(module, calls.isa)


def _macs_by_location(program: Program) -> dict[Any, int]:
    """Return the MACs of layers; dynamic sizes count as 1."""
    return {
        op.location: prod(max(size, 1) for size in shape_of(op.result.type))
        * prod(shape_of(op.weight.type)[1:])
        for op in program.module.walk()
        if isinstance(op, kernel.ContractionOp)
    }


def _tensor(memory: SSAValue) -> Tensor:
    type = cast("MemRefType[Attribute]", memory.type)
    return TensorType(type.element_type, type.shape)


def _memref(type: Tensor) -> str:
    return str(MemRefType(type.element_type, type.shape))
