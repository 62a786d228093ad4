"""The table of ONNX ops, and what a call of one is given.

An entry is a function of a `Call`, followed by the call's inputs as tensors. Inputs beyond
`tensors` are not passed: they are shapes, axes and their like, which the function asks the call for
(`ints`), since they must be known while the graph is evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from fewbit.errors import Place, UnsupportedError
from fewbit.frontends.onnx.kinds import natural_kind
from fewbit.frontends.onnx.values import (
    Known,
    Many,
    Size,
    Sizes,
    Traced,
    Value,
    concrete,
    expression_of,
)

if TYPE_CHECKING:
    from fewbit.frontends.onnx.evaluate import Evaluator, Scope
    from fewbit.frontends.onnx.graph import Node

Run = Callable[..., Any]


@dataclass(frozen=True)
class Entry:
    run: Run
    tensors: int | None
    """How many of the leading inputs are passed as tensors; None for all."""
    gives: int | None
    """The element type of results; None for that of the first input."""
    wraps: bool
    """Whether results of few or unsigned bits may be out of their range."""
    any_sign: bool
    """Whether 64 unsigned bits may be computed with as if they had a sign."""
    folds: bool
    """Whether the result is known when all inputs are."""


OPS: dict[tuple[str, str], Entry] = {}


def op(
    *names: str,
    domain: str = "",
    tensors: int | None = None,
    gives: int | None = None,
    wraps: bool = False,
    any_sign: bool = False,
    folds: bool = True,
) -> Callable[[Run], Run]:
    def add(run: Run) -> Run:
        for name in names:
            OPS[domain, name] = Entry(run, tensors, gives, wraps, any_sign, folds)
        return run

    return add


def unary(functions: Mapping[str, Callable[[Tensor], Tensor]]) -> None:
    """Enter ops that are one function of torch, applied element by element."""
    for name, function in functions.items():

        def run(call: Call, x: Tensor, function: Callable[[Tensor], Tensor] = function) -> Tensor:
            return function(x)

        op(name)(run)


class NeedsValueError(UnsupportedError):
    """An input that decides shapes is not known before the program runs."""

    def __init__(self, what: str, place: Place, inputs: Sequence[str]) -> None:
        given = ", ".join(f"'{name}': array" for name in inputs)
        fix = f"give it: import_onnx(path, constants={{{given}}})"
        super().__init__(what, place=place, hint=fix if inputs else "export it as a constant")
        self.inputs = tuple(inputs)
        """The inputs of the model from which it is computed."""


class OneSizeError(UnsupportedError):
    """Two dynamic sizes must be one, and the examples have two."""

    def __init__(self, examples: Sequence[int], place: Place) -> None:
        super().__init__("sizes of inputs that have different names must be one", place=place)
        self.examples = tuple(examples)


class Call:
    """One node with its inputs."""

    def __init__(
        self,
        evaluator: Evaluator,
        node: Node,
        scope: Scope,
        attributes: dict[str, Any],
        inputs: list[Value | None],
        version: int,
        place: Place,
        folding: bool,
    ) -> None:
        self.evaluator = evaluator
        self.node = node
        self.op = node.op
        self.scope = scope
        self.attributes = attributes
        self.inputs = inputs
        self.version = version
        """The version of the op set."""
        self.place = place
        self.folding = folding

    def attr(self, name: str, default: Any = None) -> Any:
        return self.attributes.get(name, default)

    def axis(self, rank: int, default: int) -> int:
        """The attribute `axis` of a tensor of this rank, counted from the front."""
        return int(self.attr("axis", default)) % rank

    def has(self, index: int) -> bool:
        return index < len(self.inputs) and self.inputs[index] is not None

    def input(self, index: int) -> Value | None:
        return self.inputs[index] if index < len(self.inputs) else None

    def kind(self, index: int) -> int:
        value = self.inputs[index]
        if value is None or isinstance(value, Many):
            raise self.refusal(f"input {index} is no tensor")
        return value.kind

    def shape(self, index: int) -> tuple[Size, ...]:
        value = self.inputs[index]
        if value is None or isinstance(value, Many):
            raise self.refusal(f"input {index} is no tensor")
        return value.shape

    def tensor(self, index: int) -> Tensor:
        """An input for the trace; a known one becomes a constant of the program."""
        value = self.input(index)
        if value is None or isinstance(value, Many):
            raise self.refusal(f"input {index} is no tensor")
        return self.evaluator.tensor(value, self.folding)

    def optional(self, index: int) -> Tensor | None:
        return self.tensor(index) if self.has(index) else None

    def known(self, index: int) -> Tensor | None:
        value = self.input(index)
        return value.tensor if isinstance(value, Known) else None

    def constant(self, tensor: Tensor, what: str) -> Tensor:
        """A table that the op needs, made outside of the trace."""
        name = f"{self.scope.prefix}{self.node.outputs[0]}.{what}"
        known = Known(tensor, natural_kind(tensor.dtype), name)
        return self.evaluator.tensor(known, self.folding)

    def result(self, tensor: Tensor, kind: int) -> Known | Traced:
        """A result of this element type; it is known where all inputs are."""
        return Known(tensor, kind) if self.folding else Traced(tensor, kind)

    def ints(self, index: int) -> list[Size]:
        """The integers of an input, which must be known."""
        value = self.input(index)
        if isinstance(value, Sizes):
            return [concrete(item) for item in value.array.flat]
        if isinstance(value, Known):
            return [int(item) for item in value.items()]
        raise self.needs(index)

    def numbers(self, index: int) -> list[float]:
        items = self.items(index)
        if items is None:
            raise self.needs(index)
        return [float(item) for item in items]

    def items(self, index: int) -> list[Any] | None:
        """The elements of an input as numbers; None where they are not known."""
        value = self.input(index)
        return value.items() if isinstance(value, Known) else None

    def whole(self, index: int) -> list[int]:
        """The integers of an input, without symbols among them."""
        sizes = self.ints(index)
        if not all(isinstance(item, int) for item in sizes):
            raise self.refusal("sizes that it depends on are dynamic")
        return [int(item) for item in sizes]

    def needs(self, *indices: int) -> NeedsValueError:
        names = tuple(self.node.inputs[i] for i in indices)
        quoted = " and ".join(f"'{name}'" for name in names)
        roots = sorted({root for i in indices for root in self.roots(i)})
        return NeedsValueError(f"{self.op} needs the value of {quoted} now", self.place, roots)

    def roots(self, index: int) -> frozenset[str]:
        value = self.input(index)
        return value.roots if isinstance(value, Traced) else frozenset()

    def refusal(self, reason: str) -> UnsupportedError:
        return UnsupportedError(f"{self.op} cannot be imported: {reason}", place=self.place)

    def require(self, condition: bool | torch.SymBool, reason: str) -> None:
        """Refuse what does not hold now; of dynamic sizes, the program checks it as well."""
        try:
            cast(Any, torch)._check(condition)
        except RuntimeError:
            raise self.refusal(reason) from None

    def require_same(self, a: Size, b: Size) -> None:
        """Say that two sizes are one, whatever names the file has for them."""
        if all(is_symbol(size) and expression_of(size).is_symbol for size in (a, b)):
            examples = [int(size.node.hint) for size in (a, b)]
            if examples[0] != examples[1]:
                raise OneSizeError(examples, self.place)

    def outputs(self) -> int:
        """Return how many results are asked for, up to the last that has a name."""
        return max((i + 1 for i, name in enumerate(self.node.outputs) if name), default=0)

    def wants(self, index: int) -> bool:
        return index < len(self.node.outputs) and bool(self.node.outputs[index])


def is_symbol(size: Size) -> bool:
    return isinstance(size, torch.SymInt) and not expression_of(size).is_Integer
