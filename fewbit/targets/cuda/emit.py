"""A loop nest of linalg on memory as one CUDA kernel.

A thread computes an element of the result: parallel loops are its number, split up so that
neighbours write neighbours; loops that sum are inside. Where there are few results and long sums
over neighbouring elements, the 32 lanes of a warp share a sum. Sizes and strides are numbers in the
text; only addresses are arguments, so that layers of the same shape share a kernel. What stands
outside of the loops and only a run knows, such as a position read from memory, is computed in
every thread.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf, prod
from pathlib import Path
from typing import Any

from fewbit.errors import UnsupportedError
from fewbit.ir.bindings import is_block, loop_kinds, walk
from fewbit.targets.cuda.evaluate import SYMBOLIC, Evaluation
from fewbit.targets.cuda.memory import Memory
from fewbit.targets.cuda.nest import Nest
from fewbit.targets.cuda.scalars import expression, literal, type_of

PRELUDE = (Path(__file__).parent / "loops.cu").read_text(encoding="utf-8")
LONG = 64
"""Terms of a sum that a warp is worth."""
MANY = 1 << 16
"""Results that occupy the chip, a thread each."""
COMBINE = {
    "arith.addf": ("sum_of", 0.0), "arith.addi": ("sum_of", 0),
    "arith.maximumf": ("larger", -inf), "arith.minimumf": ("smaller", inf),
    "arith.maxnumf": ("larger_number", -inf), "arith.minnumf": ("smaller_number", inf),
}  # fmt: skip
"""Ops by which lanes can add up their parts, and what changes nothing."""


@dataclass
class _Writer:
    """Lines of C++, and the values that have names."""

    evaluation: Evaluation
    lines: list[str] = field(default_factory=list[str])
    names: dict[Any, str] = field(default_factory=dict[Any, str])
    pointers: dict[tuple[str, int, str], str] = field(
        default_factory=dict[tuple[str, int, str], str]
    )
    memories: list[Memory] = field(default_factory=list[Memory])
    read: set[int] = field(default_factory=set[int])
    """The numbers of arguments that are read from."""
    depth: int = 1
    count: int = 0

    def line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    def named(self, value: Any, text: str) -> str:
        name = f"v{self.count}"
        self.count += 1
        self.line(f"const {type_of(value)} {name} = {text};")
        self.names[value] = name
        return name

    def pointer(self, memory: Memory, reads: bool = True) -> str:
        """Return the argument with the memory's address, and the offset where elements begin."""
        key = memory.buffer, memory.byte, memory.element
        if key not in self.pointers:
            self.pointers[key] = f"p{len(self.pointers)}"
            self.memories.append(memory)
        if reads:
            self.read.add(int(self.pointers[key][1:]))
        shifts = "".join(f" + (i64){stride} * {self.value(v)}" for v, stride in memory.shifts)
        return f"({self.pointers[key]}{shifts})" if shifts else self.pointers[key]

    def value(self, value: Any) -> str:
        """Return a scalar: a name, or a number."""
        if value in self.names:
            return self.names[value]
        known = self.evaluation.env.get(value, SYMBOLIC)
        if isinstance(known, int):
            return literal(known, type_of(value))
        owner = value.owner
        if is_block(owner):
            raise UnsupportedError("a loop of the program carries a number from turn to turn")
        if owner.name == "arith.constant":
            return expression(owner, [])
        self.op(owner)
        return self.names[value]

    def ops(self, block: Any) -> list[str]:
        """Write what a block computes; return the operands of its terminator."""
        for op in block.operations:
            if op.operation.name.endswith(".yield"):
                return [self.value(v) for v in op.operation.operands]
            self.op(op.operation)
        return []

    def op(self, op: Any) -> None:
        if op.name == "arith.constant":
            self.names[op.results[0]] = expression(op, [])
        elif op.name == "memref.load":
            kept = self.evaluation.kept.get(op.results[0])
            place = self.element(op) if kept is None else f"{self.pointer(kept)}[0]"
            self.named(op.results[0], place)
        elif op.name == "scf.if":
            self.branch(op)
        elif op.name in ("cf.assert", "linalg.index"):
            pass
        elif op.name == "memref.dim":
            memory, axis = (self.evaluation.env[v] for v in op.operands)
            self.names[op.results[0]] = literal(memory.sizes[axis], "i64")
        else:
            self.named(op.results[0], expression(op, [self.value(v) for v in op.operands]))

    def element(self, load: Any) -> str:
        """Return the element of memory that is read."""
        memory = self.evaluation.env[load.operands[0]]
        index = [self.value(v) for v in list(load.operands)[1:]]
        terms = [f"{i} * {s}" for i, s in zip(index, memory.strides, strict=True)]
        return f"{self.pointer(memory)}[{' + '.join(terms) or '0'}]"

    def branch(self, op: Any) -> None:
        results: list[str] = []
        for value in op.results:
            name = f"v{self.count}"
            self.count += 1
            self.line(f"{type_of(value)} {name};")
            results.append(name)
            self.names[value] = name
        self.line(f"if ({self.value(op.operands[0])}) {{")
        for number, region in enumerate(op.regions):
            if not len(region.blocks):
                continue
            if number:
                self.line("} else {")
            self.depth += 1
            given = self.ops(region.blocks[0])
            for name, text in zip(results, given, strict=True):
                self.line(f"{name} = {text};")
            self.depth -= 1
        self.line("}")

    def finish(self, written: list[Memory], results: int = 1, lanes: bool = False) -> Nest:
        """Return a kernel of so many results, each by a thread, or by the lanes of a warp."""
        overlap = any(w is not m and w.meets(m) for w in written for m in self.memories)
        stored = {(m.buffer, m.byte, m.element) for m in written}
        types = [f"{'' if key in stored else 'const '}{type_of(key[2])}*" for key in self.pointers]
        total = f"{results}ull * LANES" if lanes else f"{results}ull"
        body = "\n".join([f"  if ($ >= {total}) return;", *self.lines, ""])
        threads = 32 * results if lanes else results
        return Nest(
            body,
            types,
            threads,
            self.memories,
            written,
            may_alias=overlap,
            read=frozenset(self.read),
            by_lanes=lanes,
        )


