"""Attention as one problem: softmax(q kᵀ · scale) v for many heads."""

from __future__ import annotations

from dataclasses import dataclass

from fewbit.errors import ShapeError, UsageError
from fewbit.kernels.cuda.plan import Buffer


@dataclass(frozen=True)
class Attention:
    """q and y are [batch, heads, queries, size], k and v are [batch, kv_heads, keys, size].

    `ragged`: sequence b has `lengths[b]` keys. `causal`: a query sees no keys after it, the last
    query seeing all. Keys and values of 8 bits have a scale for each key (`k_scale`, `v_scale`).
    """

    batch: int
    heads: int
    queries: int
    keys: int
    size: int
    causal: bool = False
    ragged: bool = False
    dtype: str = "f16"
    kv_dtype: str = ""
    kv_heads: int = 0
    strides: tuple[tuple[int, int, int], ...] = ()
    """Strides of q, k, v and y, in elements, of batches, heads and rows; contiguous by default."""

    def __post_init__(self) -> None:
        if not self.kv_dtype:
            object.__setattr__(self, "kv_dtype", self.dtype)
        if not self.kv_heads:
            object.__setattr__(self, "kv_heads", self.heads)
        if self.dtype not in ("f16", "bf16"):
            raise UsageError(f"attention is not computed in {self.dtype}", hint="f16 or bf16")
        if self.kv_dtype not in (self.dtype, "i8", "f8"):
            raise UsageError(f"keys cannot be {self.kv_dtype} beside queries of {self.dtype}")
        if self.heads % self.kv_heads:
            raise ShapeError(f"{self.heads} heads cannot share {self.kv_heads} heads of keys")
        if not 1 <= self.size <= 128:
            raise ShapeError(f"heads of {self.size} values: there are kernels for up to 128")

    @property
    def scale(self) -> float:
        return self.size**-0.5

    @property
    def operations(self) -> int:
        seen = self.queries * self.keys
        if self.causal:
            seen = seen - self.queries * (self.queries - 1) // 2
        return 4 * self.batch * self.heads * seen * self.size

    @property
    def bytes(self) -> int:
        return sum(buffer.bytes for buffer in self.buffers().values())

    def strides_of(self, name: str) -> tuple[int, int, int]:
        """Return the strides of batches, heads and rows of `q`, `k`, `v` or `y`."""
        if self.strides:
            return self.strides["qkvy".index(name)]
        length, heads = self.queries, self.heads
        if name in "kv":
            length, heads = self.keys, self.kv_heads
        return heads * length * self.size, length * self.size, self.size

    def buffers(self) -> dict[str, Buffer]:
        rows = (self.batch, self.heads, self.queries, self.size)
        keys = (self.batch, self.kv_heads, self.keys, self.size)
        buffers = {
            "q": Buffer(self.dtype, rows),
            "k": Buffer(self.kv_dtype, keys),
            "v": Buffer(self.kv_dtype, keys),
            "lengths": Buffer("i32", (self.batch if self.ragged else 1,)),
            "y": Buffer(self.dtype, rows, "out"),
        }
        if self.kv_dtype != self.dtype:
            buffers |= {name: Buffer("f32", keys[:3]) for name in ("k_scale", "v_scale")}
        return buffers

    def __str__(self) -> str:
        more = [",causal"] * self.causal + [",ragged"] * self.ragged
        shared = f",kv{self.kv_heads}" if self.kv_heads != self.heads else ""
        kv = f",{self.kv_dtype}" if self.kv_dtype != self.dtype else ""
        sizes = f"{self.batch}x{self.heads}x{self.queries}x{self.keys}x{self.size}"
        return sizes + shared + kv + "".join(more)
