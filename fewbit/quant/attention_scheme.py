"""How attention is quantized: a width for each of query, key, value and score.

Attention is no layer with a weight, so it has a scheme of its own: `q8k8v8s8`, parts left out stay
float. Query and key go together, because q · kᵀ is an integer matmul.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp

from fewbit.dialects.mico import AttentionOp
from fewbit.dialects.mico.constraints import width_attr
from fewbit.errors import UsageError
from fewbit.ir.locations import place_of
from fewbit.numerics import Width
from fewbit.quant.scheme import read_width

_TEXT = re.compile(
    r"(?=.)(q(?P<query>[\d.]+))?(k(?P<key>[\d.]+))?(v(?P<value>[\d.]+))?(s(?P<score>[\d.]+))?"
)


@dataclass(frozen=True)
class AttentionScheme:
    """Widths of query, key, value and softmax scores; None stays float."""

    query: Width | None = None
    key: Width | None = None
    value: Width | None = None
    score: Width | None = None

    def __post_init__(self) -> None:
        if (self.query is None) != (self.key is None):
            raise UsageError(
                "query and key are quantized together", hint="q · kᵀ is an integer matmul"
            )

    @staticmethod
    def of(value: AttentionSchemeLike) -> AttentionScheme:
        """The scheme written as a text, `q8k8v4s8` or `fp`, or itself."""
        if isinstance(value, AttentionScheme):
            return value
        plain = value.strip().lower()
        match = _TEXT.fullmatch("" if plain == "fp" else plain)
        if match is None and plain != "fp":
            raise UsageError(
                f"'{value}' is not a scheme for attention",
                hint="write 'q8k8v8s8', leaving out what stays float, or 'fp'",
            )
        widths = {} if match is None else match.groupdict()
        return AttentionScheme(**{part: read_width(text) for part, text in widths.items()})

    @staticmethod
    def is_one(text: str) -> bool:
        """Return whether a text is a scheme with widths."""
        return _TEXT.fullmatch(text.strip().lower()) is not None

    def __str__(self) -> str:
        widths = ((part.name[0], getattr(self, part.name)) for part in fields(self))
        return "".join(f"{letter}{width}" for letter, width in widths if width) or "fp"


AttentionSchemeLike: TypeAlias = AttentionScheme | str


def quantize_attention(module: ModuleOp, scheme: AttentionScheme) -> None:
    """Give every attention of a program these widths, in place."""
    found = [op for op in module.walk() if isinstance(op, AttentionOp)]
    if not found:
        raise UsageError(
            f"the recipe says attention={scheme}, and the program has no attention",
            hint="leave it out of the recipe",
        )
    for op in found:
        for part in fields(scheme):
            width, name = getattr(scheme, part.name), f"{part.name}_bits"
            if width is not None and getattr(op, name) is not None:
                raise UsageError("the attention is quantized already", place=place_of(op))
            if width is not None:
                op.properties[name] = width_attr(width)
