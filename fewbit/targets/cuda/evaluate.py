"""The entry function, executed on shapes: what is left is the list of its loops and calls.

Sizes of inputs are known when a plan is made, so sizes, offsets in the arena, conditions on them
and loops over them are numbers here, whatever was dynamic in the program. Numbers that are read
from memory stay values of the program; a kernel that needs one computes it itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fewbit.errors import UnsupportedError
from fewbit.ir.bindings import find_function
from fewbit.targets.cuda.memory import Memory, collapse, dense, expand

if TYPE_CHECKING:
    from torch_mlir.ir import Module, Value

SYMBOLIC = object()
"""A scalar that only a run knows."""

READ_ONLY = ("in", "weights")
"""Buffers whose contents are the same from the first launch to the last."""

FOLD: dict[
    str, Callable[[Any], Any] | Callable[[Any, Any], Any] | Callable[[Any, Any, Any], Any]
] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.divsi": lambda a, b: int(a / b) if (a < 0) != (b < 0) else a // b,
    "arith.divui": lambda a, b: a // b,
    "arith.remsi": lambda a, b: a - b * (int(a / b) if (a < 0) != (b < 0) else a // b),
    "arith.remui": lambda a, b: a % b,
    "arith.floordivsi": lambda a, b: a // b,
    "arith.ceildivsi": lambda a, b: -(-a // b),
    "arith.ceildivui": lambda a, b: -(-a // b),
    "arith.maxsi": max,
    "arith.minsi": min,
    "arith.maxui": max,
    "arith.minui": min,
    "arith.andi": lambda a, b: a & b,
    "arith.ori": lambda a, b: a | b,
    "arith.xori": lambda a, b: a ^ b,
    "arith.select": lambda c, a, b: a if c else b,
    "arith.index_cast": lambda a: a,
    "arith.index_castui": lambda a: a,
    "arith.extsi": lambda a: a,
    "arith.extui": lambda a: a,
    "arith.uitofp": float,
    "arith.mulf": lambda a, b: a * b,
    "arith.addf": lambda a, b: a + b,
}  # fmt: skip

COMPARE: tuple[Callable[[int, int], bool], ...] = (
    lambda a, b: a == b,
    lambda a, b: a != b,
    lambda a, b: a < b,
    lambda a, b: a <= b,
    lambda a, b: a > b,
    lambda a, b: a >= b,
    lambda a, b: a < b,
    lambda a, b: a <= b,
    lambda a, b: a > b,
    lambda a, b: a >= b,
)
"""By the number of a predicate of `arith.cmpi`; sizes are never negative."""

COMPARE_FLOATS: dict[int, Callable[[float, float], bool]] = {
    2: lambda a, b: a > b, 3: lambda a, b: a >= b, 4: lambda a, b: a < b, 5: lambda a, b: a <= b
}  # fmt: skip
"""Predicates of `arith.cmpf` by which sizes are compared."""


class Evaluation:
    """One run of a function; `launch` and `call` take what is left to do, in order."""

    def __init__(
        self,
        module: Module,
        launch: Callable[[Any, Evaluation], None],
        call: Callable[[str, list[Memory]], None],
        constants: Callable[[str, Any], Memory] | None = None,
        keep: Callable[[Any, Evaluation], Memory] | None = None,
    ) -> None:
        self.module = module
        self.launch = launch
        self.call = call
        self.constants = constants
        self.keep = keep
        self.kept: dict[Value, Memory] = {}
        """Where numbers are that the program computed, and later steps need."""
        self.env: dict[Value, Any] = {}
        self.pointers: dict[str, int] = {}
        self.allocations: list[tuple[int, int]] = []
        """First bytes, and bytes behind, of what has been allocated in the arena, in order."""

    def allocate(self, memory: Memory) -> Memory:
        """Return memory in the arena as an allocation of its own."""
        _, begin, end = memory.span
        self.allocations.append((begin, end))
        return replace(memory, owner=len(self.allocations))

    def run(self, name: str, arguments: Sequence[Any]) -> list[Any]:
        function = find_function(self.module, name)
        block = function.entry_block
        self.env.update(zip(block.arguments, arguments, strict=True))
        return self.block(block)

    def block(self, block: Any) -> list[Any]:
        """Run a block; return the operands of its terminator."""
        for op in block.operations:
            name = op.operation.name
            if name in ("func.return", "scf.yield", "memref.alloca_scope.return"):
                return [self.value(v) for v in op.operation.operands]
            self.step(name, op)
        return []

    def value(self, value: Value) -> Any:
        return self.env[value]

    def ints(self, values: Sequence[Value]) -> list[int]:
        numbers = [self.env[v] for v in values]
        for number in numbers:
            if not isinstance(number, int):
                raise UnsupportedError(
                    "a size depends on what the inputs contain, not only on their shapes",
                    hint="the target cuda plans all launches before it runs",
                )
        return numbers

    def step(self, name: str, op: Any) -> None:
        operation = op.operation
        if name.startswith("linalg."):
            self.launch(op, self)
            return
        handler = getattr(self, "_" + name.replace(".", "_"), None)
        if handler is not None:
            handler(operation)
            return
        given: list[Any] = [self.env[v] for v in operation.operands]
        if name in FOLD and all(isinstance(v, int | float) for v in given):
            self.env[operation.results[0]] = FOLD[name](*given)
        elif name == "arith.select" and isinstance(given[0], int):
            self.env[operation.results[0]] = given[1] if given[0] else given[2]
        elif name == "arith.cmpi" and all(isinstance(v, int) for v in given):
            predicate: int = operation.attributes["predicate"].value
            self.env[operation.results[0]] = int(COMPARE[predicate](*given))
        elif name == "arith.cmpf" and all(isinstance(v, float) for v in given):
            predicate: int = operation.attributes["predicate"].value
            self.env[operation.results[0]] = int(COMPARE_FLOATS[predicate](*given))
        elif any(isinstance(v, Memory) for v in given):
            raise UnsupportedError(
                "which memory is read depends on what the inputs contain",
                hint="the target cuda plans all launches before it runs",
            )
        elif name.startswith(("arith.", "math.")):
            self.env[operation.results[0]] = SYMBOLIC
        else:
            raise UnsupportedError(
                f"the target cuda has no code for '{name}'",
                hint="the targets cpu and iree-cuda may run the program",
            )

    def _arith_constant(self, op: Any) -> None:
        from torch_mlir import ir

        attribute = op.attributes["value"]
        value: Any = SYMBOLIC
        if isinstance(attribute, ir.BoolAttr):
            value = int(attribute.value)
        elif isinstance(attribute, (ir.IntegerAttr, ir.FloatAttr)):
            value = attribute.value
        self.env[op.results[0]] = value

    def _cf_assert(self, op: Any) -> None:
        pass

    def _memref_dealloc(self, op: Any) -> None:
        pass

    def _memref_dim(self, op: Any) -> None:
        memory, axis = (self.env[v] for v in op.operands)
        self.env[op.results[0]] = memory.sizes[axis]

    def _memref_load(self, op: Any) -> None:
        memory = self.env[op.operands[0]]
        if not memory.buffer.startswith(READ_ONLY):
            if self.keep is None:
                raise UnsupportedError("a size depends on what is computed")
            self.kept[op.results[0]] = self.keep(op, self)
        self.env[op.results[0]] = SYMBOLIC

    def _memref_extract_aligned_pointer_as_index(self, op: Any) -> None:
        memory = self.env[op.operands[0]]
        known = self.pointers.setdefault(memory.buffer, len(self.pointers) << 48)
        self.env[op.results[0]] = known + memory.byte

    def _memref_get_global(self, op: Any) -> None:
        assert self.constants is not None
        name = op.attributes["name"].value
        value = next(
            each
            for each in self.module.body.operations
            if each.operation.name == "memref.global" and each.sym_name.value == name
        )
        self.env[op.results[0]] = self.constants(name, value)

    def _memref_view(self, op: Any) -> None:
        source, (byte, *sizes) = self.env[op.operands[0]], self.ints(list(op.operands)[1:])
        type = op.results[0].type
        shape = self._fill_dynamic(type.shape, sizes)
        view = dense(source.buffer, str(type.element_type), shape, source.byte + byte)
        self.env[op.results[0]] = self.allocate(view) if source.buffer == "arena" else view

    def _memref_cast(self, op: Any) -> None:
        self.env[op.results[0]] = self.env[op.operands[0]]

    def _memref_transpose(self, op: Any) -> None:
        memory = self.env[op.operands[0]]
        order = [r.position for r in op.attributes["permutation"].value.results]
        self.env[op.results[0]] = replace(
            memory,
            sizes=tuple(memory.sizes[i] for i in order),
            strides=tuple(memory.strides[i] for i in order),
        )

    def _memref_collapse_shape(self, op: Any) -> None:
        memory = self.env[op.operands[0]]
        self.env[op.results[0]] = collapse(memory, _groups(op))

    def _memref_expand_shape(self, op: Any) -> None:
        memory, sizes = self.env[op.operands[0]], self.ints(list(op.operands)[1:])
        shape = self._fill_dynamic(list(op.attributes["static_output_shape"]), sizes)
        self.env[op.results[0]] = expand(memory, _groups(op), shape)

    def _memref_reinterpret_cast(self, op: Any) -> None:
        memory, *given = (self.env[v] for v in op.operands)
        offsets, sizes, strides = self._static_and_given(op, given)
        if not isinstance(offsets[0], int):
            raise UnsupportedError(
                "where a view begins depends on what the inputs contain",
                hint="the target cuda plans all launches before it runs",
            )
        base = replace(memory, sizes=tuple(sizes), strides=tuple(strides))
        self.env[op.results[0]] = base.at(offsets[0])

    def _memref_subview(self, op: Any) -> None:
        memory, *given = (self.env[v] for v in op.operands)
        values = list(op.operands)[1:]
        offsets, sizes, steps = self._static_and_given(op, given, values)
        shifts = list(memory.shifts)
        known = 0
        for offset, stride in zip(offsets, memory.strides, strict=True):
            if isinstance(offset, int):
                known += offset * stride
            else:
                shifts.append((offset, stride))
        view = replace(memory.at(known), shifts=tuple(shifts))
        strides = [step * stride for step, stride in zip(steps, memory.strides, strict=True)]
        kept = _remaining_axes(list(op.attributes["static_sizes"]), list(op.results[0].type.shape))
        self.env[op.results[0]] = replace(
            view,
            sizes=tuple(sizes[i] for i in kept),
            strides=tuple(strides[i] for i in kept),
        )

    def _static_and_given(
        self, op: Any, given: list[Any], values: list[Any] | None = None
    ) -> list[list[Any]]:
        """Return offsets, sizes and strides, of which some are operands.

        An offset that only a run knows is the value that it is.
        """
        from torch_mlir import ir

        dynamic = ir.ShapedType.get_dynamic_size()
        stride = ir.ShapedType.get_dynamic_stride_or_offset()
        remaining = iter(range(len(given)))
        lists: list[list[Any]] = []
        for name in ("static_offsets", "static_sizes", "static_strides"):
            row: list[Any] = []
            for number in op.attributes[name]:
                if number not in (dynamic, stride):
                    row.append(number)
                    continue
                i = next(remaining)
                is_offset = name == "static_offsets" and values is not None
                row.append(values[i] if is_offset and given[i] is SYMBOLIC else given[i])  # type: ignore[index]
            lists.append(row)
        for number in (*lists[1], *lists[2]):
            if number is SYMBOLIC:
                raise UnsupportedError(
                    "the size of a view depends on what the inputs contain",
                    hint="the target cuda plans all launches before it runs",
                )
        return lists

    def _fill_dynamic(self, shape: Sequence[int], sizes: Sequence[int]) -> tuple[int, ...]:
        from torch_mlir import ir

        dynamic = ir.ShapedType.get_dynamic_size()
        given = iter(sizes)
        return tuple(next(given) if size == dynamic else size for size in shape)

    def _affine_apply(self, op: Any) -> None:
        self._affine(op, lambda found: found[0])

    def _affine_min(self, op: Any) -> None:
        self._affine(op, min)

    def _affine_max(self, op: Any) -> None:
        self._affine(op, max)

    def _affine(self, op: Any, combine: Callable[[list[int]], int]) -> None:
        affine = op.attributes["map"].value
        given = self.ints(op.operands)
        dims, symbols = given[: affine.n_dims], given[affine.n_dims :]
        results = [_affine_value(r, dims, symbols) for r in affine.results]
        self.env[op.results[0]] = combine(results)

    def _scf_if(self, op: Any) -> None:
        (condition,) = self.ints(op.operands)
        region = op.regions[0 if condition else 1]
        results = self.block(region.blocks[0]) if len(region.blocks) else []
        self.env.update(zip(op.results, results, strict=True))

    def _scf_for(self, op: Any) -> None:
        low, high, step = self.ints(list(op.operands)[:3])
        carried = [self.env[v] for v in list(op.operands)[3:]]
        body = op.regions[0].blocks[0]
        for i in range(low, high, step):
            self.env.update(zip(body.arguments, [i, *carried], strict=True))
            carried = self.block(body)
        self.env.update(zip(op.results, carried, strict=True))

    def _func_call(self, op: Any) -> None:
        callee = op.attributes["callee"].value
        self.call(callee, [self.env[v] for v in op.operands])

    def _memref_store(self, op: Any) -> None:
        self.launch(op, self)


def _groups(op: Any) -> list[list[int]]:
    return [[axis.value for axis in group] for group in op.attributes["reassociation"]]


def _remaining_axes(static: list[int], shape: list[int]) -> list[int]:
    """Return the dimensions of a view that its type has: some of size 1 may be dropped."""
    dropping = len(static) - len(shape)
    kept: list[int] = []
    for axis, size in enumerate(static):
        place = len(kept)
        differs = place == len(shape) or shape[place] != 1
        if dropping and size == 1 and (differs or len(static) - axis > len(shape) - place):
            dropping -= 1
        else:
            kept.append(axis)
    return kept


def _affine_value(expr: Any, dims: Sequence[int], symbols: Sequence[int]) -> int:
    from torch_mlir import ir

    if isinstance(expr, ir.AffineConstantExpr):
        return expr.value
    if isinstance(expr, ir.AffineDimExpr):
        return dims[expr.position]
    if isinstance(expr, ir.AffineSymbolExpr):
        return symbols[expr.position]
    a, b = (_affine_value(e, dims, symbols) for e in (expr.lhs, expr.rhs))
    if isinstance(expr, ir.AffineAddExpr):
        return a + b
    if isinstance(expr, ir.AffineMulExpr):
        return a * b
    if isinstance(expr, ir.AffineModExpr):
        return a % b
    return a // b if isinstance(expr, ir.AffineFloorDivExpr) else -(-a // b)
