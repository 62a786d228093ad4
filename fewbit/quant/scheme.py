"""How one layer is quantized, and the short text for it: `w4a8`, `w4a8g128`, `w8a8h64-static`.

Every scheme has exactly one canonical text, and equal texts mean equal schemes; files, caches and
reports use that text. Options that could have no effect (a group size without a few-bit weight, a
static scale for float activations) are errors, so that a scheme never says more than is done.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Annotated, Any, TypeAlias, cast

import numpy as np
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ModelWrapValidatorHandler,
    ValidationError,
    model_serializer,
    model_validator,
)

from fewbit.errors import UsageError
from fewbit.numerics import Granularity, Quantized, ScaleType, WeightMode, Width, quantize_weight
from fewbit.numerics.fitted_scales import FITTED, check_fitted
from fewbit.numerics.formulas import check_asymmetric
from fewbit.numerics.hadamard import check_rotation, check_size, rotate
from fewbit.numerics.quantized import check_offset_width

FLOAT = "fp"
"""How a tensor that stays float is written in place of a width."""

_GRAMMAR = (
    "write 'w<bits>a<bits>', then perhaps 'g<size>', 'h<size>' and '-tensor', '-mean', '-mse', "
    "'-signed', '-offset', '-f16', '-blocks', '-static', '-asym'"
)
_TEXT = re.compile(
    r"w(?P<weight>fp|[0-9.]+)a(?P<act>fp|[0-9.]+)(g(?P<group>[0-9]{1,9}))?"
    r"(h(?P<hadamard>[0-9]{1,9}))?(?P<words>(-[a-z0-9]*)*)"
)
_FAMILIAR = {
    ("float", "float32", "f32", "fp32", "none"): FLOAT,
    ("int8", "i8", "8bit", "w8"): "w8a8",
    ("int4", "i4", "4bit", "w4", "q4"): "w4a8",
    ("ternary",): "w1.58a8",
    ("binary",): "w1a8",
}
"""What other tools and papers call such schemes, and what is nearest to it here."""
_WORDS: dict[str, tuple[str, object]] = {
    "tensor": ("granularity", "tensor"),
    "mean": ("mode", "mean"),
    "mse": ("mode", "mse"),
    "signed": ("mode", "signed-max"),
    "offset": ("mode", "offset"),
    "f16": ("scales", "f16"),
    "blocks": ("blocks", True),
    "static": ("static", True),
    "asym": ("symmetric", False),
}


def read_width(value: object) -> Width | None:
    """A width as users write it: 4, 1.58, "4", "fp"; None is float too."""
    if value is None or value == FLOAT:
        return None
    if isinstance(value, str) and re.fullmatch(r"\d+(\.\d+)?", value):
        value = float(value)
    return Width.of(cast(Any, value))


_Width: TypeAlias = Annotated[Width | None, BeforeValidator(read_width)]


class LayerScheme(BaseModel):
    """Widths of a layer's weight and activations (None stays float), and how scales are taken.

    `granularity`, `group`, `mode` and the type of `scales` concern the weight. `static` activations
    take their scale from calibration. Asymmetric means zero points: for the weight, and for static
    activations. With `hadamard`, both are rotated in blocks of that size before they are quantized.
    With `blocks`, activations have a scale for each group of the weight, in place of one a row.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, arbitrary_types_allowed=True
    )

    weight: _Width = None
    act: _Width = None
    granularity: Granularity = "channel"
    group: int | None = None
    hadamard: int | None = None
    mode: WeightMode = "max"
    scales: ScaleType = "f32"
    blocks: bool = False
    static: bool = False
    symmetric: bool = True

    @staticmethod
    def of(value: SchemeLike) -> LayerScheme:
        """The scheme written as a text, as a mapping of its fields, or itself."""
        return LayerScheme.model_validate(value)

    @property
    def is_float(self) -> bool:
        """Whether the layer stays as it is."""
        return self.weight is None and self.act is None

    @property
    def act_group(self) -> int | None:
        """The size of groups for which activations have scales; None for whole rows."""
        return self.group if self.blocks else None

    def quantize_weight(self, weight: Any) -> Quantized:
        """`fewbit.numerics.quantize_weight` with this scheme's choices, of a rotated weight."""
        if self.weight is None:
            raise UsageError(f"the scheme '{self}' leaves the weight in floating point")
        check_rotation(self.hadamard, np.shape(weight))
        check_offsets(self, np.shape(weight))
        return quantize_weight(
            rotate(weight, self.hadamard),
            self.weight,
            mode=self.mode,
            granularity=self.granularity,
            group=self.group,
            symmetric=self.symmetric,
            scales=self.scales,
        )

    def __str__(self) -> str:
        if self.is_float:
            return FLOAT
        widths = f"w{self.weight or FLOAT}a{self.act or FLOAT}"
        group = "" if self.group is None else f"g{self.group}"
        rotation = "" if self.hadamard is None else f"h{self.hadamard}"
        words = [word for word, (field, value) in _WORDS.items() if getattr(self, field) == value]
        return "-".join([widths + group + rotation, *words])

    @model_serializer
    def _serialize(self) -> str:
        return str(self)

    @model_validator(mode="wrap")
    @classmethod
    def _read(cls, data: Any, handler: ModelWrapValidatorHandler[LayerScheme]) -> LayerScheme:
        if isinstance(data, LayerScheme):
            return data
        if isinstance(data, str):
            data = _fields_of(data)
        if not isinstance(data, Mapping):
            raise UsageError(f"{data!r} is not a scheme", hint=_GRAMMAR)
        fields = dict(cast(Mapping[str, Any], data))
        if fields.get("group") is not None:
            fields.setdefault("granularity", "group")
        try:
            return handler(fields)
        except ValidationError as error:
            raise _explain(error) from None

    @model_validator(mode="after")
    def _check(self) -> LayerScheme:
        for what, hint in _problems(self):
            raise UsageError(what, hint=hint)
        if not self.symmetric:
            _check_zero_points(self)
        return self


