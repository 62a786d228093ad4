"""Triton kernels to machine code, without a GPU.

Triton usually compiles when a kernel is first called; here it is asked to compile for a generation,
and gives a cubin that the driver loads like any other. Sizes are constants, so what is left of the
arguments are addresses, and two pointers to scratch memory that these kernels do not use.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from fewbit.errors import MissingToolError
from fewbit.kernels.cuda.arch import Arch
from fewbit.kernels.cuda.plan import Argument, Launch, Scalar

_TYPES = {
    "f32": "fp32",
    "tf32": "fp32",
    "f16": "fp16",
    "bf16": "bf16",
    "i8": "i8",
    "i32": "i32",
    "f8": "fp8e4nv",
}


@dataclass(frozen=True)
class TritonKernel:
    """A compiled kernel and what a launch of it needs."""

    image: bytes
    symbol: str
    warps: int
    shared: int

    def launch(
        self, image: int, grid: tuple[int, int, int], arguments: tuple[Argument, ...]
    ) -> Launch:
        scratch = (Scalar("i64", 0), Scalar("i64", 0))
        threads = self.warps * 32
        return Launch(image, self.symbol, grid, threads, (*arguments, *scratch), self.shared)


def pointer(dtype: str) -> str:
    """Return the signature of a pointer to elements of a type."""
    return "*" + _TYPES[dtype]


def compile_triton(
    module: str,
    function: str,
    signature: dict[str, str],
    constants: dict[str, Any],
    arch: Arch,
    *,
    warps: int,
    stages: int,
) -> TritonKernel:
    """Compile a function of a module in `triton_kernels`; constants need no signature."""
    try:
        triton: Any = import_module("triton")
        compiler: Any = import_module("triton.compiler")
        backends: Any = import_module("triton.backends.compiler")
    except ImportError as error:
        raise MissingToolError(
            "these kernels are compiled by Triton, which is not installed",
            hint="pip install 'fewbit[cuda]'",
        ) from error
    jit: Any = getattr(import_module(f"fewbit.kernels.cuda.triton_kernels.{module}"), function)
    order = list(jit.arg_names)
    aligned = {
        (order.index(name),): [["tt.divisibility", 16]]
        for name, kind in signature.items()
        if kind.startswith("*")
    }
    typed = {name: signature.get(name, "constexpr") for name in order}
    source = compiler.ASTSource(jit, typed, constants, aligned)
    target = backends.GPUTarget("cuda", arch.compute, 32)
    kernel = triton.compile(
        source, target=target, options={"num_warps": warps, "num_stages": stages}
    )
    return TritonKernel(kernel.asm["cubin"], kernel.metadata.name, warps, kernel.metadata.shared)
