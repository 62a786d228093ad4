"""A function that calls all workgroups of a dispatch, several times over.

It is compiled in this process: loops of Python would take longer than what they call.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from typing import Any

from fewbit.llvm.function import Function, Prototype

DISPATCH = Prototype.of("dispatch", "i32", "ptr", "ptr", "ptr")
"""The function of a dispatch: of its environment, its state, and a workgroup."""


def runner_text() -> str:
    """Return a function of a dispatch, its arguments, workgroups along each axis, and a count."""
    f = Function(
        "run", "ptr function, ptr environment, ptr state, ptr group, i64 x, i64 y, i64 z, i64 times"
    )
    function, environment, state, group, x, y, z, times = f.parameters
    with f.loop(0, times, hot=True), f.loop(0, z, hot=True) as layers:
        f.store(f.convert("trunc", layers.index, "i16"), f.at(group, 2, "i32"))
        with f.loop(0, y, hot=True) as rows:
            f.store(f.convert("trunc", rows.index, "i32"), f.at(group, 1, "i32"))
            with f.loop(0, x, hot=True) as columns:
                f.store(f.convert("trunc", columns.index, "i32"), group)
                f.call_at(function, DISPATCH, environment, state, group)
    f.ret()
    return f.text()


@dataclass(frozen=True)
class Runner:
    """The function, and the engine that owns its code."""

    function: Any
    engine: object

    def __call__(self, *arguments: object) -> None:
        self.function(*arguments)


@cache
def runner() -> Runner:
    """Return the function, compiled for this processor."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(opt=2)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(runner_text()), machine)
    engine.finalize_object()
    prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4, *[ctypes.c_uint64] * 4)
    return Runner(prototype(engine.get_function_address("run")), engine)
