"""Matmuls on memory as calls of a CBLAS library.

Each `linalg.contract` becomes a call of a function on its memrefs, written here as MLIR, in the
form that `matmul_form` finds for it. What no call computes is left as it is: sums over two
strides, elements with gaps between them, and dot products of vectors.

The calls of one matmul are shared by threads, a single call is the first thread's: a call computes
the same bits only while its sizes are the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any

from fewbit.ir.bindings import find_function, index_constant, mlir_context, parse_mlir, walk
from fewbit.ir.bindings_locations import layer_suffix
from fewbit.passes.blas.matmul_form import (
    ONE,
    Form,
    Loop,
    Matrix,
    Number,
    Operand,
    form_of,
    times,
)
from fewbit.passes.blas.name_matmuls import FROM_ZERO
from fewbit.pipeline.context import CompileContext
from fewbit.pipeline.entry import ENTRY
from fewbit.pipeline.passes import BindingsPass
from fewbit.toolchain.cblas import Cblas

if TYPE_CHECKING:
    from torch_mlir.ir import Module, OpView

ROW_MAJOR, NO_TRANSPOSE, TRANSPOSE = 101, 111, 112


@dataclass
class BlasCalls:
    """What a program calls, and which of its functions do."""

    library: Cblas
    symbols: set[str] = field(default_factory=set[str])
    functions: dict[str, str] = field(default_factory=dict[str, str])
    """Names by what the functions do: matmuls of the same form share one."""

    @property
    def libraries(self) -> dict[str, str]:
        """For the linker: the soname of what has symbols of this prefix."""
        return {self.library.prefix: self.library.soname}


@dataclass(frozen=True)
class UseBlas(BindingsPass):
    """Call a BLAS library for matmuls."""

    name = "use-blas"

    library: str | None = None
    """Which one; without it, the one that the target was given."""

    def apply(self, ctx: CompileContext, module: Module) -> None:
        library = ctx.get(Cblas) if self.library is None else Cblas.of(self.library)
        ctx.put(use_blas(module, ENTRY, library))


def use_blas(module: Module, entry: str, library: Cblas) -> BlasCalls:
    """Replace matmuls in the entry by calls, in place."""
    from torch_mlir import ir

    calls = BlasCalls(library)
    with mlir_context(), ir.Location.unknown():
        for op in list(walk(find_function(module, entry))):
            if op.operation.name != "linalg.contract":
                continue
            form = form_of(op)
            if form is None:
                _fill_with_zeros(op)
            else:
                _call(module, op, form, calls)
    return calls


def _fill_with_zeros(op: OpView) -> None:
    """Clear the result of a matmul that stays, where `name-matmuls` left that out."""
    from torch_mlir import ir
    from torch_mlir.dialects import arith, linalg

    if FROM_ZERO not in op.operation.attributes:
        return
    del op.operation.attributes[FROM_ZERO]
    total = op.operation.operands[2]
    with ir.InsertionPoint(op), op.operation.location:
        zero = arith.ConstantOp(ir.MemRefType(total.type).element_type, 0.0).result
        linalg.fill(zero, outs=[total])


def _call(module: Module, op: OpView, form: Form, calls: BlasCalls) -> None:
    from torch_mlir import ir
    from torch_mlir.dialects import func

    accumulates = FROM_ZERO not in op.operation.attributes
    written = _Function(form, accumulates, calls.library)
    body = written.text()
    if body not in calls.functions:
        name = f"blas_{len(calls.functions):03}{layer_suffix(op)}"
        _define(module, f"func.func private @{name}{body}", written, calls)
        calls.functions[body] = name
    with ir.InsertionPoint(op), op.operation.location:
        whole = [index_constant(0), index_constant(1)]
        target = ir.FlatSymbolRefAttr.get(calls.functions[body])
        func.CallOp([], target, [*op.operation.operands, *whole])
    op.operation.erase()


def _define(module: Module, text: str, written: _Function, calls: BlasCalls) -> None:
    fragment = parse_mlir(f"{written.declaration}\n{text}", "blas")
    declaration, function = fragment.body.operations
    module.body.append(function)
    if written.symbol not in calls.symbols:
        module.body.append(declaration)
        calls.symbols.add(written.symbol)


class _Function:
    """The text of a function that calls CBLAS for one matmul."""

    def __init__(self, form: Form, accumulates: bool, library: Cblas) -> None:
        self.form = form
        self.beta = 1 if accumulates else 0
        self.library = library
        self.element = str(form.values["a"].type.element_type)
        kind = "s" if self.element == "f32" else "d"
        self.symbol = library.symbol(f"{kind}gem{'v' if form.is_vector else 'm'}")
        self.lines: list[str] = []
        self.known: dict[str, str] = {}

    @property
    def declaration(self) -> str:
        return f"func.func private @{self.symbol}({', '.join(self.types)})"

    def text(self) -> str:
        """Return what follows the function's name."""
        form = self.form
        addresses = {name: self._address(value) for name, value in form.values.items()}
        count = reduce(times, (loop.size for loop in form.batch), 1)
        if form.batch:
            self._in_shared_loop(count, lambda: self._matmul(self._at_batch(addresses)))
        else:
            self._in_first_thread(lambda: self._matmul(addresses))
        types = ", ".join(f"%{name}: {value.type}" for name, value in form.values.items())
        body = "\n".join(f"  {line}" for line in [*self.lines, "return"])
        return f"({types}, %thread: index, %threads: index) {{\n{body}\n}}"

    def _in_first_thread(self, body: Any) -> None:
        first = self._value(f"arith.cmpi eq, %thread, {self._index(0)} : index")
        self.lines.append(f"scf.if {first} {{")
        self._emit_nested(body)

    def _in_shared_loop(self, count: Number, body: Any) -> None:
        one = self._index(1)
        length = self._index(count)
        after = self._value(f"arith.addi %thread, {one} : index")
        begin, end = (
            self._value(f"arith.divui {self._index(f'{length} * {number}')}, %threads : index")
            for number in ("%thread", after)
        )
        self.lines.append(f"scf.for %batch = {begin} to {end} step {one} {{")
        self._emit_nested(body)

    def _emit_nested(self, body: Any) -> None:
        outside = dict(self.known)
        body()
        self.lines.append("}")
        self.known = outside

    def _matmul(self, addresses: dict[str, str]) -> None:
        form = self.form
        one, beta = (self._constant(f"{v}.0", self.element) for v in (1, self.beta))
        lhs, rhs = form.lhs, form.rhs
        a, b, c = (self._pointer(addresses[name]) for name in (lhs.operand, rhs.operand, "c"))
        order, left = self._enum(ROW_MAJOR), self._transposition(lhs)
        m, n, k = (self._integer(loop.size) for loop in (form.m, form.n, form.k))
        lda = self._leading(lhs, form.m, form.k)
        if form.is_vector:
            sizes = [k, m] if lhs.transposed else [m, k]
            x, y = self._step(form.k, rhs.operand), self._step(form.m, "c")
            arguments = [order, left, *sizes, one, a, lda, b, x, beta, c, y]
        else:
            ldb = self._leading(rhs, form.k, form.n)
            ldc = self._leading(Matrix("c", False, form.ldc), form.m, form.n)
            right = self._transposition(rhs)
            arguments = [order, left, right, m, n, k, one, a, lda, b, ldb, beta, c, ldc]
        given, types = ", ".join(arguments), ", ".join(self.types)
        self.lines.append(f"func.call @{self.symbol}({given}) : ({types}) -> ()")

    @property
    def types(self) -> list[str]:
        """The C prototype: enums are ints, and sizes what the library was built with."""
        i, e, p = self.library.integer, self.element, "!llvm.ptr"
        if self.form.is_vector:
            return ["i32", "i32", i, i, e, p, i, p, i, e, p, i]
        return ["i32", "i32", "i32", i, i, i, e, p, i, p, i, e, p, i]

    def _step(self, loop: Loop, operand: str) -> str:
        return self._integer(1 if loop is ONE else loop.strides[operand])

    def _transposition(self, matrix: Matrix) -> str:
        return self._enum(TRANSPOSE if matrix.transposed else NO_TRANSPOSE)

    def _leading(self, matrix: Matrix, rows: Loop, columns: Loop) -> str:
        """Return a leading dimension: CBLAS wants at least the length of a row, and 1."""
        length = (rows if matrix.transposed else columns).size
        if all(isinstance(number, int) for number in (matrix.leading, length)):
            return self._integer(max(int(matrix.leading), int(length), 1))
        least = self._value(f"arith.maxsi {self._index(length)}, {self._index(1)} : index")
        step = self._index(matrix.leading)
        return self._integer(self._value(f"arith.maxsi {step}, {least} : index"))

    def _address(self, value: Operand) -> str:
        """Return the address of the first element, in bytes, as an index."""
        name, type = value.name, value.type
        rank = len(value.sizes)
        if any(isinstance(n, str) for n in (*value.sizes, *value.strides, value.offset)):
            many = [f"%{name}_{what}:{rank}" for what in ("size", "stride")] if rank else []
            results = ", ".join([f"%{name}_base", f"%{name}_offset", *many])
            types = ", ".join([f"memref<{self.element}>", *["index"] * (1 + 2 * rank)])
            self.lines.append(
                f"{results} = memref.extract_strided_metadata %{name} : {type} -> {types}"
            )
        base = self._value(f"memref.extract_aligned_pointer_as_index %{name} : {type} -> index")
        return base if value.offset == 0 else self._advance(base, value.offset)

    def _advance(self, address: str, elements: Number) -> str:
        size = 4 if self.element == "f32" else 8
        step = self._index(times(elements, size))
        return self._value(f"arith.addi {address}, {step} : index")

    def _at_batch(self, addresses: dict[str, str]) -> dict[str, str]:
        """Return the addresses of the operands of one call."""
        moved = dict(addresses)
        remaining = "%batch"
        for i, loop in reversed(list(enumerate(self.form.batch))):
            at = remaining
            if i > 0:
                size = self._index(loop.size)
                at = self._value(f"arith.remui {remaining}, {size} : index")
                remaining = self._value(f"arith.divui {remaining}, {size} : index")
            for name, stride in loop.strides.items():
                moved[name] = self._advance(moved[name], times(at, stride))
        return moved

    def _pointer(self, address: str) -> str:
        bits = self._value(f"arith.index_cast {address} : index to i64")
        return self._value(f"llvm.inttoptr {bits} : i64 to !llvm.ptr")

    def _enum(self, value: int) -> str:
        return self._constant(str(value), "i32")

    def _integer(self, number: Number) -> str:
        type = self.library.integer
        if isinstance(number, int):
            return self._constant(str(number), type)
        return self._value(f"arith.index_cast {self._index(number)} : index to {type}")

    def _index(self, number: Number) -> str:
        """Return a number as a value: a constant, or a multiplication of those in its text."""
        if isinstance(number, int):
            return self._constant(str(number), "index")
        first, *others = (self._index(int(p)) if p.isdigit() else p for p in number.split(" * "))
        for other in others:
            first = self._value(f"arith.muli {first}, {other} : index")
        return first

    def _constant(self, value: str, type: str) -> str:
        return self._value(f"arith.constant {value} : {type}")

    def _value(self, text: str) -> str:
        """Append an instruction that gives a value, once; return its name."""
        if text not in self.known:
            self.known[text] = f"%v{len(self.lines)}"
            self.lines.append(f"{self.known[text]} = {text}")
        return self.known[text]