def store_nest(op: Any, evaluation: Evaluation) -> Nest:
    """Return a kernel that writes one number to memory."""
    writer = _Writer(evaluation)
    value, target, *index = op.operation.operands
    memory = evaluation.env[target]
    at = " + ".join(f"{writer.value(i)} * {s}" for i, s in zip(index, memory.strides, strict=True))
    value = writer.value(value)
    writer.line(f"{writer.pointer(memory, reads=False)}[{at or '0'}] = {value};")
    return writer.finish([memory])


def keep_nest(load: Any, evaluation: Evaluation, place: Memory) -> Nest:
    """Return a kernel that keeps a number of the program where nothing else writes."""
    writer = _Writer(evaluation)
    element = writer.element(load)
    writer.line(f"{writer.pointer(place, reads=False)}[0] = {element};")
    return writer.finish([place])


def emit(op: Any, evaluation: Evaluation, fill: float | None = None) -> Nest:
    """Return the kernel of a `linalg.generic`; `fill` is what its result has been filled with."""
    nest = _Generic(op, evaluation, fill).emit()
    together = _Generic(op, evaluation, fill, together=True)
    if not together.is_exact():
        return nest
    whole = together.emit()
    assert whole.pointers == nest.pointers
    return replace(nest, whole_body=whole.body)


