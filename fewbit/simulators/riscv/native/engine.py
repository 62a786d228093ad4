"""Compiles the handlers of a word size, once in a process, and finds their addresses."""
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from fewbit.simulators.riscv.native import floats, integer
from fewbit.simulators.riscv.native.handler import Handler, context_offset, touch_ir

_INTRINSIC = re.compile(r"call (\S+|<[^>]+>) @(llvm\.[\w.]+)\((.*?)\)")


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
    """The handlers as machine code of this computer; with `lines`, those that count misses."""
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
    """The names of the handlers, and all of them as LLVM IR."""
    every = [_slow(xlen), *integer.handlers(xlen), *floats.handlers(xlen)]
    names = [_name(text) for text in every]
    body = "\n".join(every)
    table = ", ".join(f'ptr @"{name}"' for name in names)
    declared = sorted({_declaration(m) for m in _INTRINSIC.finditer(body)})
    run = f"""
define void @run(ptr %record, ptr %regs, ptr %mem, ptr %ctx) {{
  %handler = load ptr, ptr %record
  %place = getelementptr i8, ptr %ctx, i64 {context_offset("left")}
  %left = load i64, ptr %place
  call void %handler(ptr %record, ptr %regs, ptr %mem, ptr %record, i64 %left, ptr %ctx)
  ret void
}}
@table = constant [{len(names)} x ptr] [{table}]
!0 = !{{!"branch_weights", i32 2000, i32 1}}
"""
    return names, "\n".join((*declared, touch_ir(lines), body, run))


def _slow(xlen: int) -> str:
    """Note where the program is, and return to Python."""
    h = Handler("slow", xlen)
    for name in ("record", "start"):
        h.set_field(name, h.val(f"ptrtoint ptr %{name} to i64"))
    h.set_field("left", "%left")
    h.do("ret void")
    return str(h)


def _name(text: str) -> str:
    return text.split('"')[1]


def _declaration(call: re.Match[str]) -> str:
    result, name, arguments = call.groups()
    kinds = [re.match(r"<[^>]+>|\S+", argument.strip()) for argument in arguments.split(", ")]
    return f"declare {result} @{name}({', '.join(kind.group() for kind in kinds if kind)})"
