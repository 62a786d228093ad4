"""Compiles the handlers of a word size, once in a process, and finds their addresses."""
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from fewbit.llvm.function import Function
from fewbit.llvm.values import array, symbol
from fewbit.simulators.riscv.native import floats, integer
from fewbit.simulators.riscv.native.handler import SLOW, Handler, context_offset, touch_ir


@dataclass(frozen=True)
class Engine:
    """Compiled handlers: where each is, and how to begin."""

    addresses: dict[str, int]
    run: Callable[[int, int, int, int], None]
    """From a record on, with registers, memory and context, until a handler leaves it to Python."""
    _kept: Any
    """LLVM's engine: the code lives as long as it does."""


@cache
def engine(xlen: int, lines: bool = False) -> Engine:
    """Return the handlers as machine code; with `lines`, those that count cache misses."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    names, text = module(xlen, lines)
    target = binding.Target.from_default_triple()
    machine = target.create_target_machine(
        cpu=binding.get_host_cpu_name(), features=binding.get_host_cpu_features().flatten(), opt=2
    )
    compiled = binding.parse_assembly(text)
    compiled.triple = machine.triple
    compiled.data_layout = str(machine.target_data)
    options = binding.create_pipeline_tuning_options(speed_level=1)
    passes = binding.create_pass_builder(machine, options)
    passes.getModulePassManager().run(compiled, passes)
    jit = binding.create_mcjit_compiler(compiled, machine)
    jit.finalize_object()
    table = (ctypes.c_uint64 * len(names)).from_address(jit.get_global_value_address("table"))
    arguments = (ctypes.c_void_p,) * 4
    run = ctypes.CFUNCTYPE(None, *arguments)(jit.get_function_address("run"))
    return Engine(dict(zip(names, table, strict=True)), run, (jit, machine))


def module(xlen: int, lines: bool = False) -> tuple[list[str], str]:
    """Return the names of the handlers, and all of them as LLVM IR."""
    every = [_slow(xlen), *integer.handlers(xlen), *floats.handlers(xlen)]
    names = [handler.name for handler in every]
    table = array([symbol(name) for name in names])
    run = Function("run", "ptr record, ptr regs, ptr mem, ptr ctx")
    record, regs, mem, ctx = run.parameters
    left = run.load("i64", run.at(ctx, context_offset("left"), "i8"))
    handler = run.load("ptr", record)
    run.call_at(handler, SLOW, record, regs, mem, record, left, ctx)
    run.ret()
    parts = [
        *sorted({line for handler in every for line in handler.intrinsics}),
        touch_ir(lines),
        *(handler.text() for handler in every),
        run.text(),
        f"@table = constant {table.typed}",
        '!0 = !{!"branch_weights", i32 2000, i32 1}',
    ]
    return names, "\n".join(parts)


def _slow(xlen: int) -> Handler:
    """Write the handler that notes where the program is, and returns to Python."""
    h = Handler(SLOW.name, xlen)
    for name, value in (("record", h.record), ("start", h.start)):
        h.set_context(name, h.address(value))
    h.set_context("left", h.left)
    h.ret()
    return h