SchemeLike: TypeAlias = LayerScheme | str | Mapping[str, Any]


def check_offsets(scheme: LayerScheme, shape: tuple[int, ...]) -> None:
    """Refuse offsets of a weight that is no matrix."""
    if scheme.mode == "offset" and len(shape) != 2:
        raise UsageError(
            f"the scheme '{scheme}' is for linear layers and tables, not for convolutions",
            hint="name those layers in the recipe: 'w4a8g32-offset,conv1=w8a8'",
        )


def check_blocks(scheme: LayerScheme, shape: tuple[int, ...]) -> None:
    """Refuse scales for groups of activations where the weight is no matrix with such groups."""
    if not scheme.blocks:
        return
    if len(shape) != 2:
        raise UsageError(
            f"the scheme '{scheme}' is for linear layers, not for convolutions",
            hint="name those layers in the recipe: 'w4a8g32-blocks,conv1=w8a8'",
        )
    if scheme.weight is None:
        raise UsageError(
            "activations in blocks beside a weight that stays float",
            hint="blocks are the groups of the weight: 'w4a8g32-blocks'",
        )


def _hint_for(text: str) -> str:
    """Return how a scheme is written; for what other tools call theirs, the scheme itself."""
    known = next((scheme for names, scheme in _FAMILIAR.items() if text in names), None)
    if known is not None:
        return f"write '{known}'"
    return f"{_GRAMMAR}; or 'fp' for float"