class _Generic:
    def __init__(
        self, op: Any, evaluation: Evaluation, fill: float | None, together: bool = False
    ) -> None:
        self.op = op
        self.together = together
        """Whether all threads of a block share every sum, one after another."""
        self.env = evaluation.env
        self.fill = fill
        self.w = _Writer(evaluation)
        self.block = op.operation.regions[0].blocks[0]
        self.operands = [self.env[v] for v in op.operands]
        self.maps = [m.value for m in op.operation.attributes["indexing_maps"]]
        self.kinds = loop_kinds(op)
        self.inputs = len(op.inputs)
        self.sizes = self._sizes()
        self.outputs: list[Memory] = self.operands[self.inputs :]
        self.reduced = [d for d, kind in enumerate(self.kinds) if kind == "reduction"]

    def is_exact(self) -> bool:
        """Whether lanes share sums, and these are the same in any order.

        Those of f64 are, too, once they are the f32 that they are needed as.
        """
        lanes = self._lanes(prod(self.sizes[d] for d in self._parallel()))
        if lanes is None:
            return False
        return all(
            combine != "sum_of" or m.element.startswith("i") or m.element == "f64"
            for (combine, _), m in zip(lanes, self.outputs, strict=True)
        )

    def emit(self) -> Nest:
        order = self._parallel()
        results = prod(self.sizes[d] for d in order)
        lanes = self._lanes(results)
        w = self.w
        self._outside()
        self._split(order, results, lanes)
        starts = self._starts(lanes)
        accumulators: list[str] = []
        if self.reduced:
            for memory, start in zip(self.outputs, starts, strict=True):
                name = f"a{len(accumulators)}"
                w.line(f"{type_of(memory.element)} {name} = {start};")
                accumulators.append(name)
        self._open_sums(lanes)
        self._arguments(accumulators)
        given = w.ops(self.block)
        for name, text in zip(accumulators, given, strict=False):
            w.line(f"{name} = {text};")
        self._close_sums(lanes)
        if lanes is not None:
            for (combine, neutral), name, m in zip(lanes, accumulators, self.outputs, strict=True):
                type = type_of(m.element)
                if self.together:
                    start = literal(neutral, type)
                    w.line(f"{name} = of_block<{type}, {combine}<{type}>>({name}, {start});")
                    continue
                w.line(
                    f"for (int other = LANES / 2; other; other /= 2) {name} ="
                    f" {combine}<{type}>({name}, from_lane({name}, other));"
                )
            if not self.together:
                w.line("if (lane) return;")
        for number in range(len(self.outputs)):
            to = self._place(self.inputs + number, reads=False)
            w.line(f"{to} = {accumulators[number] if self.reduced else given[number]};")
        nest = w.finish(self.outputs, results, lanes is not None)
        work = prod(self.sizes)
        return replace(nest, fill=self._fills(), copies=self._copies(), work=work)

    def _fills(self) -> float | None:
        from torch_mlir import ir

        ops = list(self.block.operations)
        if self.inputs or len(ops) != 1 or len(self.outputs) != 1:
            return None
        owner = ops[0].operation.operands[0].owner
        if is_block(owner) or owner.name != "arith.constant":
            return None
        attribute = owner.attributes["value"]
        return attribute.value if isinstance(attribute, (ir.FloatAttr, ir.IntegerAttr)) else None

    def _copies(self) -> Memory | None:
        ops = list(self.block.operations)
        if len(ops) != 1 or self.inputs != 1 or len(self.outputs) != 1:
            return None
        is_same = ops[0].operation.operands[0] == self.block.arguments[0]
        (source,), (target,) = self.operands[:1], self.outputs
        if not isinstance(source, Memory):
            return None  # One number, which fills the result.
        plain = source.is_dense and target.is_dense and not source.shifts and not target.shifts
        return source if is_same and plain and self.maps[0] == self.maps[1] else None

    def _sizes(self) -> list[int]:
        from torch_mlir import ir

        sizes: list[int | None] = [None] * len(self.kinds)
        for map, memory in zip(self.maps, self.operands, strict=True):
            if not isinstance(memory, Memory):
                continue
            for axis, result in enumerate(map.results):
                if isinstance(result, ir.AffineDimExpr):
                    sizes[result.position] = memory.sizes[axis]
        if None in sizes:
            raise UnsupportedError("a loop has no size that an operand tells")
        return sizes  # type: ignore[return-value]

    def _parallel(self) -> list[int]:
        """Return parallel loops in the order of the first result, whose last is contiguous."""
        from torch_mlir import ir

        first = [
            r.position
            for r in self.maps[self.inputs].results
            if isinstance(r, ir.AffineDimExpr) and self.kinds[r.position] == "parallel"
        ]
        others = [d for d, kind in enumerate(self.kinds) if kind == "parallel" and d not in first]
        return [*others, *first]

    def _lanes(self, results: int) -> list[tuple[str, float]] | None:
        """Return how lanes add up their parts, if a warp shares each sum."""
        terms = prod(self.sizes[d] for d in self.reduced)
        if terms < LONG or results >= MANY:
            return None
        innermost = self.reduced[-1]
        runs = any(self._stride(i, innermost) == 1 for i in range(self.inputs))
        if not runs and results > 4096:
            return None
        *_, end = self.block.operations
        accumulated = list(self.block.arguments)[self.inputs :]
        lanes: list[tuple[str, float]] = []
        for value, own in zip(end.operation.operands, accumulated, strict=True):
            owner = value.owner
            if is_block(owner) or owner.name not in COMBINE:
                return None
            uses = [use.owner.operation for use in own.uses]
            if len(uses) != 1 or uses[0] != owner:
                return None
            if str(own.type) not in ("f32", "f64", "i32", "i64"):
                return None
            lanes.append(COMBINE[owner.name])
        return lanes

    def _stride(self, number: int, loop: int) -> int | None:
        """Return how far apart an operand's elements of neighbouring iterations are."""
        from torch_mlir import ir

        memory = self.operands[number]
        if not isinstance(memory, Memory):
            return None
        total = 0
        for result, stride in zip(self.maps[number].results, memory.strides, strict=True):
            if isinstance(result, ir.AffineDimExpr) and result.position == loop:
                total += stride
            elif not isinstance(result, ir.AffineDimExpr) and f"d{loop}" in str(result):
                return None
        return total

    def _outside(self) -> None:
        """Write scalars from outside of the nest, before any loop."""
        inside: set[Any] = {v for op in walk(self.op) for v in op.operation.results}
        for op in walk(self.op):
            for region in op.operation.regions:
                for block in region.blocks:
                    inside.update(block.arguments)
        for op in walk(self.op):
            if op.operation == self.op.operation:
                continue
            for value in op.operation.operands:
                if value not in inside and not isinstance(self.env.get(value), Memory):
                    self.w.value(value)
        for memory in self.operands:
            if isinstance(memory, Memory):
                for value, _ in memory.shifts:
                    self.w.value(value)

    def _split(self, order: list[int], results: int, lanes: Any) -> None:
        w = self.w
        kind = "u32" if results < 1 << 31 else "u64"
        w.line(f"{kind} i = ({kind})(${' / LANES' if lanes is not None else ''});")
        if lanes is not None:
            lane = "TURN" if self.together else "$ % LANES"
            w.line(f"const int lane = (int)({lane});")
        for place, d in reversed(list(enumerate(order))):
            w.line(f"const int d{d} = (int)(i{f' % {self.sizes[d]}u' if place else ''});")
            if place:
                w.line(f"i /= {self.sizes[d]}u;")

    def _starts(self, lanes: Any) -> list[str]:
        if not self.reduced:
            return []
        starts: list[str] = []
        for number, memory in enumerate(self.outputs):
            type = type_of(memory.element)
            if self.fill is not None:
                start = literal(self.fill, type)
            else:
                start = self._place(self.inputs + number)
            if lanes is not None:
                start = f"lane ? {literal(lanes[number][1], type)} : {start}"
            starts.append(start)
        return starts

    def _open_sums(self, lanes: Any) -> None:
        w = self.w
        if lanes is not None:
            terms = prod(self.sizes[d] for d in self.reduced)
            w.line("#pragma unroll UNROLLED")
            every = "WIDTH" if self.together else "LANES"
            w.line(f"for (u32 r = lane; r < {terms}u; r += {every}) {{")
            w.depth += 1
            w.line("u32 t = r;")
            first, *others = self.reduced
            for d in reversed(others):
                w.line(f"const int d{d} = (int)(t % {self.sizes[d]}u);")
                w.line(f"t /= {self.sizes[d]}u;")
            w.line(f"const int d{first} = (int)t;")
            return
        for d in self.reduced:
            w.line(f"for (int d{d} = 0; d{d} < {self.sizes[d]}; d{d}++) {{")
            w.depth += 1

    def _close_sums(self, lanes: Any) -> None:
        for _ in range(1 if lanes is not None else len(self.reduced)):
            self.w.depth -= 1
            self.w.line("}")

    def _arguments(self, accumulators: list[str]) -> None:
        """Name the elements that are read, and the loops whose indices are."""
        w = self.w
        for number, argument in enumerate(self.block.arguments):
            if not list(argument.uses):
                continue
            if number >= self.inputs and self.reduced:
                w.names[argument] = accumulators[number - self.inputs]
            elif isinstance(self.operands[number], Memory):
                w.named(argument, self._place(number))
            else:
                w.names[argument] = w.value(self.op.operands[number])
        for op in walk(self.op):
            if op.operation.name == "linalg.index":
                d = op.operation.attributes["dim"].value
                w.names[op.operation.results[0]] = f"(i64)d{d}"

    def _place(self, number: int, reads: bool = True) -> str:
        memory = self.operands[number]
        wide = memory.reach >= 1 << 31
        terms = [
            _affine(result, stride, wide)
            for result, stride in zip(self.maps[number].results, memory.strides, strict=True)
        ]
        at = " + ".join(t for t in terms if t) or "0"
        return f"{self.w.pointer(memory, reads)}[{at}]"


def _affine(expr: Any, stride: int, wide: bool) -> str:
    if stride == 0:
        return ""
    text = _c_expression(expr)
    if text == "0":
        return ""
    factor = f" * {stride}" if stride != 1 else ""
    return f"{'(i64)' if wide else ''}({text}){factor}"


def _c_expression(expr: Any) -> str:
    """Return an affine expression in C; sizes are not negative, so its quotients are floors."""
    from torch_mlir import ir

    operators: dict[type, str] = {
        ir.AffineAddExpr: "+",
        ir.AffineMulExpr: "*",
        ir.AffineFloorDivExpr: "/",
        ir.AffineModExpr: "%",
    }
    if not isinstance(expr, ir.AffineBinaryExpr):
        return str(expr)
    operator = operators.get(type(expr))
    if operator is None:
        raise UnsupportedError(f"the target cuda has no code for '{expr}' in an index")
    sides = [_c_expression(side) for side in (expr.lhs, expr.rhs)]
    if operator != "+":
        sides = [f"({side})" if " " in side else side for side in sides]
    return f" {operator} ".join(sides)
