"""Attention of a step: a few queries, and keys and values that a cache holds, under a mask.

All that there is room for belongs to the problem, and what no query sees is not read. Keys are
transposed in blocks of 64 tokens, as caches of language models keep them.
"""

from __future__ import annotations

from dataclasses import dataclass

from fewbit.kernels.cuda.arch import Arch
from fewbit.kernels.cuda.convolution import element
from fewbit.kernels.cuda.family import ceil_div
from fewbit.kernels.cuda.nvrtc import compile_source, source
from fewbit.kernels.cuda.plan import Buffer, Launch, Plan, Pointer
from fewbit.kernels.cuda.prologue import Prologue

BLOCK = 64
"""Tokens of a block of keys."""
_THREADS = 256
_CLUSTERS = (8, 4, 2, 1)
_MOST_SHARED = 48 * 1024
_MOST_ROWS = 16
_WIDEST = 128
"""Channels of a head, which a thread has in registers."""


@dataclass(frozen=True)
class CachedAttention:
    """Heads of keys, each with so many rows of queries."""

    heads: int
    rows: int
    tokens: int
    """How many the cache has room for."""
    width: int
    dtype: str
    """The type of keys and values: f16 or f32."""
    scale: float
    """What scores are multiplied by."""

    def buffers(self) -> dict[str, Buffer]:
        kept = (self.heads, self.tokens, self.width)
        queries = (self.heads, self.rows, self.width)
        return {
            "q": Buffer("f32", queries),
            "k": Buffer(self.dtype, kept),
            "v": Buffer(self.dtype, kept),
            "seen": Buffer("u8", (self.rows, self.tokens)),
            "y": Buffer("f32", queries, "out"),
        }

    def __str__(self) -> str:
        return f"h{self.heads},r{self.rows},t{self.tokens},d{self.width}"


def refuse(problem: CachedAttention) -> str | None:
    if problem.dtype not in ("f16", "f32"):
        return "keys and values are no f16 or f32"
    if problem.width % 2 or problem.width > _WIDEST:
        return "heads have no pairs of channels, or too many"
    if problem.tokens % BLOCK:
        return "keys are no whole blocks"
    if problem.rows > _MOST_ROWS or _shared(problem) > _MOST_SHARED:
        return "there are too many rows"
    return None


def _shared(problem: CachedAttention) -> int:
    groups = _THREADS // (problem.width // 2)
    return 4 * problem.rows * (problem.width * (groups + 2) + _THREADS + _THREADS // 16 + 2)


def cached_attention_plan(
    problem: CachedAttention, arch: Arch, prologue: Prologue | None = None
) -> Plan:
    blocks = ceil_div(problem.tokens, BLOCK)
    sizes = _CLUSTERS if arch.has_warpgroups else (1,)
    cluster = next(size for size in sizes if blocks % size == 0)
    text = source(
        "prelude.cu",
        *(["hopper.cu"] if cluster > 1 else []),
        "cached_attention.cu",
        **element(problem.dtype),
        HEADS=problem.heads,
        ROWS=problem.rows,
        TOKENS=problem.tokens,
        WIDTH=problem.width,
        SCALE=f"{problem.scale!r}f",
        INFINITE="__int_as_float(0x7f800000)",
        CLUSTER=cluster,
        THREADS=_THREADS,
    )
    names = ("k", "v", "seen", "y") if prologue else ("q", "k", "v", "seen", "y")
    names += prologue.arguments if prologue else ()
    launch = Launch(
        0,
        "cached_attention",
        (problem.heads * cluster, 1, 1),
        _THREADS,
        tuple(Pointer(name) for name in names),
        prologue.shared if prologue else 0,
        cluster,
    )
    if prologue is not None:
        text = prologue.before(text, _THREADS)
    image = compile_source(text, arch, "--fmad=false").image
    return Plan("cached_attention", arch.code, problem.buffers(), (launch,), (image,))
