"""How calls of CBLAS compute a matmul: its m, n and k, found in shapes and strides.

Loops of a matmul are rows of the result (m), columns (n), reductions (k), or batches. Neighbouring
loops over memory without gaps are one. The longest rows and columns that a call can have become
its matrices; all other loops are a loop of calls. A transposed factor is read as such, and a
transposed result is computed as the matmul of the transposed factors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

from fewbit.passes.blas.name_matmuls import indices_of

if TYPE_CHECKING:
    from torch_mlir.ir import OpView, Value

Number = int | str
"""Known, or a value of the function that is written."""

LARGEST = 2**31 - 1
ASSUMED = 1 << 16
"""What a size that is not known counts as."""
OPERANDS = "abc"


@dataclass(frozen=True)
class Loop:
    """A loop of a matmul: its size, and its stride in each operand that it is a dimension of."""

    size: Number
    strides: dict[str, Number]
    places: dict[str, int]
    """The dimension that it is, counting those of a size other than 1."""

    @property
    def length(self) -> int:
        return self.size if isinstance(self.size, int) else ASSUMED


@dataclass(frozen=True)
class Matrix:
    """A factor as CBLAS takes it."""

    operand: str
    transposed: bool
    leading: Number
    """From one row to the next, or, where there is one only, its length."""


@dataclass(frozen=True)
class Form:
    """A matmul as calls: one for every index of `batch`."""

    lhs: Matrix
    rhs: Matrix
    m: Loop
    n: Loop
    k: Loop
    ldc: Number
    batch: tuple[Loop, ...]
    values: dict[str, Operand]

    @property
    def is_vector(self) -> bool:
        """Whether GEMV is enough; it does not clear the result of an empty reduction."""
        return self.n.size == 1 and isinstance(self.k.size, int) and self.k.size > 0


ONE = Loop(1, {}, {})


@dataclass(frozen=True)
class Operand:
    """A memref of the function."""

    name: str
    type: Any
    sizes: tuple[Number, ...]
    strides: tuple[Number, ...]
    offset: Number
    contiguous: bool

    @staticmethod
    def of(name: str, value: Value) -> Operand:
        from torch_mlir import ir

        type = ir.MemRefType(value.type)
        strides, offset = type.get_strides_and_offset()
        unknown = ir.ShapedType.get_dynamic_stride_or_offset()

        def number(known: int, what: str) -> Number:
            return f"%{name}_{what}" if known == unknown else known

        sizes = tuple(
            f"%{name}_size#{i}" if type.is_dynamic_dim(i) else type.get_dim_size(i)
            for i in range(type.rank)
        )
        return Operand(
            name,
            type,
            sizes,
            tuple(number(s, f"stride#{i}") for i, s in enumerate(strides)),
            number(offset, "offset"),
            "strided" not in str(type) and "affine_map" not in str(type),
        )


def form_of(op: OpView) -> Form | None:
    """Return how calls compute a matmul; None where none do."""
    a, b, c = (Operand.of(*pair) for pair in zip(OPERANDS, op.operation.operands, strict=True))
    indices: list[Any] = indices_of(op)
    values = {each.name: each for each in (a, b, c)}
    by_number = {
        loop: _loop(loop, values, indices) for index in indices for loop in index
    }  # fmt: skip
    kinds: dict[str, list[Loop]] = {"abc": [], "ac": [], "bc": [], "ab": []}
    for loop in by_number.values():
        if loop.size != 1:
            kinds["".join(sorted(loop.strides))].append(loop)
    batch, rows, columns, sums = (_join(loops, values) for loops in kinds.values())
    if len(sums) > 1 or any(isinstance(n, int) and n > LARGEST for n in _numbers(values)):
        return None
    k = sums[0] if sums else ONE
    fitting = (
        form
        for m, n in product(rows or [ONE], columns or [ONE])
        if (form := _form(m, n, k, values)) is not None
    )
    best = max(fitting, key=lambda form: form.m.length * form.n.length, default=None)
    if best is None:
        return None
    others = [loop for loop in (*batch, *rows, *columns) if loop not in (best.m, best.n)]
    return replace(best, batch=tuple(others))


def _numbers(values: dict[str, Operand]) -> Iterator[Number]:
    for value in values.values():
        yield from value.sizes
        yield from value.strides


def _loop(loop: int, values: dict[str, Operand], indices: Sequence[Sequence[int]]) -> Loop:
    strides: dict[str, Number] = {}
    places: dict[str, int] = {}
    sizes: list[Number] = []
    for value, index in zip(values.values(), indices, strict=True):
        if loop not in index:
            continue
        axis = index.index(loop)
        sizes.append(value.sizes[axis])
        strides[value.name] = value.strides[axis]
        places[value.name] = sum(size != 1 for size in value.sizes[:axis])
    # All are the same size; one of them may know it.
    size = next((size for size in sizes if isinstance(size, int)), sizes[0])
    return Loop(size, strides, places)


def _join(loops: Sequence[Loop], values: dict[str, Operand]) -> list[Loop]:
    """Collapse loops that are neighbours, in the same order and without gaps, in all operands."""
    if not loops:
        return []
    first = next(iter(loops[0].places))
    ordered = sorted(loops, key=lambda loop: loop.places[first])
    joined = [ordered[0]]
    for inner in ordered[1:]:
        outer = joined[-1]
        if all(_follow(outer, inner, values[name]) for name in inner.strides):
            joined[-1] = Loop(times(outer.size, inner.size), inner.strides, inner.places)
        else:
            joined.append(inner)
    return joined


def _follow(outer: Loop, inner: Loop, value: Operand) -> bool:
    name = value.name
    if outer.places[name] + 1 != inner.places[name]:
        return False
    step, size, stride = outer.strides[name], inner.size, inner.strides[name]
    if isinstance(step, int) and isinstance(size, int) and isinstance(stride, int):
        return step == size * stride
    return value.contiguous


def times(a: Number, b: Number) -> Number:
    """Return a product, as an expression where a part of it is not known."""
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    return f"{a} * {b}"


def _form(m: Loop, n: Loop, k: Loop, values: dict[str, Operand]) -> Form | None:
    if m is ONE and n is ONE:
        return None
    direct_form = _orient(m, n, k, "a", "b", values)
    transposed_form = _orient(n, m, k, "b", "a", values)
    if direct_form is None or transposed_form is None:
        return direct_form or transposed_form
    return transposed_form if m is ONE else direct_form


def _orient(
    m: Loop, n: Loop, k: Loop, lhs: str, rhs: str, values: dict[str, Operand]
) -> Form | None:
    """Return the result as m rows of n neighbouring elements."""
    left, right = _matrix(lhs, m, k), _matrix(rhs, k, n)
    result = _matrix("c", m, n)
    if left is None or right is None or result is None or result.transposed:
        return None
    return Form(left, right, m, n, k, result.leading, (), values)


def _matrix(operand: str, rows: Loop, columns: Loop) -> Matrix | None:
    """Return a row-major or transposed matrix; None where neither rows nor columns are dense."""
    for transposed, outer, inner in ((False, rows, columns), (True, columns, rows)):
        if inner is not ONE and inner.strides[operand] != 1:
            continue
        if outer is ONE:
            return Matrix(operand, transposed, inner.size)
        leading = outer.strides[operand]
        overlaps = isinstance(leading, int) and isinstance(inner.size, int) and leading < inner.size
        return None if overlaps else Matrix(operand, transposed, leading)
    return None
