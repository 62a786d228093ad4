"""Few-bit matmuls of few rows whose blocks make the rows themselves."""

from __future__ import annotations

from fewbit.kernels.cuda.arch import Arch
from fewbit.kernels.cuda.family import Config, ceil_div
from fewbit.kernels.cuda.few_bit import FEW_BIT, FewBitMatmul, few_bit_defines
from fewbit.kernels.cuda.nvrtc import compile_source, source
from fewbit.kernels.cuda.plan import Launch, Plan, Pointer
from fewbit.kernels.cuda.prologue import Prologue

_ROWS = 8
"""Rows of x: one matmul of the tensor cores."""
_WARPS = 16
_MOST_WORDS = 64
"""Registers of a lane for weights."""
_THREADS = 768
"""Threads that make x in the fewest turns: so many at most, as registers are few…"""
_LEAST_THREADS = 512
"""…and as the matmul has warps at least."""
_WAVES = 2
"""Blocks of a multiprocessor at most: each makes all of x."""


def fused_config(problem: FewBitMatmul, arch: Arch) -> Config | None:
    """Return the settings for a problem; None where it is no use to make x in every block."""
    if problem.m > _ROWS or problem.padded_k != problem.k:
        return None
    if FEW_BIT.refuse(problem, arch) is not None:
        return None
    units = problem.k // problem.depth
    rows = 1 if problem.blocks <= arch.multiprocessors else 2
    share = ceil_div(units, _WARPS)
    blocks = ceil_div(problem.blocks, rows)
    if blocks > _WAVES * arch.multiprocessors or rows * share * problem.words > _MOST_WORDS:
        return None
    turns = ceil_div(problem.m * problem.k, _THREADS)
    threads = max(_LEAST_THREADS, ceil_div(ceil_div(problem.m * problem.k, turns), 32) * 32)
    shape = {"bm": _ROWS, "warps_n": 1, "warps_k": _WARPS, "rows": rows}
    return {**shape, "cluster": 1, "stages": 0, "threads": threads}


def fused_plan(problem: FewBitMatmul, config: Config, arch: Arch, prologue: Prologue) -> Plan:
    outputs, threads = config["rows"] * 16, config["threads"]
    sums_at = ceil_div(prologue.shared, 128) * 128
    text = source(
        "prelude.cu",
        "few_bit_lanes.cu",
        "few_bit_fused.cu",
        **few_bit_defines(problem, config),
        SUMS_AT=sums_at,
        BLOCK=threads,
    )
    # Loops must not be contracted; where sums of the matmul are, the kernel says so itself.
    image = compile_source(prologue.before(text, threads), arch, "--fmad=false").image
    # The prologue may make the scales of rows, too: then nothing is read there.
    made = dict(prologue.places)
    rows = "scale" if "row_scale" in made else "row_scale"
    names = ("q", "scale", "y", rows, *prologue.arguments)
    shared = sums_at + config["warps_k"] * problem.m * (outputs + 4) * 4
    launch = Launch(
        0,
        "few_bit",
        (ceil_div(problem.n, outputs), 1, 1),
        threads,
        tuple(Pointer(name) for name in names),
        shared,
    )
    return Plan("few_bit", arch.code, problem.buffers(), (launch,), (image,))
