"""Max pooling of floats: memory is all that counts, and no border is written around the image."""

from __future__ import annotations

from fewbit.kernels.cuda.arch import Arch
from fewbit.kernels.cuda.convolution import Convolution
from fewbit.kernels.cuda.family import ceil_div
from fewbit.kernels.cuda.nvrtc import compile_source, source
from fewbit.kernels.cuda.plan import Launch, Plan, Pointer

_THREADS = 256


def max_pool_plan(problem: Convolution, arch: Arch) -> Plan:
    """Return the kernel for windows that move as the filters of a depthwise convolution do."""
    vec = next(v for v in (8, 4, 2, 1) if problem.channels % v == 0 and v * problem.unit <= 16)
    text = source("prelude.cu", "max_pool.cu", **problem.defines(), VEC=vec, THREADS=_THREADS)
    blocks = ceil_div(problem.pixels * problem.channels // vec, _THREADS)
    launch = Launch(0, "max_pool", (blocks, 1, 1), _THREADS, (Pointer("x"), Pointer("y")))
    buffers = {name: b for name, b in problem.buffers().items() if name != "w"}
    return Plan("max_pool", arch.code, buffers, (launch,), (compile_source(text, arch).image,))
