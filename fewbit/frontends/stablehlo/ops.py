"""A StableHLO module as plain objects: what is read, rewritten and printed again.

xDSL has no StableHLO, and upstream's bindings in the torch-mlir wheel do not know it either, so the
source is held here: functions of ops, attributes as their texts, tensors of static shape. An op
prints itself in MLIR's generic form, which is how it reaches the binary that lowers it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.dialects import builtin
from xdsl.ir import Attribute

DTYPES: dict[str, Any] = {
    "f32": np.float32,
    "f64": np.float64,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "ui8": np.uint8,
    "ui16": np.uint16,
    "ui32": np.uint32,
    "ui64": np.uint64,
}
"""Elements that a program can hold, as numpy has them."""

_FLOATS: dict[str, Attribute] = {
    "f32": builtin.f32,
    "f64": builtin.f64,
    "f16": builtin.f16,
    "bf16": builtin.bf16,
}
_TENSOR = re.compile(r"tensor<(?P<sizes>(?:\d+x)*)(?P<element>\w+)>")


@dataclass(frozen=True)
class TensorType:
    shape: tuple[int, ...]
    element: str

    @staticmethod
    def parse(text: str) -> TensorType | None:
        """None for what is no tensor of static shape and known elements."""
        match = _TENSOR.fullmatch(text)
        if match is None or match["element"] not in DTYPES:
            return None
        return TensorType(tuple(map(int, match["sizes"].split("x")[:-1])), match["element"])

    def __str__(self) -> str:
        return f"tensor<{''.join(f'{size}x' for size in self.shape)}{self.element}>"

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(DTYPES[self.element])

    @property
    def is_float(self) -> bool:
        return self.element in _FLOATS

    @property
    def is_unsigned(self) -> bool:
        return self.element.startswith("u")

    def signless(self) -> builtin.TensorType[Attribute]:
        """The type in a program, where integers have no signs."""
        element = _FLOATS.get(self.element)
        if element is None:
            element = builtin.IntegerType(int(self.element.lstrip("ui")))
        return builtin.TensorType(element, self.shape)

    def of(self, shape: Sequence[int]) -> TensorType:
        return TensorType(tuple(shape), self.element)

    def transpose(self, order: Sequence[int]) -> TensorType:
        """Dimension i of the result is dimension order[i] of this."""
        return self.of([self.shape[d] for d in order])


@dataclass(eq=False)
class Value:
    """A result of an op or an argument of a block; `type` is a text where it is no tensor."""

    type: TensorType | str
    name: str = ""
    uses: int = 0

    @property
    def tensor(self) -> TensorType:
        assert isinstance(self.type, TensorType)
        return self.type


@dataclass(frozen=True)
class Source:
    """Where an op comes from: the path of scopes that the framework gives, and a line."""

    path: str = ""
    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.file is not None else ""
        return ", ".join(part for part in (place, self.path) if part) or "an unknown line"


@dataclass(eq=False)
class Block:
    arguments: list[Value] = field(default_factory=list[Value])
    ops: list[Op] = field(default_factory=list["Op"])

    @property
    def returned(self) -> list[Value]:
        return self.ops[-1].operands


@dataclass(eq=False)
class Op:
    name: str
    operands: list[Value]
    results: list[Value]
    attributes: dict[str, str] = field(default_factory=dict[str, str])
    regions: list[Block] = field(default_factory=list[Block])
    """Each is one block: StableHLO has no branches inside of regions."""
    source: Source = field(default_factory=Source)

    @property
    def result(self) -> Value:
        return self.results[0]

    @property
    def kind(self) -> str:
        """The name without its dialect."""
        return self.name.rpartition(".")[2]

    def integers(self, name: str, default: Sequence[int] = ()) -> tuple[int, ...]:
        """An attribute that is a list of integers, in any of its spellings."""
        text = self.attributes.get(name)
        return tuple(default) if text is None else integers(text)

    def integer(self, name: str, default: int = 0) -> int:
        text = self.attributes.get(name)
        return default if text is None else int(text.partition(":")[0])

    def word(self, name: str) -> str:
        """The word in an attribute such as `#stablehlo<comparison_direction GT>`, or a text."""
        text = self.attributes.get(name, "")
        if text.startswith('"'):
            return text.strip('"')
        return text.rstrip(">").split(" ")[-1]

    def symbol(self, name: str) -> str:
        return self.attributes.get(name, "").removeprefix("@").strip('"')


def integers(text: str) -> tuple[int, ...]:
    """`array<i64: 1, 2>`, or a dense constant."""
    if text.startswith("array<"):
        listed = text.removeprefix("array<").removesuffix(">").partition(":")[2]
        words = [word.strip() for word in listed.split(",") if word.strip()]
        return tuple(
            int(word == "true") if word in ("true", "false") else int(word) for word in words
        )
    from fewbit.frontends.stablehlo.dense import dense_array

    return tuple(int(number) for number in dense_array(text).reshape(-1))


_LISTED = re.compile(r"(\w+) = (?:\[([\d, ]*)\]|(\d+))")


def numbers_of(text: str) -> dict[str, list[int]]:
    """The lists in an attribute such as `#stablehlo.gather<offset_dims = [1], …>`."""
    return {
        name: [int(d) for d in (listed or single).split(",") if d.strip()]
        for name, listed, single in _LISTED.findall(text)
    }


@dataclass(eq=False)
class Function:
    name: str
    body: Block
    public: bool
    output_names: list[str] = field(default_factory=list[str])


@dataclass(eq=False)
class Module:
    functions: dict[str, Function]
    resources: Mapping[str, bytes] = field(default_factory=dict[str, bytes])

    def entry(self) -> Function | None:
        if "main" in self.functions:
            return self.functions["main"]
        public = [f for f in self.functions.values() if f.public]
        return public[0] if len(public) == 1 else None


def all_ops(block: Block) -> Iterator[Op]:
    """The ops of a block and of the regions in it."""
    for op in block.ops:
        yield op
        for region in op.regions:
            yield from all_ops(region)


def captured_values(op: Op) -> list[Value]:
    """Values from outside that the regions of an op read."""
    inner = [each for region in op.regions for each in all_ops(region)]
    defined = {value for each in inner for value in each.results}
    defined |= {value for region in op.regions for value in region.arguments}
    defined |= {a for each in inner for region in each.regions for a in region.arguments}
    used = dict.fromkeys(operand for each in inner for operand in each.operands)
    return [value for value in used if value not in defined]


def print_op(op: Op, names: dict[Value, str], indent: str = "    ") -> str:
    """The op in generic form; its operands have names already, its results get theirs."""
    for result in op.results:
        names[result] = f"%{len(names)}"
    left = f"{', '.join(names[r] for r in op.results)} = " if op.results else ""
    given = ", ".join(names[operand] for operand in op.operands)
    listed = ", ".join(f"{key} = {text}" for key, text in op.attributes.items())
    properties = f" <{{{listed}}}>" if listed else ""
    regions = ", ".join(_print_region(region, names, indent) for region in op.regions)
    inner = f" ({regions})" if regions else ""
    types = ", ".join(str(operand.type) for operand in op.operands)
    results = ", ".join(str(result.type) for result in op.results)
    return f'{indent}{left}"{op.name}"({given}){properties}{inner} : ({types}) -> ({results})\n'


def _print_region(block: Block, names: dict[Value, str], indent: str) -> str:
    for argument in block.arguments:
        names[argument] = f"%{len(names)}"
    arguments = ", ".join(f"{names[a]}: {a.type}" for a in block.arguments)
    body = "".join(print_op(op, names, indent + "  ") for op in block.ops)
    return f"{{\n{indent}^bb0({arguments}):\n{body}{indent}}}"
