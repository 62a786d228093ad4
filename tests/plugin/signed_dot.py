"""Kernels for an instruction that fewbit does not know: AVX-VNNI-INT8's dot product of signed bytes.

Run as a program, it prints the instructions that matmuls of bytes are made of.
"""

from __future__ import annotations

from dataclasses import replace

from fewbit.kernels import IntegerMatmul, module_text
from fewbit.kernels.emit import Function, Value
from fewbit.kernels.integer.dot import INSTRUCTIONS
from fewbit.toolchain.isa import DotProduct, Isa
from fewbit.toolchain.objects import parse_ir, target_machine

SIGNED = DotProduct(name="vnni-int8", step=4, factor_bits=8, latency=5)

ARROW_LAKE = replace(
    Isa.of("x86-64-v3"), name="x86-64-v3-int8", features="+avxvnniint8", dot=SIGNED
)


def multiply(f: Function, x: Value, w: Value, total: Value, unsigned: bool) -> Value:
    """Four signed bytes of x times four of w, added to the sum of each lane."""
    return f.processor_call("x86.avx2.vpdpbssd.256", total.type, total, w, x)


INSTRUCTIONS[SIGNED.name] = multiply

if __name__ == "__main__":
    module = parse_ir(module_text([IntegerMatmul(ARROW_LAKE)], ARROW_LAKE))
    print(target_machine(ARROW_LAKE).emit_assembly(module))
