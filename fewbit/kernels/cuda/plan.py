"""What a compiled GPU kernel is, and all that is needed to launch it, as plain data.

Sizes are known when a kernel is compiled, so a launch has nothing left to compute: its grid, its
shared memory and its scalars are numbers, and only addresses are filled in. A plan is therefore
data that any program with the CUDA driver can execute, with no compiler and no library of ours;
`driver.py` is such a program, and `Plan.plain` is the form in which a plan lies in an artifact.
"""

from __future__ import annotations

import base64
from dataclasses import asdict, dataclass, field
from math import prod
from typing import Any, Literal

from fewbit.errors import StoreError

BYTES: dict[str, int] = {
    "f32": 4,
    "tf32": 4,
    "f16": 2,
    "bf16": 2,
    "i8": 1,
    "u8": 1,
    "f8": 1,
    "i32": 4,
}


@dataclass(frozen=True)
class Buffer:
    """Memory that a plan reads or writes: `in`, `out`, or `work`, which nothing outside needs."""

    dtype: str
    shape: tuple[int, ...]
    role: Literal["in", "out", "work"] = "in"

    @property
    def bytes(self) -> int:
        return prod(self.shape) * BYTES[self.dtype]


@dataclass(frozen=True)
class Pointer:
    """An argument: the address of a buffer, or of a place in it."""

    buffer: str
    offset: int = 0
    """In bytes."""


@dataclass(frozen=True)
class Scalar:
    """An argument: a number."""

    dtype: Literal["i32", "i64", "f32"]
    value: float


@dataclass(frozen=True)
class TensorMap:
    """An argument of 128 bytes by which the copy engine finds a box of a buffer.

    Dimensions are innermost first. With `corners`, boxes are columns of pixels (im2col): the
    innermost dimension has `box[0]` channels, and `box[1]` pixels are walked in steps of `steps`
    between the corners.
    """

    buffer: str
    dtype: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    """In bytes, of all dimensions but the first."""
    box: tuple[int, ...]
    swizzle: int = 128
    """Bytes among which 16-byte pieces are permuted, so that columns are read without conflicts."""
    corners: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    steps: tuple[int, ...] = ()
    offset: int = 0
    """Bytes of the buffer that lie before."""


Argument = Pointer | Scalar | TensorMap


@dataclass(frozen=True)
class Launch:
    """One kernel of a plan's image, on a grid."""

    image: int
    symbol: str
    grid: tuple[int, int, int]
    block: int | tuple[int, int, int]
    """Its threads."""
    arguments: tuple[Argument, ...]
    shared: int = 0
    """Bytes of dynamic shared memory."""
    cluster: int = 1
    """Blocks, along the grid's first dimension, that share their shared memories."""
    early: bool = False
    """Whether it may begin while the launch before ends, for which it then waits by itself."""


@dataclass(frozen=True)
class Plan:
    """Machine code, buffers and launches that compute one op."""

    name: str
    arch: str
    buffers: dict[str, Buffer]
    launches: tuple[Launch, ...]
    images: tuple[bytes, ...] = field(repr=False)

    def plain(self) -> dict[str, Any]:
        """Return what JSON can hold; images as base64."""
        plain = asdict(self)
        plain["images"] = [base64.b64encode(image).decode() for image in self.images]
        for launch, ours in zip(plain["launches"], self.launches, strict=True):
            for argument, kind in zip(launch["arguments"], ours.arguments, strict=True):
                argument["kind"] = type(kind).__name__
        return plain

    @staticmethod
    def of(plain: dict[str, Any]) -> Plan:
        """Return the plan that `plain` describes."""
        try:
            return Plan(
                plain["name"],
                plain["arch"],
                {
                    name: Buffer(b["dtype"], tuple(b["shape"]), b["role"])
                    for name, b in plain["buffers"].items()
                },
                tuple(_launch(launch) for launch in plain["launches"]),
                tuple(base64.b64decode(image, validate=True) for image in plain["images"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise StoreError(
                f"this is no plan of GPU kernels: {error}", hint="compile it again"
            ) from error


def _launch(plain: dict[str, Any]) -> Launch:
    x, y, z = plain["grid"]
    return Launch(
        plain["image"],
        plain["symbol"],
        (x, y, z),
        _tuples(plain["block"]),
        tuple(_argument(argument) for argument in plain["arguments"]),
        plain["shared"],
        plain["cluster"],
        plain.get("early", False),
    )


def _argument(plain: dict[str, Any]) -> Argument:
    kind = {"Pointer": Pointer, "Scalar": Scalar, "TensorMap": TensorMap}[plain["kind"]]
    return kind(**{name: _tuples(value) for name, value in plain.items() if name != "kind"})


def _tuples(value: Any) -> Any:
    if not isinstance(value, (list, tuple)):
        return value
    parts: list[Any] = list(value)  # pyright: ignore[reportUnknownArgumentType]
    return tuple(_tuples(part) for part in parts)
