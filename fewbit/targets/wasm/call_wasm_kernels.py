"""Matmuls and convolutions of integers as calls of kernels for WebAssembly."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from fewbit.pipeline.context import compile_context
from fewbit.targets.mcu.call_mcu_kernels import McuCalls, call_mcu_kernels
from fewbit.targets.wasm.engine import Engine


@dataclass(frozen=True)
class CallWasmKernels(ModulePass):
    """Call kernels for WebAssembly for matmuls and convolutions of integers."""

    name = "call-wasm-kernels"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        known = compile_context(ctx)
        known.put(call_mcu_kernels(known.program(op), known.get(Engine)), McuCalls)