def _fields_of(text: str) -> dict[str, object]:
    plain = text.strip().lower()
    if plain == FLOAT:
        return {}
    match = _TEXT.fullmatch(plain)
    if match is None:
        raise UsageError(f"'{text}' is not a scheme", hint=_hint_for(plain))
    fields: dict[str, object] = {"weight": match["weight"], "act": match["act"]}
    fields |= {name: int(match[name]) for name in ("group", "hadamard") if match[name]}
    for word in match["words"].split("-")[1:]:
        if word not in _WORDS:
            raise _unknown(f"option '-{word}'", word, _WORDS)
        field, value = _WORDS[word]
        if field in fields:
            raise UsageError(f"'{text}' says '{field}' twice")
        fields[field] = value
    if "group" in fields and "granularity" in fields:
        raise UsageError(f"'{text}' asks for groups and for one scale", hint="choose one of them")
    return fields


def _problems(scheme: LayerScheme) -> Iterator[tuple[str, str]]:
    """Return what a scheme says that could have no effect, or contradicts itself."""
    if (scheme.group is not None) != (scheme.granularity == "group"):
        yield (
            f"granularity '{scheme.granularity}' with group {scheme.group}",
            "a group size goes with granularity 'group', and only with it",
        )
    if scheme.group is not None and scheme.group < 1:
        yield f"a group of {scheme.group} elements", "groups have at least one element"
    few_bit = scheme.weight is not None
    if scheme.hadamard is not None:
        check_size(scheme.hadamard)
        if not few_bit:
            yield "a rotation of a weight that stays float", "give the weight a width: 'w8a8h64'"
    if not few_bit and (scheme.granularity, scheme.mode) != ("channel", "max"):
        yield "options for a weight that stays float", "give the weight a width, or leave them out"
    if scheme.scales == "f16" and scheme.group is None:
        yield "scales of f16 of a weight without groups", "give groups a size: 'w4a8g32-f16'"
    if scheme.scales == "f16" and not scheme.symmetric:
        yield "scales of f16 beside zero points", "leave '-asym' out: 'w4a8g32-offset-f16'"
    if scheme.blocks:
        yield from _block_problems(scheme)
    if scheme.act is None and scheme.static:
        yield "static scales for activations that stay float", "give them a width: 'w4a8-static'"
    if scheme.symmetric:
        if scheme.weight is not None and scheme.mode in FITTED:
            check_fitted(scheme.weight, scheme.mode)
        if scheme.weight is not None and scheme.mode == "offset":
            check_offset_width(scheme.weight)
            if scheme.group is None:
                yield "offsets of a weight without groups", "give groups a size: 'w4a8g32-offset'"
        return
    if not few_bit and not scheme.static:
        yield "nothing here can be asymmetric", "weights and static activations have zero points"
    if scheme.mode != "max":
        yield f"an asymmetric weight has no mode '{scheme.mode}'", "its scale comes from max - min"


def _block_problems(scheme: LayerScheme) -> Iterator[tuple[str, str]]:
    if scheme.act is None:
        yield "blocks of activations that stay float", "give them a width: 'w4a8g32-blocks'"
    if scheme.static:
        yield "static scales for blocks of activations", "blocks have scales of their own"
    if scheme.weight is not None and scheme.group is None:
        yield (
            "activations in blocks beside a weight without groups",
            "blocks are the groups of the weight: 'w4a8g32-blocks'",
        )


def _check_zero_points(scheme: LayerScheme) -> None:
    for width in (scheme.weight, scheme.act if scheme.static else None):
        if width is not None:
            check_asymmetric(width)


def _explain(error: ValidationError) -> UsageError:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return _unknown(f"field '{where}'", where, LayerScheme.model_fields)
    got = f", not {first['input']!r}" if isinstance(first["input"], str | int | float) else ""
    message = first["msg"].removeprefix("Input ")
    return UsageError(f"a scheme's '{where}' {message}{got}", hint=_GRAMMAR)


def _unknown(what: str, name: str, known: Mapping[str, object]) -> UsageError:
    close = get_close_matches(name, known, n=1)
    hint = f"did you mean '{close[0]}'?" if close else f"there are {', '.join(known)}"
    return UsageError(f"a scheme has no {what}", hint=hint)
