"""Programs run as they are after a stage, by other ways than the compiler's own.

`linalg` runs in the interpreter, `memref` and `loops` through a plain pipeline of upstream's and the
JIT of its wheel, and `llvm` in LLVM's JIT, not optimized. What a stage leaves outside is given here:
weights, the arena, and the kernels, which are machine code wherever they are called from.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from llvmlite import binding
from torch_mlir.execution_engine import ExecutionEngine
from xdsl.dialects import bufferization, func, memref, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, FunctionType, MemRefType, TensorType
from xdsl.rewriter import Rewriter

from fewbit.codegen.interface import Interface, Port
from fewbit.codegen.stubs import KernelCalls
from fewbit.interpreter import registry
from fewbit.interpreter.interpreter import NONE, Interpreter
from fewbit.interpreter.values import dtype_of
from fewbit.ir.bindings import mlir_context, parse_mlir, run_upstream
from fewbit.passes.loops.share_work import BARRIER
from fewbit.pipeline.compilation import Compilation
from fewbit.pipeline.entry import ENTRY
from fewbit.program.program import Program
from fewbit.program.weight_image import WeightImage
from fewbit.runtime.native import ALIGNMENT
from fewbit.targets.cpu.target import begin_cpu
from fewbit.toolchain import objects
from fewbit.toolchain.isa import Isa

Array = np.ndarray[Any, Any]

PLAIN = """
func.func(convert-linalg-to-loops), expand-strided-metadata, lower-affine, convert-scf-to-cf,
arith-expand, convert-math-to-llvm, convert-math-to-libm, convert-arith-to-llvm,
convert-vector-to-llvm, convert-index-to-llvm, finalize-memref-to-llvm, convert-func-to-llvm,
convert-cf-to-llvm, convert-ub-to-llvm, reconcile-unrealized-casts
"""
NO_BARRIER = f"define void @{BARRIER}(ptr %state, i64 %threads) {{\n  ret void\n}}"
END_OF_THREADS = "end_at_exit"
"""The function of `threads.c` that ends all workers."""
"""Where one thread runs, it waits for nobody."""


def after(program: Program, stage: str) -> Compilation:
    """The program, compiled until a stage and no further."""
    return begin_cpu(program, "net", Isa.host()).run(stage)


def run_linalg(compilation: Compilation, inputs: Sequence[Array], monkeypatch: Any) -> list[Array]:
    """The program after `linalg` in the interpreter, with tensors in the place of memory."""
    # A tensor of no contents is an array that kernels can write to.
    entries = registry._ENTRIES  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setitem(entries, tensor.EmptyOp, registry.Entry(_empty, False))
    module = compilation.program.module.clone()
    for op in list(module.walk()):
        if isinstance(op, memref.AllocOp):
            type = _as_tensor(op.memref.type)
            Rewriter.replace_op(op, tensor.EmptyOp(op.dynamic_sizes, type))
        elif isinstance(op, bufferization.ToBufferOp | bufferization.ToTensorOp):
            Rewriter.replace_op(op, [], [op.operands[0]])
        elif isinstance(op, func.FuncOp) and not op.body.blocks:
            types = [_as_tensor(type) for type in op.function_type.inputs]
            op.function_type = FunctionType.from_lists(types, [])
    interpreter = _WithKernels(module, compilation.program.store)
    interpreter.kernels = Jit(compilation.ctx.get(KernelCalls).texts())
    return list(interpreter.call(None, inputs))


def _empty(frame: Any, op: tensor.EmptyOp, operands: Sequence[Any]) -> Sequence[Array]:
    sizes = iter(operands)
    type = op.tensor.type
    shape = [next(sizes) if size == DYNAMIC_INDEX else size for size in type.get_shape()]
    return (aligned([int(size) for size in shape], np.dtype(dtype_of(type))),)


def _as_tensor(type: Any) -> Any:
    return TensorType(type.element_type, type.shape) if MemRefType.constr().verifies(type) else type


class _WithKernels(Interpreter):
    kernels: Jit

    def invoke(
        self, callee: Any, arguments: Sequence[Any], constants: Mapping[str, str] = NONE
    ) -> Sequence[Any]:
        if not isinstance(callee, func.FuncOp) or callee.body.blocks:
            return super().invoke(callee, arguments, constants)
        memory = [isinstance(type, TensorType) for type in callee.function_type.inputs]
        values = [
            np.require(value, requirements="C") if is_memory else value
            for value, is_memory in zip(arguments, memory, strict=True)
        ]
        given = [
            number
            for value, is_memory in zip(values, memory, strict=True)
            for number in (memref_of(value) if is_memory else [int(value)])
        ]
        function = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * len(given))
        function(self.kernels.address(callee.sym_name.data))(*given)
        return ()


def memref_of(array: Array) -> list[int]:
    """A memref as machine code takes it: a pointer, twice, and the shape."""
    assert array.flags.c_contiguous
    strides = [stride // array.itemsize for stride in array.strides]
    return [array.ctypes.data, array.ctypes.data, 0, *array.shape, *strides]


def run_mlir(
    compilation: Compilation, stage: str, inputs: Sequence[Array], like: Sequence[Array]
) -> list[Array]:
    """The text after `memref` or `loops`, through upstream's passes and its JIT.

    `like` are arrays of the shapes and types of the outputs.
    """
    module = parse_mlir(compilation.text)
    run_upstream(module, PLAIN)
    kernels = Jit([NO_BARRIER, *compilation.ctx.get(KernelCalls).texts()])
    with mlir_context():
        engine = ExecutionEngine(module, opt_level=0)
        for name in (BARRIER, *_declared(compilation.ctx.get(KernelCalls))):
            engine.raw_register_runtime(name, ctypes.c_void_p(kernels.address(name)))
    outputs = [aligned(array.shape, array.dtype) for array in like]
    weights = _aligned_bytes(compilation.ctx.get(WeightImage).tobytes())
    ports = [*map(np.ascontiguousarray, inputs), *outputs, weights]
    given = [v for port in ports for v in memref_of(port)]
    arena = aligned([_call(engine, f"{ENTRY}_arena_bytes", given)], np.dtype(np.int8))
    given += memref_of(arena)
    state = aligned([8], np.dtype(np.int64))
    threads = [0, 1, state.ctypes.data] if stage == "loops" else []
    _call(engine, ENTRY, [*given, *threads])
    return outputs


def _declared(calls: KernelCalls) -> list[str]:
    return [stub.name for stub in calls.stubs]


def _call(engine: ExecutionEngine, name: str, values: Sequence[int]) -> int:
    """The JIT's own entry takes the addresses of all arguments, and of the result."""
    cells = np.array([*values, 0], np.int64)
    addresses = cells.ctypes.data + 8 * np.arange(len(cells))
    pointer = engine.raw_lookup(name)
    assert pointer, f"the JIT does not know {name}"
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(pointer)(addresses.ctypes.data)
    return int(cells[-1])


