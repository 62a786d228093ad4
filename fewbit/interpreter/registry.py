"""The semantics of ops: one function per op class.

`@register(AddOp)` on a function `(frame, op, operands) -> results` defines the semantics of an op,
for fewbit's dialects and for dialects outside the tree alike; those name the module that registers
in the entry point group `fewbit.interpreter`. A class inherits the semantics of its base class.
Semantics that are `elementwise` also work on arrays in place of scalars, which lets bodies of
linalg ops run once on whole tensors instead of once per element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from xdsl.ir import Block, Operation

from fewbit.errors import InterpretError
from fewbit.interpreter.values import Value

if TYPE_CHECKING:
    from fewbit.interpreter.interpreter import Frame

ENTRY_POINTS = "fewbit.interpreter"

OWN = (
    "affine", "arith", "builtin", "cf", "func", "graph", "kernel", "linalg",
    "math", "mico", "ml_program", "scf", "tensor", "tm_tensor",
)  # fmt: skip

OpT = TypeVar("OpT", bound=Operation)


@dataclass(frozen=True)
class Leave:
    """A terminator's outcome: the region ends and hands these values to its op."""

    values: tuple[Value, ...]


@dataclass(frozen=True)
class Jump:
    """A terminator's outcome: go on at a block."""

    block: Block
    arguments: tuple[Value, ...]


Outcome: TypeAlias = Sequence[Value] | Leave | Jump
Semantics: TypeAlias = Callable[["Frame", OpT, Sequence[Value]], Outcome]


class _AnySemantics(Protocol):
    def __call__(self, frame: Frame, op: Any, operands: Sequence[Value], /) -> Outcome: ...


@dataclass(frozen=True)
class Entry:
    semantics: _AnySemantics
    elementwise: bool


_ENTRIES: dict[type[Operation], Entry] = {}


def register(
    *ops: type[OpT], elementwise: bool = False
) -> Callable[[Semantics[OpT]], Semantics[OpT]]:
    """Register the semantics of these op classes and of classes derived from them."""

    def add(semantics: Semantics[OpT]) -> Semantics[OpT]:
        for op in ops:
            _ENTRIES[op] = Entry(semantics, elementwise)
        return semantics

    return add


def register_function(op: type[Operation], compute: Callable[..., Any]) -> None:
    """Register an op of scalars as a function of its operands, in their own type."""

    def semantics(frame: Frame, op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
        return (compute(*operands),)

    register(op, elementwise=True)(semantics)


def find(op: Operation) -> Entry | None:
    """Return the semantics of `op`, its own or of the nearest base class, if any."""
    load_all()
    return next((_ENTRIES[base] for base in type(op).__mro__ if base in _ENTRIES), None)


@cache
def load_all() -> None:
    """Import fewbit's own semantics and those of installed plug-ins."""
    for name in OWN:
        import_module(f"fewbit.interpreter.{name}")
    for point in entry_points(group=ENTRY_POINTS):
        try:
            point.load()
        except Exception as e:
            raise InterpretError(
                f"the plug-in '{point.name}' does not load: {type(e).__name__}: {e}",
                hint=f"the entry point group {ENTRY_POINTS} must name a module to import",
            ) from e
