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
THREADS = 512
_CLUSTERS = (8, 4, 2, 1)
_MOST_SHARED = 48 * 1024
_PIECES = 4
"""How many of keys and values are in shared memory at a time; at most so many bytes."""
_MOST_OF_TILES = 64 * 1024
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


def refuse(problem: CachedAttention, arch: Arch) -> str | None:
    if problem.dtype not in ("f16", "f32"):
        return "keys and values are no f16 or f32"
    if problem.width % 2 or problem.width > _WIDEST:
        return "heads have no pairs of channels, or too many"
    if problem.tokens % BLOCK:
        return "keys are no whole blocks"
    if problem.rows > _MOST_ROWS or _shared(problem) > _MOST_SHARED:
        return "there are too many rows"
    given = 4 * max(_CLUSTERS) * problem.rows * (problem.width + 2)
    if not arch.fits(_tiles(problem, 1) + given + _shared(problem)):
        return "a piece of keys and values is too large"
    return None


def _shared(problem: CachedAttention) -> int:
    """Return the bytes of what is declared in shared memory."""
    tokens = _PIECES * BLOCK
    each = problem.width + tokens + tokens // 16 + max(_CLUSTERS)
    return 4 * (problem.rows * each + THREADS // 16)


def _pieces(problem: CachedAttention, arch: Arch) -> int:
    """Return how many pieces of keys and values are in shared memory at a time."""
    size = 2 * BLOCK * problem.width * (2 if problem.dtype == "f16" else 4)
    return max(1, min(_PIECES, min(_MOST_OF_TILES, arch.shared // 2) // size))


def _tiles(problem: CachedAttention, pieces: int) -> int:
    """Return the bytes of keys and values, and, later, of sums of groups of threads."""
    size = 2 if problem.dtype == "f16" else 4
    sums = THREADS // (problem.width // 2) * problem.rows * problem.width * 4
    return max(2 * pieces * BLOCK * problem.width * size, sums)


def cached_attention_plan(
    problem: CachedAttention,
    arch: Arch,
    prologue: Prologue | None = None,
    early: bool = False,
) -> Plan:
    """Return the plan; `early` where the launch before leaves the cache and the mask alone."""
    blocks = ceil_div(problem.tokens, BLOCK)
    sizes = _CLUSTERS if arch.has_warpgroups else (1,)
    cluster = next(size for size in sizes if blocks % size == 0)
    pieces = _pieces(problem, arch)
    tiles_at = ceil_div(prologue.shared, 128) * 128 if prologue else 0
    got_at = tiles_at + _tiles(problem, pieces)
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
        THREADS=THREADS,
        PIECES=pieces,
        TILES_AT=tiles_at,
        GOT_AT=got_at,
        **({"EARLY": 1} if early and arch.has_warpgroups else {}),
    )
    names = ("k", "v", "seen", "y") if prologue else ("q", "k", "v", "seen", "y")
    names += prologue.arguments if prologue else ()
    launch = Launch(
        0,
        "cached_attention",
        (problem.heads * cluster, 1, 1),
        THREADS,
        tuple(Pointer(name) for name in names),
        got_at + 4 * cluster * problem.rows * (problem.width + 2),
        cluster,
    )
    if prologue is not None:
        text = prologue.before(text, THREADS)
    image = compile_source(text, arch, "--fmad=false").image
    return Plan("cached_attention", arch.code, problem.buffers(), (launch,), (image,))