def run_llvm(
    compilation: Compilation, inputs: Sequence[Array], like: Sequence[Array], threads: int = 1
) -> list[Array]:
    """The text after `llvm`, in LLVM's JIT, through the functions of the C interface."""
    name, image = compilation.ctx.get(Interface).name, compilation.ctx.get(WeightImage).tobytes()
    size = max(len(image), 1)
    # Between machine code that is compiled together, so that it is near enough.
    weights = f"@{name}_weights = hidden global [{size} x i8] zeroinitializer, align {ALIGNMENT}"
    jit = Jit([compilation.text, weights], opt=0, public=(END_OF_THREADS,))
    ctypes.memmove(jit.variable(f"{name}_weights"), image, len(image))
    outputs = [aligned(array.shape, array.dtype) for array in like]
    given = _struct(compilation.ctx.get(Interface).inputs, [*map(np.ascontiguousarray, inputs)])
    taken = _struct(compilation.ctx.get(Interface).outputs, outputs)
    needed = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(jit.address(f"{name}_arena_bytes"))
    arena = aligned([needed(given.ctypes.data)], np.dtype(np.int8))
    run = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 3, ctypes.c_int)
    code = run(jit.address(f"{name}_run"))(
        given.ctypes.data, taken.ctypes.data, arena.ctypes.data, threads
    )
    # A loader would: its workers must not outlive their code.
    ctypes.CFUNCTYPE(None)(jit.address(END_OF_THREADS))()
    assert code == 0
    return outputs


def _struct(ports: Sequence[Port], arrays: Sequence[Array]) -> Array:
    """Pointers, each followed by the sizes that only the run knows."""
    fields: list[int] = []
    for port, array in zip(ports, arrays, strict=True):
        fields.append(array.ctypes.data)
        fields += [n for n, size in zip(array.shape, port.shape, strict=True) if size is None]
    return np.array(fields, np.int64)


class Jit:
    """LLVM IR as machine code in this process, for as long as this lives."""

    def __init__(self, texts: Sequence[str], opt: int = 2, public: Sequence[str] = ()) -> None:
        module = objects.parse_ir(texts[0]) if texts else objects.parse_ir("")
        for text in texts[1:]:
            module.link_in(objects.parse_ir(text))
        for name in public:
            module.get_function(name).linkage = "external"
        self.engine = binding.create_mcjit_compiler(module, objects.jit_machine(Isa.host(), opt))
        self.engine.finalize_object()

    def address(self, name: str) -> int:
        found = self.engine.get_function_address(name)
        assert found, f"no function {name}"
        return found

    def variable(self, name: str) -> int:
        return self.engine.get_global_value_address(name)


def aligned(shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """An array that begins where vectors may, of values that nobody takes for results."""
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    memory = np.full(size + ALIGNMENT, 0xA5, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size].view(dtype).reshape(tuple(shape))


def _aligned_bytes(data: bytes) -> Array:
    made = aligned([len(data)], np.dtype(np.int8))
    made[:] = np.frombuffer(data, np.int8)
    return made
