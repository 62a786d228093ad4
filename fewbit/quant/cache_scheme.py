"""What a language model keeps keys and values of tokens as: `f16`, `q8`, `q4h64`.

Like attention, a cache is no layer with a weight, so it has a scheme of its own; a recipe says it
beside its layers, `w4a8g32,cache=q8`. `h64` rotates keys and values in blocks of 64 channels before
they are rounded. `docs/numerics.md` has the formulas.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from xdsl.dialects.builtin import ModuleOp, StringAttr

from fewbit.errors import UsageError
from fewbit.numerics.hadamard import check_size

NOTED = "fewbit.cache"
"""The attribute of a module that keeps keys and values."""
KINDS = ("f32", "f16", "q8", "q4")
Kind = Literal["f32", "f16", "q8", "q4"]
SPELLED = "f32, f16, q8, q4, q8h64, q4h64"
"""Schemes that there are; a rotation may have other blocks."""
_TEXT = re.compile(rf"(?P<kind>{'|'.join(KINDS)})(h(?P<hadamard>[0-9]{{1,9}}))?")


@dataclass(frozen=True)
class CacheScheme:
    """Floats, or integers of 8 or 4 bits, of which a rotation may take the outliers."""

    kind: Kind = "f32"
    hadamard: int | None = None

    def __post_init__(self) -> None:
        if self.hadamard is None:
            return
        if not self.is_quantized:
            raise UsageError(
                f"a rotation of keys and values that stay {self.kind}", hint=f"there are {SPELLED}"
            )
        check_size(self.hadamard)

    @property
    def is_quantized(self) -> bool:
        return self.kind in ("q8", "q4")

    @staticmethod
    def of(value: CacheSchemeLike) -> CacheScheme:
        """The scheme written as a text, or itself."""
        if isinstance(value, CacheScheme):
            return value
        match = _TEXT.fullmatch(value.strip().lower())
        if match is None:
            raise UsageError(
                f"keys and values are not kept as '{value}'", hint=f"there are {SPELLED}"
            )
        block = match["hadamard"]
        return CacheScheme(cast(Kind, match["kind"]), None if block is None else int(block))

    @staticmethod
    def is_one(text: str) -> bool:
        """Return whether a text is such a scheme."""
        return _TEXT.fullmatch(text.strip().lower()) is not None

    def __str__(self) -> str:
        return self.kind if self.hadamard is None else f"{self.kind}h{self.hadamard}"


CacheSchemeLike: TypeAlias = CacheScheme | str
F32 = CacheScheme("f32")
F16 = CacheScheme("f16")


def note_cache(module: ModuleOp, scheme: CacheScheme) -> None:
    """Note what a program keeps keys and values as."""
    module.attributes[NOTED] = StringAttr(str(scheme))


def check_noted(module: ModuleOp, asked: CacheScheme | None) -> None:
    """Refuse a scheme that a program was not imported with."""
    if asked is None:
        return
    noted = module.attributes.get(NOTED)
    if not isinstance(noted, StringAttr):
        raise UsageError(
            f"the recipe says 'cache={asked}', and the program keeps no keys and values of ours",
            hint="leave it out; it is for checkpoints of language models",
        )
    if noted.data != str(asked):
        raise UsageError(
            f"the recipe says 'cache={asked}', and the program has a cache of {noted.data}",
            hint=f"import the model so: import_model(path, cache='{asked}')",
        )
