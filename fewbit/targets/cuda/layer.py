"""What a call of a GPU kernel computes, but for sizes, which its memory tells."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Literal

from fewbit.kernels.cuda.unfold import Unfold
from fewbit.numerics.widths import Width

Precision = Literal["f32", "tf32", "f16"]
"""How floats are multiplied."""

Kind = Literal["conv2d", "max_pool", "unfold", "few_bit", "attention", "cached_attention"]


@dataclass(frozen=True)
class View:
    """Where the elements of a tensor are in the memory that a call is given."""

    offset: int
    strides: tuple[int, ...]


@dataclass(frozen=True)
class Layer:
    """A call of a kernel. The last operand is the result; these are before it.

    | kind | operands |
    |---|---|
    | `conv2d` | x, the weight (channels-last), a bias and a tensor to add if there are any |
    | `max_pool`, `unfold` | x |
    | `few_bit` | x, integers N x K, scales if `scaled`, and those of rows of x if `by_rows` |
    | `attention` | queries, keys, values |
    | `cached_attention` | queries, keys, values, and which are seen |
    """

    name: str
    kind: Kind
    dtype: str
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1
    window: tuple[int, int] = (1, 1)
    """The window of pooling, which has no weight."""
    bias: bool = False
    add: bool = False
    low: float = -inf
    high: float = inf
    width: Width | None = None
    """The width of few-bit weights."""
    scaled: bool = False
    by_rows: bool = False
    causal: bool = False
    scale: float = 1.0
    """What scores of attention to a cache are multiplied by."""
    views: tuple[View | None, ...] = ()
    """Views of queries, keys and values, where they are parts of the operands."""
    shapes: tuple[tuple[int, ...], ...] = ()
    """Shapes of queries, keys and values."""
    spread: Unfold | None = None
    """How the image of a convolution, and its filters, are unfolded, for one image."""
